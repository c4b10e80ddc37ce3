"""The demo's report: one HTML file with its plot, without scripts or downloads."""

from __future__ import annotations

import html
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trinity.demo.flights import airlines
from trinity.demo.show import CAVEAT, answers_rows, figures_rows, readers_rows, streams_rows

if TYPE_CHECKING:
    from trinity.demo.findings import Findings

_STYLE: Final = """
:root { --ink: #1f2430; --soft: #5d6575; --line: #dde1e8; --late: #b4552d; --early: #2f6f8f; --paper: #ffffff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8ee; --soft: #9aa3b5; --line: #343a46; --late: #e08a5b; --early: #6db3d3; --paper: #16191f; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 60rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem } h2 { font-size: 1.1rem; margin-top: 2.2rem }
p { max-width: 44rem } .soft { color: var(--soft) } .wide { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { text-align: right; padding: .25rem .8rem; border-bottom: 1px solid var(--line) }
th { font-weight: 600 } .text { text-align: left }
svg { width: 100%; height: auto; font: 13px system-ui, sans-serif } svg text { fill: var(--ink) }
.axis { stroke: var(--line) } .late { fill: var(--late) } .early { fill: var(--early) }
"""

_READERS: Final = (
    "With a log they see row versions. A resolve gives Delta deletion vectors and Iceberg position deletes, so that "
    "their readers see the live rows, while no file is rewritten; a full compaction leaves only live rows in the files."
)
_STREAMS: Final = (
    "Departures and arrivals come as two streams, each out of order in its own way, each with a sequence group of its "
    "own (merge engine partial-update); a second table keeps sums by airline (aggregation)."
)

_WIDTH: Final = 860
_ROW: Final = 26
_LABELS: Final = 210
"""Plot measures, in SVG units."""


def write_report(findings: Findings, target: Path) -> Path:
    """Write the report atomically, and return its path."""
    wrong = findings.differences()
    counted = (
        f"{findings.delivered:,} changes to the {findings.truth.live + findings.truth.cancelled:,} flights that were "
        f"to leave New York in 2013, delivered in {findings.batches} micro-batches. {findings.late:,} rows came after "
        "a newer version of their flight; cancellations came as tombstones."
    )
    verdict = "All three formats give the answers that the source gives." if not wrong else "; ".join(wrong)
    body = [
        "<h1>One change stream, three formats</h1>",
        f"<p class='soft'>{counted}</p>",
        f"<p><strong>{html.escape(verdict)}</strong></p>",
        "<h2>Mean arrival delay by airline, minutes</h2>",
        _delay_plot(findings),
        "<h2>The same questions to each</h2>",
        _table(*answers_rows(findings)),
        "<h2>Figures</h2>",
        _table(*figures_rows(findings)),
        f"<p class='soft'>{CAVEAT}</p>",
        "<h2>What other readers see in the files</h2>",
        f"<p>{_READERS}</p>",
        _table(*readers_rows(findings), text_columns=2),
        "<h2>Two streams, one row per flight</h2>",
        f"<p>{_STREAMS}</p>",
        _table(*streams_rows(findings)),
    ]
    page = (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>Trinity: flights of 2013</title>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<style>{_STYLE}</style></head><body>{''.join(body)}</body></html>\n"
    )
    temporary = target.with_suffix(".tmp")
    temporary.write_text(page, encoding="utf-8")
    temporary.replace(target)
    return target


def _table(head: list[str], rows: list[list[str]], text_columns: int = 1) -> str:
    def cells(tag: str, row: list[str]) -> str:
        marks = (" class='text'" if i < text_columns else "" for i in range(len(row)))
        return "".join(f"<{tag}{m}>{html.escape(c)}</{tag}>" for m, c in zip(marks, row, strict=True))

    lines = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<div class='wide'><table><tr>{cells('th', head)}</tr>{lines}</table></div>"


def _delay_plot(findings: Findings) -> str:
    """Draw bars around zero, the airline with the largest mean delay first, each with its value."""
    found = findings.formats["parquet"].answers[-1]
    means = {carrier: found.mean_delay(carrier) for carrier in found.ranking}
    low, high = min(0.0, *means.values()), max(0.0, *means.values())
    room = _WIDTH - _LABELS - 100  # 50 on either side for the values
    scale = room / (high - low or 1.0)
    zero = _LABELS + 50 - low * scale
    names = airlines()
    bars = [_bar(i, names.get(c, c), v, zero, scale) for i, (c, v) in enumerate(means.items())]
    height = _ROW * len(means) + 8
    return (
        f"<svg viewBox='0 0 {_WIDTH} {height}' role='img' aria-label='Mean arrival delay by airline'>"
        f"<line class='axis' x1='{zero:.1f}' x2='{zero:.1f}' y1='0' y2='{height}'/>{''.join(bars)}</svg>"
    )


def _bar(index: int, name: str, value: float, zero: float, scale: float) -> str:
    top = _ROW * index + 5
    left, width = min(zero, zero + value * scale), abs(value) * scale
    after, anchor = (left + width + 6, "start") if value >= 0 else (left - 6, "end")
    middle = top + 12
    return (
        f"<text x='0' y='{middle}'>{html.escape(name)}</text>"
        f"<rect class='{'late' if value >= 0 else 'early'}' x='{left:.1f}' y='{top}' width='{width:.1f}' height='16'/>"
        f"<text x='{after:.1f}' y='{middle}' text-anchor='{anchor}'>{value:.1f}</text>"
    )
