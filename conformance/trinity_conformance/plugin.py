"""A pytest plugin: ``pytest -p trinity_conformance.plugin --format acme`` has a test for each check.

Without ``--format`` it adds nothing, and loads nothing of the suite.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trinity.spi import Format
    from trinity_conformance.report.results import Outcome, Results

_ADAPTER: pytest.StashKey[str | type[Format]] = pytest.StashKey()
_RESULTS: pytest.StashKey[Results] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the suite."""
    group = parser.getgroup("trinity-conformance", "conformance of a table format adapter of Trinity")
    group.addoption("--format", metavar="ADAPTER", help="test this adapter: its name, or module:Class")
    group.addoption("--conformance-budget", default="smoke", metavar="BUDGET", help="smoke, standard, deep or soak")
    group.addoption("--conformance-seed", type=int, default=0, metavar="N", help="number of the first history")
    group.addoption("--conformance-no-spark", action="store_true", help="without Spark and Java")


@pytest.hookimpl(tryfirst=True)  # so that -k and -m choose among the checks, too
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add a test for each check."""
    if config.getoption("--format") is None:
        return
    import typer

    from trinity_conformance.command.environment import adapter
    from trinity_conformance.suite.checks import CHECKS

    try:
        config.stash[_ADAPTER] = adapter(config.getoption("--format"))
    except typer.Exit as error:
        raise pytest.UsageError("--format names no adapter") from error
    items += [CheckItem.from_parent(session, name=check.id) for check in CHECKS]


class CheckItem(pytest.Item):
    """One check as a test. The first one that runs plays the histories of all checks that were chosen."""

    def runtest(self) -> None:
        """Fail, or skip, as the check's outcome says."""
        if _RESULTS not in self.config.stash:
            chosen = [item.name for item in self.session.items if isinstance(item, CheckItem)]
            self.config.stash[_RESULTS] = _results(self.config, chosen)
        outcome = next(o for o in self.config.stash[_RESULTS].checks if o.id == self.name)
        if outcome.status in ("failed", "blocked"):
            pytest.fail(_findings_text(outcome), pytrace=False)
        if outcome.status != "passed":
            pytest.skip(f"{outcome.status}: {outcome.note}")

    def reportinfo(self) -> tuple[str, None, str]:
        """Return the location shown beside the outcome, without a file."""
        adapter = self.config.getoption("--format")
        return f"trinity-conformance[{adapter}]", None, f"{self.name} ({adapter})"


def _results(config: pytest.Config, chosen: Iterable[str]) -> Results:
    """Run the suite, and save the histories of findings for a replay."""
    from trinity_conformance.command.environment import local_spark, quiet
    from trinity_conformance.playing.traces import TRACES
    from trinity_conformance.report.results import Results
    from trinity_conformance.suite.running import run_check

    given: dict[str, Any] = {"budget": config.getoption("--conformance-budget")}
    given["seed"] = config.getoption("--conformance-seed")
    names = list(chosen)
    subject, alone = config.stash[_ADAPTER], config.getoption("--conformance-no-spark")
    with quiet(), nullcontext(None) if alone else local_spark(subject, {}) as spark:
        report = run_check(subject, spark, names[0] if len(names) == 1 else None, **given)
    report.save(config.rootpath / TRACES)
    if report.interrupted:  # by Ctrl-C, which pytest handles
        raise KeyboardInterrupt
    return Results.of(report, spark=not alone)


def _findings_text(outcome: Outcome) -> str:
    from trinity_conformance.report.text import finding_text

    return "\n\n".join(finding_text(outcome, finding) for finding in outcome.findings) or outcome.status
