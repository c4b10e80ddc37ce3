"""Generated histories in which another engine rewrites the table's files between Trinity's commits (L1, L3)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Final

import pytest
from pyspark.sql import SparkSession

from trinity_conformance.engine_histories import ENGINE_GENERAL, engine_histories
from trinity_conformance.engine_model import model_of
from trinity_conformance.engine_profiles import engine_rota
from trinity_conformance.histories import histories, sample
from trinity_conformance.profiles import Profile
from trinity_conformance.runner import Tally, play
from trinity_conformance.shapes import Shape
from trinity_conformance.subject import TrinitySubject
from trinity_conformance.traces import Change, Compact, Delete, History, Log, Step, Upsert, Vacuum

PROFILES: Final = (
    Profile(("int",), ("bigint",), ("boolean", None), "plain"),
    Profile(("bigint", "date"), (), None, "row-kind"),
    Profile(("string", "int"), ("timestamp", "int"), ("string", "D"), "plain"),
    Profile(("int",), ("double",), ("int", None), "descending"),
)
STEPS: Final = {
    "upsert": 6, "delete": 4, "read": 1, "query": 1, "reopen": 1, "read-past": 1, "compact": 2, "alter": 1,
}  # fmt: skip
SORTED: Final = ("int", "bigint", "string", "double", "date", "timestamp")


class Rewritten(TrinitySubject):
    """A table whose files another engine rewrites where the history says vacuum.

    Args:
        connector, spark, folder: as for the subject.
    """

    def __init__(self, connector: str, spark: SparkSession, folder: Path) -> None:
        self.chance = Random(7)
        self.rewrites = 0
        super().__init__(connector, spark, folder)

    def create(self, shape: Shape) -> None:
        super().create(shape)
        if shape.key and "k" not in shape.names:  # rows that are only upserted would tie; the probe is left alone
            self._table.connector.metadata.alter_table(self._table.handle, lambda d: d.with_stamps())

    def vacuum(self) -> None:
        self.rewrites += 1
        rewrite = self.optimize if self._connector == "delta" else self.rewrite_data_files
        rewrite()
        if self.chance.random() < 0.2:
            super().vacuum()

    def sortable(self) -> list[str]:
        """Columns by which both engines sort, under the names that they have now."""
        found = [c.name for c in self._shape.columns if c.type in SORTED and c.name not in self._shape.partition_by]
        return [self._names.now[name] for name in found]

    def optimize(self) -> None:
        by = self.sortable()
        sorts = f" ZORDER BY (`{self.chance.choice(by)}`)" if by and self.chance.random() < 0.6 else ""
        self._spark.sql(f"OPTIMIZE delta.`{self._table.location}`{sorts}").collect()

    def iceberg(self) -> SparkSession:
        """Spark with the catalog ``c``, as Iceberg's own runtime opens it."""
        spark = self._spark.newSession()
        for key, value in self.session.catalogs["c"].spark_catalog_settings("c").items():  # type: ignore[attr-defined]
            spark.conf.set(key, value)
        return spark

    def alter(self, kind: str, columns: Sequence[str]) -> None:
        """A column that comes and goes does so by the other engine where that has it; Delta drops none unasked."""
        before = self._table.splits().version
        if kind != "extra":
            super().alter(kind, columns)
            return
        [text] = self._names.alter(kind, columns)
        if self._connector == "iceberg":
            self.iceberg().sql(f"ALTER TABLE {self._name} {text}")
        elif text.startswith("ADD"):
            self._spark.sql(f"ALTER TABLE delta.`{self._table.location}` {text}")
        else:
            self.session.sql(f"ALTER TABLE {self._name} {text}")
        self._names.happened(before)

    def rewrite_data_files(self) -> None:
        spark, name = self.iceberg(), self._name.removeprefix("c.")
        by = self.sortable() if self.rewrites % 2 else []
        sorts = f", strategy => 'sort', sort_order => '{self.chance.choice(by)} DESC'" if by else ""
        spark.sql(
            f"CALL c.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'){sorts})"
        ).collect()
        if self.chance.random() < 0.3:
            spark.sql(f"CALL c.system.rewrite_manifests('{name}')").collect()
        if self.chance.random() < 0.3:
            spark.sql(
                f"CALL c.system.expire_snapshots(table => '{name}', older_than => TIMESTAMP '2100-01-01 00:00:00', "
                "retain_last => 1)"
            ).collect()


def rewritten(history: History, seed: int) -> History:
    """The history with rewrites, and without ties that these may turn around: two rows of a key in one upsert."""
    chance, shape = Random(seed), history.shape
    steps: list[Step] = []
    for step in history.steps:
        if isinstance(step, Log):
            continue
        steps.append(single(step, shape) if isinstance(step, Upsert) else step)
        if isinstance(step, Upsert | Delete | Change | Compact) and chance.random() < 0.4:
            steps.append(Vacuum())
    return History(shape, (*steps, Vacuum()))


def single(step: Upsert, shape: Shape) -> Upsert:
    """The commit with the last row of each key."""
    names, key_form = step.names or shape.names, model_of(shape).key_form
    places = [names.index(c.name) for c in shape.columns if c.name in shape.key]
    last = {key_form(tuple(row[p] for p in places)): n for n, row in enumerate(step.rows)}
    kept, numbers = set(last.values()), itertools.count()
    splits = tuple(tuple(row for row in split if next(numbers) in kept) for split in step.splits)
    return replace(step, splits=splits)


def of_deduplicate(number: int) -> History:
    return rewritten(sample(histories(PROFILES[number % len(PROFILES)], STEPS), number), number)


def of_engine(number: int) -> History:
    weights = {op: weight for op, weight in ENGINE_GENERAL.items() if op != "log"}
    return rewritten(sample(engine_histories(engine_rota(number), weights), number), number)


@pytest.fixture
def subject(fmt: str, spark: SparkSession, tmp_path: Path) -> Iterator[Rewritten]:
    found = Rewritten(fmt, spark, tmp_path)
    yield found
    found.close()


@pytest.mark.full
@pytest.mark.parametrize("fmt", ["delta", "iceberg"])
def test_a_table_that_another_engine_rewrites(subject: Rewritten, fmt: str) -> None:
    play(subject, of_deduplicate(0))
    assert subject.rewrites > 1


@pytest.mark.parametrize("fmt", ["iceberg", pytest.param("delta", marks=pytest.mark.full)])
def test_a_table_of_a_merge_engine_that_another_engine_rewrites(subject: Rewritten, fmt: str) -> None:
    play(subject, of_engine(1))
    assert subject.rewrites > 1


@pytest.mark.full
@pytest.mark.parametrize("fmt", ["delta", "iceberg"])
@pytest.mark.parametrize("draw", [of_deduplicate, of_engine])
def test_many_tables_that_another_engine_rewrites(subject: Rewritten, fmt: str, draw: object) -> None:
    tally = Tally()
    for number in range(1, 16):
        play(subject, draw(number), tally)  # type: ignore[operator]
    assert tally.histories == 15
