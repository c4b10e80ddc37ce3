"""The run of the demo, from the source to the report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from trinity.connecting import connect
from trinity.demo.answers import truth
from trinity.demo.findings import Findings, FormatFindings
from trinity.demo.flights import ChangeStream, change_stream, extract_csv, read_flights
from trinity.demo.load import STAGES, create_tables, load, measure, stage_of, table_of
from trinity.demo.readers import READERS, look
from trinity.demo.report import write_report
from trinity.demo.show import tables
from trinity.demo.streams import create_stream_tables, load_streams, stream_answers
from trinity.errors import TrinityError
from trinity.session import Session
from trinity.storage import AlreadyExists, Location, ObjectStore
from trinity.table import Table
from trinity.target import Engine

CATALOGS: Final = ("parquet", "delta", "iceberg")


def run_demo(
    output: Path,
    batches: int = 12,
    console: Console | None = None,
    warehouse: str | None = None,
    engine: Engine = "auto",
) -> Findings:
    """Load the flights into three formats, check the answers, and write ``output/report.html``.

    May be killed at any moment and run again with the same ``batches``: committed batches are not repeated. The tables
    are in ``warehouse``: a folder, by default in ``output``, or ``s3://bucket/path``, which is reached by the
    environment's settings; Iceberg's catalog is then a file in ``output``. With engine ``local`` the readers that are
    Spark's are left out.

    Raises:
        TrinityError: CONFIGURATION_INVALID when a package is missing; NOT_SUPPORTED for a place in another object
            store; and errors of the tables.
    """
    console = console or Console()
    started = time.perf_counter()
    source = extract_csv(output)
    stream = change_stream(read_flights(source))
    findings = Findings(truth(source), stream.rows.num_rows, stream.late, batches)
    console.print(
        f"{findings.delivered:,} changes to {findings.truth.live + findings.truth.cancelled:,} flights, "
        f"{findings.late:,} of them delivered after a newer one, in {batches} micro-batches"
    )
    location = Location.of(warehouse or str(output / "warehouse"))
    if not location.on_disk and location.kind.scheme != "s3":
        raise TrinityError(
            "NOT_SUPPORTED",
            f"The demo cannot be at '{location}': the engines that it shows know folders and S3 alone.",
        )
    with connect(str(location), catalogs=_catalogs(location, output), engine=engine) as session:
        create_tables(session, CATALOGS)
        _refuse_other_split(ObjectStore(location), batches)
        _load_all(session, stream, findings, console)
        _measure_all(session, findings, console)
        _second_scene(session, stream, findings, console)
    for table in tables(findings):
        console.print(table)
    report = write_report(findings, output / "report.html")
    console.print(f"Report: {report}   ({time.perf_counter() - started:.0f} s in all)")
    return findings


def _catalogs(location: Location, output: Path) -> dict[str, dict[str, str]]:
    """Return the catalogs that a warehouse does not have by default."""
    if location.on_disk:
        return {}
    names = f"sqlite:///{output.resolve()}/iceberg.db"
    return {"iceberg": {"connector": "iceberg", "warehouse": str(location.join("iceberg")), "uri": names}}


def _refuse_other_split(warehouse: ObjectStore, batches: int) -> None:
    """Refuse another number of batches than the one kept with the tables: each number splits the rows differently."""
    with suppress(AlreadyExists):
        warehouse.put_if_absent("batches", str(batches).encode())
    if (found := int(warehouse.get("batches"))) != batches:
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"The tables in '{warehouse.root}' were begun with {found} batches, not {batches}; "
            f"run with --batches {found}, or in another place.",
        )


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:<20}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console
    )


def _load_all(session: Session, stream: ChangeStream, findings: Findings, console: Console) -> None:
    """Load all batches into each format, one format after another."""
    pieces: Sequence[pa.Table] = stream.batches(findings.batches)
    with _progress(console) as progress:
        for catalog in CATALOGS:
            bar = progress.add_task(f"loading {catalog}", total=len(pieces))
            times = load(table_of(session, catalog), pieces, partial(progress.advance, bar))
            findings.formats[catalog] = FormatFindings(commits=times)


def _measure_all(session: Session, findings: Findings, console: Console) -> None:
    """Bring every table to each stage, and read it there by Trinity and by the other readers."""
    with _progress(console) as progress:
        for catalog, found in findings.formats.items():
            readers = [r for r in READERS if r.catalog == catalog]
            table = table_of(session, catalog)
            left = STAGES[STAGES.index(stage_of(table)) :]
            bar = progress.add_task(f"reading {catalog}", total=len(left) * (1 + len(readers)))
            for stage in left:
                _come_to(stage, table, found)
                found.figures[stage], answers = measure(table)
                found.answers.append(answers)
                progress.advance(bar)
                for reader in readers:
                    if (seen := look(session, reader)) is not None:
                        findings.seen[reader.name, stage] = seen
                    progress.advance(bar)


def _come_to(stage: str, table: Table, found: FormatFindings) -> None:
    start = time.perf_counter()
    if stage != stage_of(table):
        table.compact("resolve" if stage == "resolved" else "full")
        found.took[stage] = time.perf_counter() - start


def _second_scene(session: Session, stream: ChangeStream, findings: Findings, console: Console) -> None:
    """Load departures and arrivals as two streams, and totals by airline; read before and after a compaction."""
    create_stream_tables(session, CATALOGS)
    pieces = stream.batches(findings.batches)
    with _progress(console) as progress:
        for catalog, found in findings.formats.items():
            advance = partial(progress.advance, progress.add_task(f"two streams, {catalog}", total=len(pieces) + 2))
            load_streams(session, catalog, pieces, advance)
            found.streams.append(stream_answers(session, catalog))
            advance()
            for name in ("legs", "airlines"):
                session.table(f"{catalog}.default.{name}").compact(full=True)
            found.streams.append(stream_answers(session, catalog))
            advance()
