"""Results as Markdown: a report to attach, and the summary of a job on GitHub."""

from __future__ import annotations

from trinity_conformance.report.marks import MARKS
from trinity_conformance.report.results import Finding, Outcome, Results


def markdown(results: Results) -> str:
    """Return results as Markdown: a table of the checks, then each finding folded away."""
    rows = [
        f"| {MARKS[o.status]} {o.status} | {o.id} | {' '.join(o.rules)} | {o.observations} | {_cell(o.note)} |"
        for o in results.checks
    ]
    head = ["| result | check | rules | comparisons | what |", "|---|---|---|--:|---|"]
    versions = ", ".join(f"{name} {number}" for name, number in results.versions.items())
    found = [_finding(outcome, finding) for outcome, finding in results.findings]
    parts = [f"## {results.head}", "\n".join([*head, *rows]), f"{results.work}. {versions}.", *found]
    return "\n\n".join(parts) + "\n"


def _finding(outcome: Outcome, finding: Finding) -> str:
    again = f"\n\nreplay: {finding.again}" if finding.again else ""
    text = "\n\n".join(part for part in (finding.message, finding.steps) if part)
    fence = "`" * (max((len(run) for run in _runs(text)), default=0) + 1)
    fence = fence if len(fence) > 3 else "```"
    title = f"{outcome.id} {finding.history}".strip()
    return f"<details><summary>{title}</summary>\n\n{fence}text\n{text}{again}\n{fence}\n\n</details>"


def _runs(text: str) -> list[str]:
    """Return the runs of backticks in a text."""
    return [part for part in "".join(c if c == "`" else " " for c in text).split() if part]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
