"""``python -m benchmarks.local``: Trinity without Spark, compared with delta-rs, DuckDB, Polars and PyIceberg.

No JVM starts. Rows are made by numpy: as in :mod:`benchmarks.data`, with even ids, and changes all over them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import typer
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

import trinity
from benchmarks.machine import facts
from benchmarks.options import Formats, Quick, ResultsFolder, Rows, Runs, Scratch
from benchmarks.result_files import RESULTS, save_results
from benchmarks.results import Result
from benchmarks.timing import Rounds, Timings, in_turns, timed, timings_of
from trinity import Column, Session, Table
from trinity.engine.feed.stored_changes import store_changes

_COLUMNS: Final = [
    Column("id", "bigint"), Column("ts", "timestamp"), Column("del", "boolean"), Column("s", "string"),
    Column("a", "bigint"), Column("b", "double"), Column("c", "int"), Column("d", "double"),
]  # fmt: skip
_OPTIONS: Final = {"watermark-key": "ts", "tombstone-key": "del"}
_DAY: Final = 86_400_000_000
_FEW: Final = 10_000
"""Number of changes in the comparison with PyIceberg, whose upsert compares row by row."""
_MIB: Final = 2**20
_ONE_FILE: Final = 2**40
"""A size in bytes above that of any file here."""


def rows_of(ids: np.ndarray, day: int, *, deletes: bool = False) -> pa.Table:
    """Return rows with these ids, newer than rows of an earlier day; one change in ten is a delete."""
    drawn, count = np.random.default_rng(day), len(ids)
    texts = pc.binary_join_element_wise("text ", pa.array(drawn.integers(10**14, 10**15, count)).cast(pa.string()), "")
    micros = pa.array(1_700_000_000_000_000 + day * _DAY + drawn.integers(0, _DAY, count))
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "ts": micros.cast(pa.timestamp("us", "UTC")),
            "del": (drawn.integers(0, 10, count) == 0) & deletes,
            "s": texts,
            "a": drawn.integers(-(2**60), 2**60, count),
            "b": drawn.random(count) * 1e9,
            "c": pa.array(drawn.integers(0, 10_000, count), pa.int32()),
            "d": drawn.integers(0, 10**6, count) / 100,
        }
    )


@dataclass(frozen=True)
class Bench:
    """The cases of one format.

    Attributes:
        session: where the tables are; it executes in this process alone.
        catalog: the format.
        rows: rows of the base.
        runs: rounds per case.
        folder: scratch.
    """

    session: Session
    catalog: str
    rows: int
    runs: Rounds
    folder: Path

    def base(self) -> pa.Table:
        """Return the rows of the base."""
        return rows_of(np.arange(self.rows) * 2, 0)

    def changes(self, count: int, day: int) -> pa.Table:
        """Return about so many changes: no id twice, one in ten of them new, one in ten deleted."""
        drawn = np.random.default_rng(100 + day)
        ids = np.unique(drawn.integers(0, self.rows, count)) * 2
        return rows_of(ids + (drawn.integers(0, 10, len(ids)) == 0), day, deletes=True)

    def table(self, name: str, *, keyed: bool = True, log: float = 0) -> Table:
        """Return a compacted table with the base, and a share of its rows in the log; or a plain one."""
        full, key, options = f"{self.catalog}.default.{name}", ["id"] if keyed else [], _OPTIONS if keyed else {}
        made = self.session.create_table(full, _COLUMNS, primary_key=key, properties=options)
        (made.upsert if keyed else made.append)(self.base())
        if keyed:
            made.compact(full=True)
        if log:
            made.upsert(self.changes(int(self.rows * log), 1))
        return made

    def delta_rs(self, name: str) -> Path:
        """Return a table of delta-rs with the base."""
        place = self.folder / f"delta_rs_{self.catalog}_{name}"
        write_deltalake(str(place), self.base())
        return place

    def result(self, case: str, ours: Timings, reference: Timings, factor: float, **more: Any) -> Result:
        """Return a result of this format."""
        return Result(case, self.catalog, ours, reference, factor, **more)

    # -- reads ------------------------------------------------------------------------------------------

    def reads(self) -> Iterator[Result]:
        """Measure reads of all rows, and of 100 keys, compared with DuckDB's scan of the merged rows."""
        for log, whole, few in ((0.0, None, 0.05), (0.1, 1.3, 0.1)):
            state = "10 % in the log" if log else "compacted"
            table = self.table(f"read_{int(log * 100)}", log=log)
            plain = str(self.folder / f"merged_{self.catalog}.parquet")
            rows = table.to_arrow()
            pq.write_table(rows, plain)
            keys = pc.unique(rows["id"]).take(np.linspace(0, rows.num_rows - 1, 100).astype(np.int64)).to_pylist()
            where = f"id IN ({', '.join(map(str, keys))})"
            scan = _duckdb(f"FROM read_parquet('{plain}')")
            assert table.to_arrow(where=where).num_rows == len(keys)
            if whole is not None:
                ours, reference = in_turns(self.runs, table.to_arrow, scan)
                yield self.result(f"read, {state}", ours, reference, whole, found=rows.num_rows)
            ours, reference = in_turns(self.runs, lambda t=table, w=where: t.to_arrow(where=w), scan)  # type: ignore[misc]
            yield self.result(f"100 keys, {state}", ours, reference, few)
            self.session.drop_table(table.name)

    def first(self) -> Iterator[Result]:
        """Measure a process that imports, connects and reads, compared with one that reads the same rows by pyarrow."""
        small = replace(self, rows=min(self.rows, 1_000_000))
        table = small.table("first", log=0.1)
        plain = self.folder / f"first_{self.catalog}.parquet"
        pq.write_table(table.to_arrow(), plain)
        place = str(self.folder / "warehouse")
        ours = f"import trinity; trinity.connect({place!r}, engine='local').table({str(table.name)!r}).to_arrow()"
        reference = f"import pyarrow.parquet as pq; pq.read_table({str(plain)!r})"
        found = in_turns(self.runs, lambda: _process(ours), lambda: _process(reference))
        yield self.result("first read of a process, 1 million rows", *found, 0.0, allowance=1.0)

    # -- changes ----------------------------------------------------------------------------------------

    def upserts(self) -> Iterator[Result]:
        """Measure an upsert and a read of all rows, compared with delta-rs with Polars, and with PyIceberg."""
        table, place = self.table("upsert"), self.delta_rs("upsert")
        batches = dict[int, pa.Table]()

        def drawn(_: str, number: int) -> None:
            if number not in batches:
                batches[number] = self.changes(self.rows // 10, 2 + number)

        def ours(number: int) -> None:
            table.upsert(batches[number])
            table.to_arrow()

        def theirs(number: int) -> None:
            _merge_and_read(place, batches[number])
            pl.scan_delta(str(place)).collect()

        found = timings_of(self.runs.at_most(3), {"": ours, "delta-rs": theirs}, before=drawn)
        yield self.result("upsert of 10 % and read, beside delta-rs", found[""], found["delta-rs"], 0.3)
        self.session.drop_table(table.name)
        yield self._compared_with_pyiceberg()

    def _compared_with_pyiceberg(self) -> Result:
        table = self.table("few")
        folder = self.folder / f"pyiceberg_{self.catalog}"
        folder.mkdir()
        catalog = SqlCatalog("peer", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
        catalog.create_namespace("default")
        batch = self.changes(min(_FEW, self.rows // 100), 50)
        batch = batch.filter(pc.invert(batch["del"]))
        peer = catalog.create_table("default.bench", batch.schema)
        peer.append(self.base())
        theirs = timed(lambda: peer.upsert(batch, join_cols=["id"])) + timed(lambda: peer.scan().to_arrow())
        ours = timed(lambda: table.upsert(batch)) + timed(table.to_arrow)
        catalog.close()
        self.session.drop_table(table.name)
        case = "upsert of 10,000 rows and read, beside PyIceberg"
        return self.result(case, Timings.of([ours]), Timings.of([theirs]), 0.05)

    def predicates(self) -> Iterator[Result]:
        """Measure DELETE and UPDATE of one per cent by a predicate of a plain table, each with a read after."""
        for what in ("delete", "update"):
            table, place = self.table(what, keyed=False), self.delta_rs(what)

            def ours(number: int, what: str = what, table: Table = table) -> None:
                where = f"c >= {number * 100} AND c < {number * 100 + 100}"
                table.delete(where) if what == "delete" else table.update(where, {"d": "0"})
                table.to_arrow()

            def theirs(number: int, what: str = what, place: Path = place) -> None:
                where, peer = f"c >= {number * 100} AND c < {number * 100 + 100}", DeltaTable(str(place))
                peer.delete(where) if what == "delete" else peer.update(predicate=where, updates={"d": "0"})
                DeltaTable(str(place)).to_pyarrow_table()

            found = timings_of(self.runs, {"": ours, "delta-rs": theirs})
            rows = table.to_arrow().num_rows
            assert rows == DeltaTable(str(place)).to_pyarrow_table().num_rows
            yield self.result(f"{what} of 1 % by predicate, and read", found[""], found["delta-rs"], 0.5, found=rows)
            self.session.drop_table(table.name)

    def points(self) -> Iterator[Result]:
        """Measure commits of one row, each with a read of it, compared with delta-rs."""
        table, place = self.table("points"), self.delta_rs("points")
        ids = np.linspace(0, self.rows - 1, 20).astype(np.int64) * 2

        def ours(number: int) -> None:
            for key in ids:
                table.upsert(rows_of(np.array([key]), 2 + number))
                assert table.to_arrow(where=f"id = {key}").num_rows == 1

        def theirs(number: int) -> None:
            for key in ids:
                _merge_and_read(place, rows_of(np.array([key]), 2 + number))
                pl.scan_delta(str(place)).filter(pl.col("id") == key).collect()

        found = timings_of(self.runs.at_most(1), {"": ours, "delta-rs": theirs})
        each = (found[""].per(len(ids)), found["delta-rs"].per(len(ids)))
        yield self.result("commit of one row and read of it", *each, 0.0, allowance=0.02)
        one = iter(np.random.default_rng(3).permutation(self.rows) * 2)

        def changed(how: Callable[[int], object]) -> Timings:
            return timings_of(self.runs, {"": lambda _: how(int(next(one)))})[""]

        for name, how in (
            ("delete of one key", lambda key: table.delete([key])),
            ("update of one key", lambda key: table.update(f"id = {key}", {"d": "0"})),
        ):
            yield self.result(name, changed(how), each[1], 0.0, allowance=0.02)
        self.session.drop_table(table.name)

    # -- maintenance, folds and changes -------------------------------------------------------------------

    def compactions(self) -> Iterator[Result]:
        """Measure a full compaction after ten commits of half a per cent, compared with delta-rs's."""
        table, place = self.table("compaction"), self.delta_rs("compaction")
        for number in range(10):
            batch = self.changes(max(10, self.rows // 200), 1 + number)
            table.upsert(batch)
            write_deltalake(str(place), batch, mode="append")
        theirs = timed(lambda: DeltaTable(str(place)).optimize.compact(target_size=_ONE_FILE))
        ours = timed(lambda: table.compact(full=True))
        case = "full compaction after ten commits"
        yield self.result(case, Timings.of([ours]), Timings.of([theirs]), 1.0, found=table.to_arrow().num_rows)
        self.session.drop_table(table.name)

    def folds(self) -> Iterator[Result]:
        """Measure the folds of ten log rows a key, compared with DuckDB's aggregation of the same file."""
        count = max(100, self.rows // 4)
        drawn = np.random.default_rng(1)
        rows = pa.table(
            {
                "k": pa.array(drawn.integers(0, count // 10, count), pa.int32()),
                **{f"{c}{n}": drawn.integers(0, 1000, count) for n in (1, 2, 3) for c in "gab"},
                "n": drawn.integers(0, 100, count),
            }
        )
        plain = str(self.folder / f"fold_{self.catalog}.parquet")
        pq.write_table(rows, plain)
        newest = [f"max(g{n}), arg_max(a{n}, g{n}), arg_max(b{n}, g{n})" for n in (1, 2, 3)]
        groups = {f"fields.g{n}.sequence-group": f"a{n},b{n}" for n in (1, 2, 3)}
        sums = ", ".join(f"sum({name})" for name in rows.column_names[1:])
        engines = {
            "partial-update": (groups, f"{', '.join(newest)}, last(n)"),
            "aggregation": ({"fields.default-aggregate-function": "sum"}, sums),
        }
        for engine, (options, aggregates) in engines.items():
            table = self.session.create_table(
                f"{self.catalog}.default.fold", rows.schema, primary_key=["k"],
                properties={"merge-engine": engine, **options},
            )  # fmt: skip
            table.upsert(rows)
            scan = _duckdb(f"SELECT k, {aggregates} FROM read_parquet('{plain}') GROUP BY k")
            ours, reference = in_turns(self.runs, table.to_arrow, scan)
            yield self.result(f"fold, {engine}", ours, reference, 1.5, found=table.to_arrow().num_rows)
            self.session.drop_table(table.name)

    def feeds(self) -> Iterator[Result]:
        """Measure the changes of one per cent, computed and from files, compared with a merged read."""
        table = self.table("feed")
        before = table.splits().version
        after = table.upsert(self.changes(max(10, self.rows // 100), 1)).version
        for case, budget in (("changes of 1 %, computed", 0.3), ("changes of 1 %, lookup", 0.05)):
            if budget < 0.3:
                store_changes(table, table.connector.metadata.history(table.handle), [after])
            ours, reference = in_turns(self.runs, lambda: table.changes(before, after).to_arrow(), table.to_arrow)
            yield self.result(case, ours, reference, budget)
        self.session.drop_table(table.name)

    def wide(self) -> Iterator[Result]:
        """Yield the times of a read, an update and a compaction of 2,000 columns, 100 rows and a log; 2 s each."""
        columns = [Column("id", "bigint"), *(Column(f"c{n}", "bigint") for n in range(1999))]
        table = self.session.create_table(f"{self.catalog}.default.wide", columns, primary_key=["id"])
        rows = pa.table([np.arange(100) + n for n in range(2000)], names=[c.name for c in columns])
        table.upsert(rows)
        table.compact(full=True)
        table.upsert(rows.slice(0, 10))
        plain = self.folder / f"wide_{self.catalog}.parquet"
        pq.write_table(rows, plain)
        works: dict[str, Callable[[], object]] = {
            "read": table.to_arrow,
            "update of a cell": lambda: table.update("id = 5", {"c7": "1"}),
            "full compaction": lambda: table.compact(full=True),
        }
        for name, work in works.items():
            reference = Timings.of([timed(lambda: pq.read_table(plain))])
            yield self.result(f"2,000 columns: {name}", Timings.of([timed(work)]), reference, 0.0, allowance=2.0)
        self.session.drop_table(table.name)

    def memory(self) -> Iterator[Result]:
        """Measure the peak of a process that streams ten times the rows, and of one that compacts them."""
        name = f"{self.catalog}.default.memory"
        made = self.session.create_table(name, _COLUMNS, primary_key=["id"], properties=_OPTIONS)
        for part in range(10):
            made.upsert(rows_of((np.arange(self.rows) + part * self.rows) * 2, 0))
        place, bare = str(self.folder / "warehouse"), "import trinity, pyarrow.parquet"
        table = f"trinity.connect({place!r}, engine='local').table({name!r})"
        reference = Timings.of([_peak(bare) / _MIB])
        for case, code in (
            ("first full compaction", f"{table}.compact(full=True)"),
            ("merged read as a stream", f"print(sum(page.num_rows for page in {table}.to_reader()))"),
        ):
            if "read" in case:
                made.upsert(self.changes(self.rows, 1))
            found = Timings.of([_peak(f"import trinity; {code}") / _MIB])
            case = f"peak of {case}, ten times the rows"
            yield self.result(case, found, reference, 0.0, allowance=1024.0, unit="MB")
        self.session.drop_table(name)


def _duckdb(query: str) -> Callable[[], object]:
    def run() -> object:
        with duckdb.connect() as connection:
            return connection.sql(query).to_arrow_table()

    return run


def _merge_and_read(place: Path, batch: pa.Table) -> None:
    merge = DeltaTable(str(place)).merge(batch, "t.id = s.id", source_alias="s", target_alias="t")
    merge = merge.when_matched_delete("s.del").when_matched_update_all()
    merge.when_not_matched_insert_all("NOT s.del").execute()


def _process(code: str) -> str:
    """Return the output of a process whose modules are compiled already, like an installed package's."""
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    place = {"PYTHONPYCACHEPREFIX": f"{tempfile.gettempdir()}/trinity-benchmarks-compiled"}
    found = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env={**compiled, **place}
    )
    return found.stdout


def _peak(code: str) -> int:
    """Return the most bytes that a process holds which runs a code; ``ru_maxrss`` would be at least this one's."""
    peak = "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])"
    return int(_process(f"{code}\n{peak}").split()[-1]) * 1024


CASES: Final[dict[str, Callable[[Bench], Iterator[Result]]]] = {
    "first": Bench.first, "reads": Bench.reads, "upserts": Bench.upserts, "predicates": Bench.predicates,
    "points": Bench.points, "compactions": Bench.compactions, "folds": Bench.folds, "feeds": Bench.feeds,
    "wide": Bench.wide, "memory": Bench.memory,
}  # fmt: skip
"""Groups of cases, in the order in which they run."""


def run(
    rows: Rows = 4_000_000,
    runs: Runs = 5,
    formats: Formats = "parquet,delta,iceberg",
    cases: Annotated[str, typer.Option(help=f"Which cases, with commas: {', '.join(CASES)}.")] = ",".join(CASES),
    name: Annotated[str, typer.Option(help="Name of the result file.")] = "local",
    results: ResultsFolder = RESULTS,
    scratch: Scratch = None,
    quick: Quick = False,
) -> None:
    """Measure the executor of this process and the plain tools."""
    rows, runs = (20_000, 1) if quick else (rows, runs)
    known = {**facts(), "rows": rows, "runs": runs}
    for catalog in formats.split(","):
        with (
            tempfile.TemporaryDirectory(dir=scratch) as folder,
            trinity.connect(Path(folder) / "warehouse", engine="local") as session,
        ):
            bench = Bench(session, catalog, rows, Rounds(runs, warm_up=not quick), Path(folder))
            for result in (result for case in cases.split(",") for result in CASES[case](bench)):
                save_results([result], name, known, results)
                print(f"{result.catalog:8} {result.case:62} {result.ratio:6.2f}x  budget {result.budget}", flush=True)


def main() -> None:
    """Run the command."""
    typer.run(run)


if __name__ == "__main__":
    main()
