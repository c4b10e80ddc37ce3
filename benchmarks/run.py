"""Runs the cases, prints them beside their budgets, and keeps them as JSON."""

from __future__ import annotations

import json
import os
import platform
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table

import trinity
from benchmarks.cases import Bench
from benchmarks.commits import CommitBench
from benchmarks.feeds import FeedBench
from benchmarks.folds import FoldBench
from benchmarks.merges import NATIVE_SETTINGS, MergeBench
from benchmarks.streams import StreamBench
from benchmarks.timing import Result
from trinity import Session

__all__ = ["SETTINGS", "keep", "main", "table_of"]

_RESULTS = Path(__file__).parent / "results"
SETTINGS: Final = {
    "spark.master": "local[2]",
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": "8",
    "spark.ui.enabled": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


def run(
    rows: Annotated[int, typer.Option(min=1000, help="Rows of the base.")] = 4_000_000,
    runs: Annotated[int, typer.Option(min=1, help="Rounds per case; the median counts.")] = 5,
    formats: Annotated[str, typer.Option(help="Which formats, with commas.")] = "parquet,delta,iceberg",
    cases: Annotated[
        str, typer.Option(help="Which cases: tables, commits, folds, feeds, streams, merges, with commas.")
    ] = "tables,commits,folds,feeds,streams,merges",
    name: Annotated[str, typer.Option(help="Name of the result file.")] = "latest",
    scratch: Annotated[Path | None, typer.Option(help="Folder for scratch files; needs about 2 GB.")] = None,
) -> None:
    """Measure Trinity beside the plain tools."""
    results: list[Result] = []
    load = os.getloadavg()[0]
    with (
        tempfile.TemporaryDirectory(dir=scratch) as folder,
        trinity.connect(Path(folder) / "warehouse", spark_settings=_settings(Path(folder))) as session,
    ):
        for result in _measured(session, tuple(formats.split(",")), cases.split(","), rows, runs, Path(folder)):
            results.append(result)
            print(f"{result.catalog:8} {result.case:28} {result.ratio:6.2f}x  budget {result.budget}", flush=True)
        session.spark.stop()
    keep(results, name, {"rows": rows, "runs": runs, "load_before": round(load, 1)})
    Console().print(table_of(results))


def _settings(folder: Path) -> dict[str, str]:
    return {**SETTINGS, **NATIVE_SETTINGS, "spark.sql.catalog.native.warehouse": str(folder / "native")}


def _measured(
    session: Session, formats: tuple[str, ...], cases: list[str], rows: int, runs: int, folder: Path
) -> Iterator[Result]:
    if "tables" in cases:
        for catalog in formats:
            yield from Bench(session, catalog, rows, runs, folder).cases()
    if "commits" in cases:
        for catalog in formats:
            yield from CommitBench(session, catalog, runs, folder).cases()
    if "folds" in cases:
        for catalog in formats:
            yield from FoldBench(session, catalog, rows // 4, runs).cases()
    if "feeds" in cases:
        for catalog in formats:
            yield from FeedBench(session, catalog, rows, runs).cases()
    if "streams" in cases:
        for catalog in formats:
            yield from StreamBench(session, catalog, rows, runs, folder).cases()
    if "merges" in cases:
        yield from MergeBench(session, formats, rows, min(runs, 3), folder).cases()


def keep(results: list[Result], name: str, facts: dict[str, float]) -> None:
    """Writes results of a run, and what is to be known of it, to ``results/<name>.json``."""
    _RESULTS.mkdir(exist_ok=True)
    found = {
        "version": trinity.__version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        **facts,
        "results": [r.to_dict() for r in results],
    }
    (_RESULTS / f"{name}.json").write_text(json.dumps(found, indent=2) + "\n")


def table_of(results: list[Result]) -> Table:
    """Results beside their budgets, for people."""
    table = Table(title="Ratios of one run")
    for index, head in enumerate(("case", "table", "ours", "reference", "ratio", "budget", "")):
        table.add_column(head, justify="right" if 1 < index < 5 else "left", no_wrap=True)
    for r in results:
        values = [f"{r.ours:.2f} {r.unit}", f"{r.reference:.2f} {r.unit}", f"{r.ratio:.2f}x", r.budget]
        table.add_row(r.case, r.catalog, *values, "kept" if r.within else "[red]missed[/red]")
    return table


def main() -> None:
    """The command."""
    typer.run(run)
