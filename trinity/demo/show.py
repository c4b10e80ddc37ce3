"""The demo's findings as tables for the terminal; the report shows the same rows."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from rich.table import Table

from trinity.demo.flights import airlines
from trinity.demo.load import STAGES
from trinity.demo.readers import READERS, Seen

if TYPE_CHECKING:
    from trinity.demo.findings import Findings, FormatFindings

CAVEAT = "One run on this machine; the first format also pays for Spark's first queries. '-': done by an earlier run."
_NONE = "-"

Rows = list[list[str]]


def figures_rows(findings: Findings) -> tuple[list[str], Rows]:
    """Return (head, rows): one column per format, one row per figure. ``-``: done by an earlier run."""
    head = ["", *findings.formats]
    columns = [_figures(found) for found in findings.formats.values()]
    return head, [[name, *(c[name] for c in columns)] for name in columns[0]]


def _figures(found: FormatFindings) -> dict[str, str]:
    log, resolved, compacted = stages = [found.figures.get(stage) for stage in STAGES]
    return {
        "rows in the log": f"{log.log_rows:,}" if log else _NONE,
        "rows merged": f"{compacted.live_rows:,}" if compacted else _NONE,
        "one commit (median)": _seconds(median(found.commits) if found.commits else None),
        "all commits": _seconds(sum(found.commits) if found.commits else None),
        "merged read": _seconds(log.read_s if log else None),
        "resolve": _seconds(found.took.get("resolved")),
        "read after it": _seconds(resolved.read_s if resolved else None),
        "full compaction": _seconds(found.took.get("compacted")),
        "read after that": _seconds(compacted.read_s if compacted else None),
        "files": " → ".join(f"{f.files}" if f else _NONE for f in stages),
        "size": " → ".join(f"{f.bytes / 1e6:.1f} MB" if f else _NONE for f in stages),
    }


def answers_rows(findings: Findings) -> tuple[list[str], Rows]:
    """Return (head, rows): the answers of every format, and DuckDB's from the source."""
    head = ["", *findings.formats, "source, by DuckDB"]
    every = [*(f.answers[-1] for f in findings.formats.values()), findings.truth]
    rows = [
        ["flights flown", *(f"{a.flown:,}" for a in every)],
        ["cancelled", *(f"{a.cancelled:,}" for a in every)],
    ]
    names = airlines()
    for carrier in findings.truth.ranking:
        means = (f"{a.mean_delay(carrier):.2f} min" if carrier in a.delays else _NONE for a in every)
        rows.append([f"delay {names.get(carrier, carrier)}", *means])
    return head, rows


def readers_rows(findings: Findings) -> tuple[list[str], Rows]:
    """Return (head, rows): the number of rows that each other reader finds in each stage."""
    rows = [
        [reader.catalog, reader.name, *(_row_count(findings.seen.get((reader.name, stage))) for stage in STAGES)]
        for reader in READERS
    ]
    return ["table", "reader", "rows with a log", "resolved", "compacted"], rows


def streams_rows(findings: Findings) -> tuple[list[str], Rows]:
    """Return (head, rows): the answers of the second scene's tables per format, and the source's."""
    head = ["", "flights that departed", "arrival delay of all, minutes", "the same, kept by airline"]
    delay = sum(total for total, _ in findings.truth.delays.values())
    rows: Rows = [["the source", f"{findings.truth.flown:,}", f"{delay:,}", f"{delay:,}"]]
    for catalog, found in findings.formats.items():
        for when, answers in zip(("log", "compacted"), found.streams, strict=True):
            sums = [f"{sum(total for total, _ in d.values()):,}" for d in (answers.delays, answers.totals)]
            rows.append([f"{catalog}, {when}", f"{answers.flown:,}", *sums])
    return head, rows


def tables(findings: Findings) -> list[Table]:
    """Return all tables: figures, answers and whether they agree, other readers, the second scene."""
    figures = _table("Three formats, one change stream", *figures_rows(findings))
    figures.caption, figures.caption_justify = CAVEAT, "left"
    verdict = "all the same" if not findings.differences() else "DIFFERENT"
    streams = "Departures and arrivals as two streams (partial-update), totals by airline (aggregation)"
    return [
        figures,
        _table(f"The same questions to each: {verdict}", *answers_rows(findings)),
        _table("What other readers see in the files", *readers_rows(findings), text_columns=2),
        _table(streams, *streams_rows(findings)),
    ]


def _table(title: str, head: list[str], rows: Rows, text_columns: int = 1) -> Table:
    table = Table(title=title, title_justify="left")
    for index, name in enumerate(head):
        table.add_column(name, justify="left" if index < text_columns else "right")
    for row in rows:
        table.add_row(*row)
    return table


def _seconds(value: float | None) -> str:
    return _NONE if value is None else f"{value:.2f} s"


def _row_count(seen: Seen | None) -> str:
    return _NONE if seen is None else f"{seen.rows:,}"
