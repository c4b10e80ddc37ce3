"""Run the cases, print them with their budgets, and save them as JSON."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table

import trinity
from benchmarks.appends import AppendBench
from benchmarks.arrow import ArrowBench
from benchmarks.commits import CommitBench
from benchmarks.compactions import CompactionBench
from benchmarks.feeds import FeedBench
from benchmarks.folds import FoldBench
from benchmarks.machine import facts
from benchmarks.many import ManyBench
from benchmarks.merges import MergeBench
from benchmarks.options import Formats, Quick, ResultsFolder, Rows, Runs, Scratch
from benchmarks.peers import NATIVE_SETTINGS
from benchmarks.reads import ReadBench
from benchmarks.resolves import ResolveBench
from benchmarks.result_files import RESULTS, save_results
from benchmarks.results import Result
from benchmarks.streams import StreamBench
from benchmarks.tables import CatalogBench, FormatsBench, Scene
from benchmarks.timing import Rounds
from benchmarks.totals import TotalBench

SETTINGS: Final = {
    "spark.master": "local[2]",
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": "8",
    "spark.ui.enabled": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}

GROUPS: Final[dict[str, type[CatalogBench] | type[FormatsBench]]] = {
    "reads": ReadBench,
    "resolves": ResolveBench,
    "compactions": CompactionBench,
    "totals": TotalBench,
    "arrow": ArrowBench,
    "large": ReadBench,
    "appends": AppendBench,
    "commits": CommitBench,
    "many": ManyBench,
    "folds": FoldBench,
    "feeds": FeedBench,
    "streams": StreamBench,
    "merges": MergeBench,
}
"""Groups of cases, in the order in which they run. ``large`` has ten times the rows, in the first format alone."""

FILES: Final = {group: group for group in ("commits", "many", "folds", "feeds", "streams", "merges")}
"""Groups whose results are in a file of their own; the others are in ``latest``."""


def run(
    rows: Rows = 4_000_000,
    runs: Runs = 5,
    formats: Formats = "parquet,delta,iceberg",
    cases: Annotated[str, typer.Option(help=f"Which cases, with commas: {', '.join(GROUPS)}.")] = ",".join(GROUPS),
    name: Annotated[str, typer.Option(help="Name of the result file; by default each group has its own.")] = "",
    results: ResultsFolder = RESULTS,
    scratch: Scratch = None,
    quick: Quick = False,
) -> None:
    """Measure Trinity and the plain tools."""
    groups = cases.split(",")
    if unknown := [group for group in groups if group not in GROUPS]:
        raise typer.BadParameter(f"no cases are named {', '.join(unknown)}; there are {', '.join(GROUPS)}")
    rows, runs = (20_000, 1) if quick else (rows, runs)
    known = {**facts(), "rows": rows, "runs": runs}
    found: list[Result] = []
    with (
        tempfile.TemporaryDirectory(dir=scratch) as folder,
        trinity.connect(Path(folder) / "warehouse", spark_settings=_settings(Path(folder))) as session,
    ):
        scene = Scene(session, rows, Rounds(runs, warm_up=not quick), Path(folder))
        scene.warm_up()
        for group in (group for group in GROUPS if group in groups):
            for result in measured(scene, tuple(formats.split(",")), group):
                found.append(result)
                save_results([result], name or FILES.get(group, "latest"), known, results)
                print(f"{result.catalog:8} {result.case:50} {result.ratio:6.2f}x  budget {result.budget}", flush=True)
        session.spark.stop()
    Console().print(table_of(found))


def _settings(folder: Path) -> dict[str, str]:
    return {**SETTINGS, **NATIVE_SETTINGS, "spark.sql.catalog.native.warehouse": str(folder / "native")}


def measured(scene: Scene, formats: tuple[str, ...], group: str) -> Iterator[Result]:
    """Measure a group of cases."""
    bench = GROUPS[group]
    if group == "large":
        larger = Scene(scene.session, scene.rows * 10, scene.runs.at_most(3), scene.folder / "large")
        yield from ReadBench(larger, formats[0]).large()
    elif issubclass(bench, FormatsBench):
        yield from bench(scene, formats).cases()
    else:
        for catalog in formats:
            yield from bench(scene, catalog).cases()


def table_of(results: list[Result]) -> Table:
    """Return a table of results and their budgets, for people."""
    table = Table(title="Ratios of one run")
    for index, head in enumerate(("case", "table", "ours", "reference", "ratio", "budget", "")):
        table.add_column(head, justify="right" if 1 < index < 5 else "left", no_wrap=True)
    for r in results:
        values = [f"{r.ours.median:.2f} {r.unit}", f"{r.reference.median:.2f} {r.unit}", f"{r.ratio:.2f}x", r.budget]
        table.add_row(r.case, r.catalog, *values, "kept" if r.within else "[red]missed[/red]")
    return table


def main() -> None:
    """Run the command."""
    typer.run(run)
