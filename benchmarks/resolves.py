"""A resolve of the log, compared with a merge-on-read MERGE of the same rows by Delta and Iceberg."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.peers import MERGE_ON_READ, Native
from benchmarks.results import Result, against_best
from benchmarks.tables import FormatsBench, fingerprint
from benchmarks.timing import timings_of
from trinity.engine.reading.hidden_rows import forget


class ResolveBench(FormatsBench):
    """All formats of ours and both peers in the same rounds, each on a compacted base with changes of its own."""

    def cases(self) -> Iterator[Result]:
        """Measure a resolve of a tenth of the rows."""
        runs = self.scene.runs.at_most(3)
        changed = [self.scene.batch(self.scene.rows // 10, 1 + number) for number in range(runs.count + 1)]
        tables = {catalog: self.scene.base_table(catalog) for catalog in self.formats}
        natives = {peer: Native(self.scene, peer) for peer in MERGE_ON_READ.values()}
        last, found = runs.numbers[-1], dict[str, tuple[int, int]]()

        def before(name: str, number: int) -> None:
            if name in tables:
                tables[name].upsert(changed[number])
                forget()

        def work(name: str) -> Callable[[int], object]:
            if name in tables:
                return lambda _: tables[name].compact("resolve")
            return lambda number: natives[name].merge(changed[number])

        def after(name: str, number: int) -> None:
            if number == last:
                found[name] = fingerprint((tables.get(name) or natives[name]).to_df())
            elif name in tables:
                tables[name].compact(full=True)
            else:
                natives[name].optimize()

        times = timings_of(runs, {name: work(name) for name in (*tables, *natives)}, before=before, after=after)
        assert len(set(found.values())) == 1, f"other rows: {found}"
        peers = {name: times[name] for name in natives}
        for name in tables:
            yield against_best("resolve of 10 %", name, times[name], peers, 0.6, found[name][0])
        self.drop(tables, natives)
