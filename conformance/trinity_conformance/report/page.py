"""Results as one HTML page: no script, nothing loaded from elsewhere, light and dark."""

from __future__ import annotations

from html import escape
from typing import Final

from trinity_conformance.report.marks import MARKS
from trinity_conformance.report.results import Finding, Outcome, Results

_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid #8886; }
td.number { text-align: right; }
pre { overflow-x: auto; padding: .8rem; border: 1px solid #8886; }
.passed { color: light-dark(#176117, #7bd87b); }
.failed, .blocked { color: light-dark(#a11212, #ff9b9b); font-weight: bold; }
"""
_HEADINGS: Final = ("Result", "Check", "Rules", "Comparisons", "What")


def page(results: Results) -> str:
    """Return results as an HTML document."""
    headings = "".join(f'<th scope="col">{heading}</th>' for heading in _HEADINGS)
    rows = "\n".join(map(_row, results.checks))
    versions = "".join(f"<li>{escape(name)} {escape(number)}</li>" for name, number in results.versions.items())
    found = "\n".join(_finding(outcome, finding) for outcome, finding in results.findings)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(results.head)}</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<h1>{escape(results.connector)} {results.verdict}</h1>
<p>{escape(results.head)}. {escape(results.work)}.</p>
{found and f"<h2>Findings</h2>{found}"}
<h2>Checks</h2>
<table>
<thead><tr>{headings}</tr></thead>
<tbody>
{rows}
</tbody>
</table>
<h2>Versions</h2>
<ul>{versions}</ul>
</main>
</body>
</html>
"""


def _row(outcome: Outcome) -> str:
    name = outcome.status.replace(" ", "-")
    status = f'<td class="{name}"><span aria-hidden="true">{MARKS[outcome.status]}</span> {outcome.status}</td>'
    texts = "".join(f"<td>{escape(text)}</td>" for text in (outcome.id, " ".join(outcome.rules)))
    return f'<tr>{status}{texts}<td class="number">{outcome.observations}</td><td>{escape(outcome.note)}</td></tr>'


def _finding(outcome: Outcome, finding: Finding) -> str:
    title = escape(f"{outcome.id} {finding.history}".strip())
    again = f"replay: {finding.again}" if finding.again else ""
    text = escape("\n\n".join(part for part in (finding.message, finding.steps, again) if part))
    return f"<details open><summary>{title}</summary><pre>{text}</pre></details>"
