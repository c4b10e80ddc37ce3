"""Runs the demo from the source to the report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from trinity.connecting import connect
from trinity.demo.answers import truth
from trinity.demo.findings import Findings, FormatFindings
from trinity.demo.flights import ChangeStream, change_stream, extract_csv, read_flights
from trinity.demo.load import create_tables, load, measure, table_of
from trinity.demo.readers import READERS, look
from trinity.demo.report import write_report
from trinity.demo.show import answers_table, figures_table, readers_table, streams_table
from trinity.demo.streams import create_stream_tables, load_streams, stream_answers
from trinity.errors import TrinityError
from trinity.session import Session

__all__ = ["CATALOGS", "run_demo"]

CATALOGS: Final = ("parquet", "delta", "iceberg")


def run_demo(output: Path, batches: int = 12, console: Console | None = None) -> Findings:
    """Loads the flights into three formats, checks the answers, and writes ``output/report.html``.

    May be killed at any moment and run again with the same ``batches``: what is committed is not repeated.

    Args:
        output: folder for the source, the warehouse and the report.
        batches: number of micro-batches.
        console: where to print.

    Raises:
        TrinityError: CONFIGURATION_INVALID when a package is missing; whatever the tables raise.
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
    with connect(output / "warehouse") as session:
        create_tables(session, CATALOGS)
        _refuse_other_split(session, batches)
        _load_all(session, stream, findings, console)
        _measure_all(session, findings, console)
        _compact_all(session, findings, console)
        _second_scene(session, stream, findings, console)
    tables = figures_table(findings), answers_table(findings), readers_table(findings), streams_table(findings)
    for table in tables:
        console.print(table)
    report = write_report(findings, output / "report.html")
    console.print(f"Report: {report}   ({time.perf_counter() - started:.0f} s in all)")
    return findings


def _refuse_other_split(session: Session, batches: int) -> None:
    """The number of batches is kept with the tables: batch 3 of 12 and batch 3 of 20 are not the same rows."""
    kept = Path(table_of(session, CATALOGS[0]).handle.location).parents[2] / "batches"
    if not kept.exists():
        temporary = kept.with_suffix(".tmp")
        temporary.write_text(str(batches))
        temporary.replace(kept)
    if (found := int(kept.read_text())) != batches:
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"The tables in '{kept.parent}' were begun with {found} batches, not {batches}; "
            f"run with --batches {found}, or with another --output.",
        )


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:<20}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console
    )


def _load_all(session: Session, stream: ChangeStream, findings: Findings, console: Console) -> None:
    """Every format gets each batch before the next one comes, as from a live stream."""
    pieces: Sequence[pa.Table] = stream.batches(findings.batches)
    with _progress(console) as progress:
        for catalog in CATALOGS:
            bar = progress.add_task(f"loading {catalog}", total=len(pieces))

            def advance(bar: int = bar) -> None:
                progress.advance(bar)  # type: ignore[arg-type]

            times = load(table_of(session, catalog), pieces, advance)
            findings.formats[catalog] = FormatFindings(commits=times)


def _measure_all(session: Session, findings: Findings, console: Console) -> None:
    """Reads every table, Trinity's way and the others' ways, before compaction."""
    readers = [r for r in READERS if not _compacted(session, r.catalog)]
    with _progress(console) as progress:
        bar = progress.add_task("reading merged", total=len(CATALOGS) + len(readers))
        for catalog, found in findings.formats.items():
            if not _compacted(session, catalog):
                found.before, answers = measure(table_of(session, catalog))
                found.answers.append(answers)
            progress.advance(bar)
        for reader in READERS:
            findings.seen[reader.name] = (look(session, reader) if reader in readers else None, None)
            progress.advance(bar, int(reader in readers))


def _compact_all(session: Session, findings: Findings, console: Console) -> None:
    """Compacts every table, and reads everything again."""
    with _progress(console) as progress:
        bar = progress.add_task("compacting", total=len(CATALOGS) + len(READERS))
        for catalog, found in findings.formats.items():
            table = table_of(session, catalog)
            start = time.perf_counter()
            if not table.compact(full=True).skipped:
                found.compaction_s = time.perf_counter() - start
            found.after, answers = measure(table)
            found.answers.append(answers)
            progress.advance(bar)
        for reader in READERS:
            findings.seen[reader.name] = (findings.seen[reader.name][0], look(session, reader))
            progress.advance(bar)


def _second_scene(session: Session, stream: ChangeStream, findings: Findings, console: Console) -> None:
    """Departures and arrivals apart, and totals by airline; read before and after a compaction."""
    create_stream_tables(session, CATALOGS)
    pieces = stream.batches(findings.batches)
    with _progress(console) as progress:
        for catalog, found in findings.formats.items():
            bar = progress.add_task(f"two streams, {catalog}", total=len(pieces) + 2)

            def advance(bar: int = bar) -> None:
                progress.advance(bar)  # type: ignore[arg-type]

            load_streams(session, catalog, pieces, advance)
            found.streams.append(stream_answers(session, catalog))
            advance()
            for name in ("legs", "airlines"):
                session.table(f"{catalog}.default.{name}").compact(full=True)
            found.streams.append(stream_answers(session, catalog))
            advance()


def _compacted(session: Session, catalog: str) -> bool:
    files = table_of(session, catalog).splits().files
    return bool(files) and all(f.tier.value == "base" for f in files)
