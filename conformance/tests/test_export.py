"""A finding as a program of its own: it shows the difference with the fault, and none without it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from trinity_conformance.command import cli
from trinity_conformance.command.environment import adapter
from trinity_conformance.generate.executors import without_spark
from trinity_conformance.generate.histories import histories, sample
from trinity_conformance.generate.profiles import dml_rota, rota
from trinity_conformance.generate.programs import programs
from trinity_conformance.model.conditions import Condition
from trinity_conformance.model.shapes import Column, Shape
from trinity_conformance.playing.again import CASES_OF, play_case
from trinity_conformance.playing.cases import Case
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.races import Race, Turn
from trinity_conformance.playing.subject import TrinitySubject
from trinity_conformance.playing.traces import Alter, Compact, Delete, History, Query, ReadPast, Reopen, Upsert, save
from trinity_conformance.report.script import python_test, script

FORGETFUL = """
from dataclasses import replace
from trinity_parquet import ParquetFormat

class Forgetful(ParquetFormat):
    def create(self, catalog, options, context):
        made = super().create(catalog, options, context)
        listed = made.metadata.get_splits

        def get_splits(table):
            found = listed(table)
            return replace(found, files=found.files[:-1]) if len(found.files) == 2 else found

        made.metadata.get_splits = get_splits
        return made
"""
COLUMNS = (Column("k", "int", nullable=False), Column("v", "double"), Column("c", "char(3)"), Column("w", "int"))
HISTORY = without_spark(
    History(
        Shape(COLUMNS, ("k",), watermark=("w",)),
        (
            Upsert((((1, "NaN", "a", 5), (2, "-0.0", None, 1)),), txn=("loader", 1)),
            Upsert((((1, "1.5", "b", 4),), ((3, "2.5", "c", None),))),
            Upsert((((1, "1.5", "b", 4),),), txn=("loader", 1)),
            Query(Condition("k", ">", 1), ("k", "v")),
            Delete(keys=((2,),)),
            Alter("swap", ("v", "c")),
            Compact(),
            Reopen(),
            ReadPast(2),
            ReadPast(1, "timestamp"),
        ),
    )
)


def exported(tmp_path: Path, *words: str) -> str:
    done = CliRunner().invoke(cli.app, ["export", str(save(HISTORY, tmp_path)), *words, "--no-spark"])
    assert done.exit_code == 0, done.output
    return done.output


def exported_case(case: Case, folder: Path, *words: str) -> str:
    done = CliRunner().invoke(cli.app, ["export", str(save(case, folder)), *words])
    assert done.exit_code == 0, done.output
    return done.output


def loaded(text: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program as a module of its own."""
    found = ModuleType("finding")
    monkeypatch.setitem(sys.modules, "finding", found)
    exec(compile(text, "finding.py", "exec"), found.__dict__)
    return found


def run(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "finding.py").write_text(text)
    return subprocess.run([sys.executable, "finding.py"], cwd=folder, capture_output=True, text=True, check=False)


def test_the_program_shows_a_planted_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lists_less.py").write_text(FORGETFUL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", "")
    text = exported(tmp_path, "--format", "lists_less:Forgetful")
    assert "import trinity_conformance" not in text
    found = run(text, tmp_path)
    assert found.returncode == 1
    assert "AssertionError: after step 1\n  missing:    [(3, 2.5, 'c', None)]\n  unexpected: []" in found.stderr


def test_the_program_shows_no_difference_without_one(tmp_path: Path) -> None:
    done = run(exported(tmp_path, "--format", "parquet"), tmp_path)
    assert (done.returncode, done.stdout) == (0, "no difference\n"), done.stderr


def test_the_test_of_pytest_does_the_same(tmp_path: Path) -> None:
    space: dict[str, object] = {"__name__": "finding"}
    text = exported(tmp_path, "--format", "parquet", "--pytest")
    exec(compile(text, "finding.py", "exec"), space)
    test = space[f"test_history_{HISTORY.id}"]
    assert callable(test)
    test(tmp_path)


def test_a_case_written_by_hand_shows_a_planted_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lists_less.py").write_text(FORGETFUL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", "")
    subject = TrinitySubject(adapter("lists_less:Forgetful"), None, tmp_path)
    with pytest.raises(NonConformance, match=r"^concurrency: L7: an append") as found:
        play_case(subject, Case("concurrency", "both appends are kept", "local"))
    subject.close()
    case = found.value.case
    assert case is not None
    text = exported_case(case, tmp_path, "--format", "lists_less:Forgetful")
    assert f"\n{case.story}\n" in text
    assert "trinity_conformance" not in text
    shown = run(text, tmp_path)
    assert (shown.returncode, "NonConformance: concurrency: an append while another" in shown.stderr) == (1, True)
    test = exported_case(case, tmp_path, "--format", "lists_less:Forgetful", "--pytest")
    with pytest.raises(AssertionError, match="an append while another one is under way"):
        loaded(test, monkeypatch).__dict__[f"test_case_{case.id}"](tmp_path / "tables")


EVERY_CASE = [(check, name) for check, (cases, _) in CASES_OF.items() for name in cases]
OF_EACH_CHECK = dict(reversed(EVERY_CASE)).items()
"""The first case of each check."""


@pytest.mark.parametrize(
    ("check", "name"),
    [
        pytest.param(
            check,
            name,
            id=f"{check}: {name}",
            marks=[pytest.mark.full] * ((check, name) not in OF_EACH_CHECK and check != "merge-sinks"),
        )
        for check, name in EVERY_CASE
    ],
)
def test_a_case_written_by_hand_shows_no_difference_without_a_fault(
    check: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program has all that the case needs, and no name in it means two things."""
    text = exported_case(Case(check, name, "local"), tmp_path, "--format", "parquet")
    loaded(text, monkeypatch).__dict__["play"](str(tmp_path / "tables"))


def test_a_case_that_this_version_lacks_is_wrong_usage(tmp_path: Path) -> None:
    case = Case("commits", "files are round", "local")
    done = CliRunner().invoke(cli.app, ["export", str(save(case, tmp_path)), "--format", "parquet"])
    assert (done.exit_code, done.output) == (
        2,
        "this version of the suite has no case 'files are round' of 'commits'.\n",
    )


def test_a_race_is_only_replayed(tmp_path: Path) -> None:
    race = Race(False, (("add",), ("add",)), (Turn(0, 4), Turn(1)))
    done = CliRunner().invoke(cli.app, ["export", str(save(race, tmp_path)), "--format", "parquet"])
    assert done.exit_code == 2
    assert f"only the suite plays it, by `trinity-conformance replay {race.id} --format parquet`" in done.output


@pytest.mark.parametrize("number", [0, 4])
@pytest.mark.parametrize("kind", ["histories", "programs"])
def test_generated_histories_show_none(kind: str, number: int, tmp_path: Path) -> None:
    """Their model is the one by which the suite compares."""
    drawn = sample(histories(rota(number)) if kind == "histories" else programs(dml_rota(number)), number)
    space: dict[str, object] = {"__name__": "finding"}
    exec(compile(script(without_spark(drawn), "parquet", "none"), "finding.py", "exec"), space)
    play = space["play"]
    assert callable(play)
    play(str(tmp_path))


def test_rows_of_a_data_frame_come_from_one() -> None:
    history = History(Shape(COLUMNS, ("k",)), (Upsert((((1, "0.0", "a", 1),), ((2, "0.0", "a", 1),)), path="spark"),))
    text = python_test(history, "acme", "none")
    assert "frame(session, rows({'k': 'int'" in text
    assert "session.spark.createDataFrame(chunk)" in text
    assert "engine='auto'" in text
