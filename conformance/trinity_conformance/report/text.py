"""Results as text, for a terminal, a file or a pipe. Every colour goes with a word."""

from __future__ import annotations

from io import StringIO
from typing import Final

from rich.console import Console
from rich.table import Table

from trinity_conformance.report.results import Finding, Outcome, Results

_COLOURS: Final = {"passed": "green", "failed": "red", "blocked": "red"}
_WIDTH: Final = 160


def show(console: Console, results: Results) -> None:
    """Print results: the findings, a table of the checks, and the skipped ones with the reasons."""
    for outcome, finding in results.findings:
        console.print(finding_text(outcome, finding), markup=False)
        console.print()
    table = Table(title=results.head)
    for heading in ("check", "rules", "result", "comparisons", "what"):
        table.add_column(heading, justify="right" if heading == "comparisons" else "left")
    for outcome in results.checks:
        colour = _COLOURS.get(outcome.status, "yellow")
        status = f"[{colour}]{outcome.status}[/]"
        table.add_row(outcome.id, " ".join(outcome.rules), status, str(outcome.observations), outcome.note)
    console.print(table)
    console.print(results.work)
    for line in _notes(results):
        console.print(line, markup=False)


def text(results: Results) -> str:
    """Return results as plain text."""
    console = Console(file=StringIO(), no_color=True, highlight=False, width=_WIDTH)
    show(console, results)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def finding_text(outcome: Outcome, finding: Finding) -> str:
    """Return the text of a finding: the difference, the steps, and the command that replays them."""
    if not finding.history:
        return f"{outcome.id}: {finding.message}"
    return f"{outcome.id}, {finding.history}:\n{finding.message}\n\n{finding.steps}\n\nreplay: {finding.again}"


def _notes(results: Results) -> list[str]:
    lines = [f"left to Spark ({count} times): {reason}" for reason, count in results.left_to_spark.items()]
    lines += [f"not supported ({count} histories left out): {why}" for why, count in results.unsupported.items()]
    if results.lacks:
        lines.append(f"{results.connector} does not declare: {', '.join(results.lacks)}")
    if results.undeclared:
        lines.append(f"works, and is not declared: {', '.join(results.undeclared)}")
    if left_out := results.with_status("left out"):
        lines.append(f"left out without Spark: {', '.join(left_out)}")
    if blocked := results.with_status("blocked"):
        lines.append(f"blocked: {len(blocked)} checks wait for the first steps to work; mend these, and run again")
    if (
        results.verdict == "does not conform"
        and (short := results.with_status("inconclusive"))
        and not results.interrupted
    ):
        lines.append(
            f"saw too little, as findings ended their histories: {', '.join(short)}; mend these, and run again"
        )
    if results.interrupted:
        seen = ", ".join(results.with_status("inconclusive"))
        lines.append(f"interrupted: this is what was played until then. Not over: {seen}")
    elif results.is_sample and results.verdict == "inconclusive":
        lines.append(
            f"nothing was found; {results.budget} plays too little to say that it conforms: --budget smoke does"
        )
    elif results.verdict == "inconclusive":
        seen = ", ".join(results.with_status("inconclusive"))
        lines.append(f"inconclusive: {seen}; give a larger --budget, or one --check at a time")
    return lines
