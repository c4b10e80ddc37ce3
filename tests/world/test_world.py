"""Other systems are tested fairly: a player that does less is found, and kept laws are reported as kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from docs.matrix import PAGE, page
from tests.world.asking import ask
from tests.world.laws import LAWS, Law
from tests.world.players import DeltaRs, DuckDbMerge, DuckDbStatements, PyIceberg
from tests.world.spark_players import SparkMerge, delta_merge, iceberg_merge


def law(rule: str) -> Law:
    return next(law for law in LAWS if rule in law.rules)


def test_the_page_is_what_the_runs_say() -> None:
    assert PAGE.read_text() == page(), "python -m docs.matrix"


def test_a_law_that_is_kept_is_told_so() -> None:
    answer = ask(DuckDbMerge(), law("U1"), 10)
    assert (answer.kept, answer.message) == (10, "")


def test_a_law_that_is_not_kept_has_a_short_history() -> None:
    answer = ask(DuckDbMerge(), law("U4"), 10)
    assert answer.message.startswith("merged read: 1 of 0 keys differ")
    assert len(answer.trace["steps"]) == 2


def test_a_player_that_forgets_the_watermark_is_found() -> None:
    class Careless(DuckDbMerge):
        def write(self, batch: pa.Table) -> None:
            shape, self.shape = self.shape, type(self.shape)(self.shape.columns, self.shape.key)
            super().write(batch)
            self.shape = shape

    answer = ask(Careless(), law("U1"), 10)
    assert len(answer.trace["steps"]) == 2


def test_statements_that_break_another_rule_are_not_asked_about() -> None:
    assert ask(DuckDbStatements(), law("M1"), 8).kept == 8
    verdict = ask(DuckDbStatements(), law("M2"), 20)
    assert "MERGE_TARGET_ROW_MULTIPLE_MATCHES" in verdict.message
    assert "UPDATE t" in verdict.steps


def test_what_a_system_has_not_is_told_as_that(tmp_path: Path) -> None:
    answer = ask(PyIceberg(tmp_path), law("U1"), 2)
    assert (answer.kept, answer.message, "conditions" in answer.refused) == (0, "", True)


@pytest.mark.full
@pytest.mark.parametrize("player", [delta_merge, iceberg_merge])
def test_spark_keeps_the_watermark_and_its_earlier_versions(
    player: Callable[[SparkSession, Path], SparkMerge], spark: SparkSession, tmp_path: Path
) -> None:
    subject = player(spark, tmp_path)
    assert [ask(subject, law(rule), 2).kept for rule in ("U1", "L10")] == [2, 2]


@pytest.mark.full
@pytest.mark.parametrize("player", [DeltaRs, PyIceberg])
def test_libraries_read_their_earlier_versions(player: type[DeltaRs] | type[PyIceberg], tmp_path: Path) -> None:
    assert ask(player(tmp_path), law("L10"), 5).kept == 5
