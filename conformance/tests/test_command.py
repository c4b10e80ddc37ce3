"""What ``trinity-conformance run`` answers to a CI: its exit codes, and the words that go with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import trinity
from trinity import Column
from trinity_conformance import CheckResult, Report
from trinity_conformance.command import cli
from trinity_conformance.command.checks import CHECKS, check_of
from trinity_conformance.command.suite import BUDGETS, generated_of, results_of
from trinity_conformance.mutants.care import CARE_MUTANTS
from trinity_conformance.mutants.effects import DML_MUTANTS
from trinity_conformance.mutants.engines import ENGINE_MUTANTS
from trinity_conformance.mutants.feeds import FEED_MUTANTS
from trinity_conformance.mutants.functions import FUNCTION_MUTANTS
from trinity_conformance.mutants.tables import MUTANTS, ModelSubject
from trinity_conformance.play import traces
from trinity_conformance.play.differences import NonConformance
from trinity_conformance.play.runner import Tally, play

IDEMPOTENCE, ROW_CHANGE = check_of("idempotence"), check_of("row-change")
PASSED = CheckResult(IDEMPOTENCE, 5)
FAILED = CheckResult(IDEMPOTENCE, 5, failures=[NonConformance("idempotence", "row 1 is there twice")])
INCONCLUSIVE = CheckResult(IDEMPOTENCE, 1, {"retry": (1, 2)})
LEFT_OUT = CheckResult(IDEMPOTENCE, 1, {"retry": (1, 2)}, alone=True)
NOT_SUPPORTED = CheckResult(ROW_CHANGE, lacking=True)


@pytest.mark.parametrize(
    ("results", "code", "said"),
    [
        ([PASSED], 0, "passed"),
        ([PASSED, NOT_SUPPORTED], 0, "not supported"),
        ([PASSED, LEFT_OUT], 0, "left out without Spark: idempotence"),
        ([INCONCLUSIVE], 3, "inconclusive: idempotence;"),
        ([INCONCLUSIVE, FAILED], 1, "row 1 is there twice"),
    ],
)
def test_exit_codes(
    results: list[CheckResult], code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def no_spark(connector: str, options: Mapping[str, str]) -> Iterator[None]:
        yield None

    def run(connector: str, *_: Any, **__: Any) -> Report:
        return Report(connector, "smoke", 0, results, Tally())

    monkeypatch.setattr(cli, "_spark", no_spark)
    monkeypatch.setattr(cli, "run_check", run)
    done = CliRunner().invoke(cli.app, ["run", "memory", "--traces", str(tmp_path)])
    assert done.exit_code == code, done.output
    assert "memory (trinity.memory:MemoryFormat, of trinity-merge" in done.output
    assert said in done.output


def test_an_unknown_format_is_wrong_usage() -> None:
    done = CliRunner().invoke(cli.app, ["run", "memry"])
    assert (done.exit_code, "memory" in done.output) == (2, True)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["run", "memory", "--option", "=1"], "give NAME=VALUE"),
        (["run", "memory", "--option", "uri"], "--option 'uri' is no setting"),
        (["replay", "TRACE", "--warehouse", "s3://b/c"], "name it by --format"),
    ],
)
def test_settings_of_a_catalog_that_are_none(command: list[str], said: str, tmp_path: Path) -> None:
    _, histories, _ = next(generated_of([IDEMPOTENCE], BUDGETS["smoke"], 0, changes=True))
    trace = str(traces.save(next(histories), tmp_path))
    done = CliRunner().invoke(cli.app, [trace if word == "TRACE" else word for word in command])
    assert (done.exit_code, said in done.output) == (2, True), done.output


def test_a_warehouse_with_tables_is_refused(tmp_path: Path) -> None:
    with trinity.connect(tmp_path, catalog="parquet") as session:
        session.create_table("t", [Column("k", "int")])
    command = ["run", "parquet", "--check", "idempotence", "--warehouse", str(tmp_path / "parquet")]
    done = CliRunner().invoke(cli.app, command)
    assert (done.exit_code, "has tables already, as 't'" in done.output) == (2, True), done.output


def test_smoke_meets_what_every_check_is_about() -> None:
    """Its work is fixed, so a run on any machine that gets through it is conclusive."""
    tally = Tally()
    checks = [c for c in CHECKS if c.emphasis or c.programs]
    for _, histories, _ in generated_of(checks, BUDGETS["smoke"], 0, changes=True):
        for history in histories:
            play(ModelSubject(), history, tally)
    assert {r.check.id: r.missing for r in results_of(checks, tally, []) if r.status != "passed"} == {}


def test_the_readme_counts_the_planted_faults() -> None:
    planted = {*MUTANTS, *CARE_MUTANTS, *FEED_MUTANTS, *DML_MUTANTS, *ENGINE_MUTANTS, *FUNCTION_MUTANTS}
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    assert f"{len(planted)} planted faults" in readme
