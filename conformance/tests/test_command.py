"""What ``trinity-conformance run`` reports to CI: its exit codes, and the messages with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import trinity
from docs.checks import README, with_checks
from docs.site import DOCS
from trinity import Column
from trinity.spi import EVERYTHING
from trinity_conformance import CheckResult, Report
from trinity_conformance.command import cli
from trinity_conformance.command.explain import PLANTED, rules
from trinity_conformance.mutants.adapters import ADAPTER_MUTANTS
from trinity_conformance.mutants.tables import ModelSubject
from trinity_conformance.playing import traces
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.observations import Tally
from trinity_conformance.playing.runner import play
from trinity_conformance.report.results import load
from trinity_conformance.suite import checks
from trinity_conformance.suite.budgets import BUDGETS
from trinity_conformance.suite.checks import CHECKS, Check, check_of, checks_as_of
from trinity_conformance.suite.parts import generated_of
from trinity_conformance.suite.results import results_of

IDEMPOTENCE, ROW_CHANGE = check_of("idempotence"), check_of("row-change")
PASSED = CheckResult(IDEMPOTENCE, 5)
FAILED = CheckResult(IDEMPOTENCE, 5, failures=[NonConformance("idempotence", "row 1 is there twice")])
INCONCLUSIVE = CheckResult(IDEMPOTENCE, 1, {"retry": (1, 2)})
LEFT_OUT = CheckResult(IDEMPOTENCE, 1, {"retry": (1, 2)}, alone=True)
BLOCKED = CheckResult(ROW_CHANGE, blocked=True)
NOT_SUPPORTED = CheckResult(ROW_CHANGE, lacking=True)


@pytest.mark.parametrize(
    ("results", "code", "message"),
    [
        ([PASSED], 0, "passed"),
        ([PASSED, NOT_SUPPORTED], 0, "not supported"),
        ([PASSED, LEFT_OUT], 0, "left out without Spark: idempotence"),
        ([INCONCLUSIVE], 3, "inconclusive: idempotence;"),
        ([INCONCLUSIVE, FAILED], 1, "row 1 is there twice"),
        ([FAILED, BLOCKED], 1, "blocked: 1 checks wait for the first steps"),
    ],
)
def test_exit_codes(
    results: list[CheckResult], code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(connector: str, *_: Any, **__: Any) -> Report:
        return Report(connector, "smoke", 0, results, Tally())

    monkeypatch.setattr(cli, "run_check", run)
    done = CliRunner().invoke(cli.app, ["run", "memory", "--no-spark", "--traces", str(tmp_path)])
    assert done.exit_code == code, done.output
    assert "memory (trinity.memory:MemoryFormat, of trinity-merge" in done.output
    assert message in done.output


def test_a_suite_that_breaks_says_so_and_keeps_the_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: Any, **__: Any) -> Report:
        raise ZeroDivisionError("out of luck")

    monkeypatch.setattr(cli, "run_check", run)
    done = CliRunner().invoke(cli.app, ["run", "memory", "--no-spark", "--traces", str(tmp_path)])
    assert (done.exit_code, "says nothing of the adapter: ZeroDivisionError: out of luck" in done.output) == (4, True)
    assert "Traceback" in (tmp_path / "crash.txt").read_text()


BLIND = """
from trinity.memory import MemoryFormat

class Blind(MemoryFormat):
    def create(self, catalog, options, context):
        made = super().create(catalog, options, context)
        made.metadata.get_splits = None
        return made
"""


@pytest.fixture
def adapters_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to an empty folder, and import adapters from it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", "")


FORGETFUL = """
from dataclasses import replace
from trinity.memory import MemoryFormat

class Forgetful(MemoryFormat):
    def create(self, catalog, options, context):
        made = super().create(catalog, options, context)
        splits = made.metadata.get_splits
        made.metadata.get_splits = lambda table: replace(splits(table), sidecar=(), files=splits(table).files[-2:])
        return made
"""


@pytest.mark.usefixtures("adapters_here")
def test_the_quick_budget_finds_what_is_plain() -> None:
    Path("forgetful.py").write_text(FORGETFUL)
    done = CliRunner().invoke(cli.app, ["run", "forgetful:Forgetful", "--no-spark", "--budget", "quick"])
    assert done.exit_code == 1, done.output
    assert "does not conform: quick without Spark" in done.output


def test_the_quick_budget_never_says_that_an_adapter_conforms(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["run", "memory", "--no-spark", "--budget", "quick", "--check", "capabilities"]
    done = CliRunner().invoke(cli.app, words)
    assert done.exit_code == 3, done.output
    assert "nothing was found; quick plays too little to say that it conforms" in " ".join(done.output.split())


@pytest.mark.usefixtures("adapters_here")
def test_an_adapter_that_cannot_be_read_is_one_failure_and_the_rest_is_blocked() -> None:
    """The class is run by its name, from a file that is not installed."""
    Path("blind.py").write_text(BLIND)
    done = CliRunner().invoke(cli.app, ["run", "blind:Blind", "--no-spark", "--report", "results.json"])
    assert done.exit_code == 1, done.output
    assert done.output.count("'NoneType' object is not callable") == 1
    found = load(Path("results.json"))
    assert found.with_status("failed") == ["first-steps"]
    assert found.with_status("blocked") == [c.id for c in CHECKS[1:]]
    [(_, finding)] = found.findings
    again = CliRunner().invoke(cli.app, ["replay", finding.history, "--format", "blind:Blind", "--no-spark"])
    assert (again.exit_code, "blind:Blind: failed at step 0" in again.output) == (1, True), again.output


def test_the_checks_of_an_earlier_version(monkeypatch: pytest.MonkeyPatch) -> None:
    newer = replace(IDEMPOTENCE, id="newer", since="0.10.0")
    monkeypatch.setattr(checks, "CHECKS", (IDEMPOTENCE, newer))
    assert [c.id for c in checks_as_of("0.9.1")] == ["idempotence"]
    for version in ("0.10.0", "0.10", "0"):
        assert [c.id for c in checks_as_of(version)] == ["idempotence", "newer"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["memry"], "memory"),
        (["os:path"], "is no adapter"),
        (["nowhere:Format"], "cannot be imported"),
        (["memory", "--as-of", "new"], "'new' is no version"),
        (["memory", "--as-of", "9.9"], "'9.9' is to come"),
        (["memory", "--as-of", "0.0.9"], "'0.0.9' is before the first version of the suite, 0.1.0"),
        (["memory", "--as-of", "9.9", "--check", "split"], "'9.9' is to come"),
        (["memory", "--report", "none/x.json"], "There is no folder 'none'"),
        (["memory", "--report", "x.pdf"], "There is no form of a report '.pdf'"),
    ],
)
@pytest.mark.usefixtures("adapters_here")
def test_wrong_usage(words: list[str], message: str) -> None:
    done = CliRunner().invoke(cli.app, ["run", *words])
    assert (done.exit_code, message in done.output) == (2, True), done.output


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.id)
def test_every_check_is_explained(check: Check) -> None:
    done = CliRunner().invoke(cli.app, ["explain", check.id])
    assert done.exit_code == 0, done.output
    assert all(f"  {rule}  {text}" in done.output for rule, text in rules().items() if rule in check.rules)


def test_an_explanation_has_rule_situations_and_faults() -> None:
    done = CliRunner().invoke(cli.app, ["explain", "idempotence"])
    assert "is above the highest" in done.output or "not above the highest one recorded" in done.output
    assert "a transaction number that had been recorded (at least 2 times)" in done.output
    faults = (
        "TransactionInASecondCommit: ",
        "of the model",
        "TransactionsIgnored: A retry is appended again (against L4)",
    )
    assert [done.output.index(fault) for fault in faults] == sorted(done.output.index(fault) for fault in faults)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["run", "memory", "--option", "=1"], "give NAME=VALUE"),
        (["run", "memory", "--option", "uri"], "--option 'uri' is no setting"),
        (["replay", "TRACE", "--warehouse", "s3://b/c"], "name it by --format"),
    ],
)
def test_settings_of_a_catalog_that_are_none(command: list[str], message: str, tmp_path: Path) -> None:
    part = next(generated_of([IDEMPOTENCE], BUDGETS["smoke"], 0, EVERYTHING, Tally()))
    trace = str(traces.save(next(iter(part.histories)), tmp_path))
    done = CliRunner().invoke(cli.app, [trace if word == "TRACE" else word for word in command])
    assert (done.exit_code, message in done.output) == (2, True), done.output


@pytest.mark.parametrize("command", [["run", "parquet", "--no-spark"], ["replay", "TRACE", "--format", "parquet"]])
def test_a_warehouse_with_tables_is_refused(command: list[str], tmp_path: Path) -> None:
    with trinity.connect(tmp_path, catalog="parquet", engine="local") as session:
        session.create_table("t", [Column("k", "int")])
    part = next(generated_of([IDEMPOTENCE], BUDGETS["smoke"], 0, EVERYTHING, Tally()))
    trace = str(traces.save(next(iter(part.histories)), tmp_path / "traces"))
    command = [trace if word == "TRACE" else word for word in command] + ["--warehouse", str(tmp_path / "parquet")]
    done = CliRunner().invoke(cli.app, command)
    assert (done.exit_code, "has tables already, as 't'" in done.output) == (2, True), done.output


def test_smoke_meets_what_every_check_is_about() -> None:
    """Its work is fixed, so a run on any machine that gets through it is conclusive."""
    tally = Tally()
    drawn = [c for c in CHECKS if c.emphasis or c.programs]
    for part in generated_of(drawn, BUDGETS["smoke"], 0, EVERYTHING, tally):
        for history in part.histories:
            play(ModelSubject(), history, tally)
    assert {r.check.id: r.missing for r in results_of(drawn, tally, []) if r.status != "passed"} == {}


def test_the_readme_lists_the_checks() -> None:
    readme = README.read_text()
    assert with_checks(readme) == readme, "python -m docs.checks"


def test_pages_count_the_planted_faults() -> None:
    assert f"{len(PLANTED)} planted faults, and {len(ADAPTER_MUTANTS)} of adapters" in README.read_text()
    proof = (DOCS / "proof.md").read_text()
    assert f"plants {len(PLANTED)} faults in the model" in proof
    assert f"plants {len(ADAPTER_MUTANTS)} faults in adapters" in proof
