"""Known gaps: expected failures, which the file may not list any longer than they occur."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from typer.testing import CliRunner

from trinity.errors import TrinityError
from trinity.memory import MemoryMetadata
from trinity.spi import ConnectorMetadata
from trinity_conformance import Report, run_check
from trinity_conformance.command import cli
from trinity_conformance.suite.gaps import Gap, load_gaps

ISSUE = "https://example.org/issues/7"
LATER, EARLIER = date(2999, 1, 1), date(2020, 1, 1)
GAP = """[[gap]]
check = "capabilities"
reason = "TRUNCATE is under way"
issue = "https://example.org/issues/7"
expires = 2999-01-01
"""


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the in-memory format refuse TRUNCATE, which it declares."""
    monkeypatch.setattr(MemoryMetadata, "truncate", ConnectorMetadata.truncate)


def run(*gaps: Gap) -> Report:
    return run_check("memory", None, "capabilities", gaps=gaps)


def test_a_known_gap_is_no_failure(broken: None) -> None:
    assert not run().conforms
    report = run(Gap("capabilities", "TRUNCATE is under way", ISSUE, LATER))
    assert (report.conforms, [r.status for r in report.results]) == (True, ["known gap"])
    assert [f.message for f in report.results[0].failures] != []


def test_an_expired_gap_fails(broken: None) -> None:
    report = run(Gap("capabilities", "TRUNCATE is under way", ISSUE, EARLIER))
    assert not report.conforms
    assert f"the known gap expired on 2020-01-01 ({ISSUE}): TRUNCATE is under way" in report.text()


def test_a_gap_whose_check_passes_fails() -> None:
    report = run(Gap("capabilities", "TRUNCATE is under way", ISSUE, LATER))
    assert not report.conforms
    assert f"passes, although it is a known gap ({ISSUE})" in report.text()


def test_the_command_takes_a_file(broken: None, tmp_path: Path) -> None:
    file = tmp_path / "gaps.toml"
    file.write_text(GAP)
    words = ["run", "memory", "--no-spark", "--check", "capabilities", "--traces", str(tmp_path)]
    assert CliRunner().invoke(cli.app, words).exit_code == 1
    done = CliRunner().invoke(cli.app, [*words, "--gaps", str(file)])
    assert (done.exit_code, "TRUNCATE is under way" in done.output) == (0, True), done.output


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gap = 1 1", "cannot be read"),
        ("[[gaps]]\n", "has 'gaps'; each gap is a [[gap]]"),
        (GAP.replace("issue =", "ticket ="), "it needs check, reason, issue, expires"),
        (GAP.replace("2999-01-01", '"soon"'), "a value of another kind"),
        (
            GAP.replace('"capabilities"', '"capacities"'),
            "no check 'capacities'. Did you mean 'capabilities'?",
        ),
        (GAP + GAP, "has 'capabilities' twice"),
    ],
)
def test_a_file_that_says_something_else_is_refused(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "gaps.toml"
    file.write_text(text)
    with pytest.raises(TrinityError) as caught:
        load_gaps(file)
    assert (caught.value.code, message in caught.value.message) == ("INVALID_ARGUMENTS", True), caught.value.message
