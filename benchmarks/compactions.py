"""A full compaction, compared with OPTIMIZE and ``rewrite_data_files`` of tables in the same state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from benchmarks.peers import MERGE_ON_READ, Native
from benchmarks.results import Result, against_best
from benchmarks.tables import FormatsBench, fingerprint
from benchmarks.timing import timings_of

_COMMITS: Final = 10


class CompactionBench(FormatsBench):
    """Trinity's formats and both peers in the same rounds; each round's result is the base of the next."""

    def cases(self) -> Iterator[Result]:
        """Yield the times of compactions after ten commits of half a per cent; one commit in the warm-up."""
        runs, count = self.scene.runs.at_most(2), max(1, self.scene.rows // 200)
        tables = {catalog: self.scene.base_table(catalog) for catalog in self.formats}
        natives = {peer: Native(self.scene, peer) for peer in MERGE_ON_READ.values()}
        last, found = runs.numbers[-1], dict[str, tuple[int, int]]()

        def before(name: str, number: int) -> None:
            for commit in range(self.scene.commits(_COMMITS) if number else 1):
                batch = self.scene.batch(count, 1 + number * _COMMITS + commit)
                if name in tables:
                    tables[name].upsert(batch)
                else:
                    natives[name].merge(batch)

        def work(name: str) -> Callable[[int], object]:
            if name in tables:
                return lambda _: tables[name].compact(full=True)
            return lambda _: natives[name].optimize()

        def after(name: str, number: int) -> None:
            if number == last:
                found[name] = fingerprint((tables.get(name) or natives[name]).to_df())

        times = timings_of(runs, {name: work(name) for name in (*tables, *natives)}, before=before, after=after)
        assert len(set(found.values())) == 1, f"other rows: {found}"
        for name in tables:
            peers = [MERGE_ON_READ[name]] if name in MERGE_ON_READ else list(natives)
            others = {peer: times[peer] for peer in peers}
            yield against_best("full compaction after ten commits", name, times[name], others, 0.8, found[name][0])
        self.drop(tables, natives)
