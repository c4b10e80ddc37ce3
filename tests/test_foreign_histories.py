"""Generated histories in which another engine makes the table, or appends to it between Trinity's commits (U7, L1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

from trinity_conformance.histories import histories, sample
from trinity_conformance.profiles import Profile
from trinity_conformance.runner import Tally, play
from trinity_conformance.shapes import Shape
from trinity_conformance.subject import Outcome, TrinitySubject
from trinity_conformance.traces import Alter, Compact, History, Log, ReadPast, Upsert, Vacuum

TYPES: Final = frozenset(
    {"int", "bigint", "double", "string", "boolean", "date", "timestamp", "binary", "decimal(10,2)", "decimal(38,10)"}
)
"""Types that every writer has, and means the same by."""
PROFILES: Final = (
    Profile(("int",), ("bigint",), ("boolean", None), "plain"),
    Profile(("string", "int"), ("timestamp", "int"), ("string", "D"), "plain"),
    Profile(("bigint", "date"), (), None, "row-kind"),
    Profile(("int",), ("double",), ("int", None), "descending"),
    Profile(("decimal(10,2)", "int"), ("string", "boolean"), ("string", None), "plain"),
)
STEPS: Final = {
    "upsert": 8, "delete": 2, "read": 2, "query": 2, "reopen": 1, "read-past": 2, "log": 1, "compact": 2, "vacuum": 1,
    "alter": 1,
}  # fmt: skip


class Foreign(TrinitySubject):
    """A table of which another engine writes every other commit.

    Args:
        external: whether the other engine also makes the table, which is then registered.
        connector, spark, folder: as for the subject.
    """

    def __init__(self, connector: str, spark: SparkSession, folder: Path, external: bool) -> None:
        self.external = external
        self.others = folder / "others"
        self.upserts = 0
        super().__init__(connector, spark, folder)

    def create(self, shape: Shape) -> None:
        if not self.external or "k0" not in shape.names:  # also the probe for durability
            super().create(shape)
            return
        self.adopt(shape)
        connector, name = self._connector, self._name
        rows = self._arrow(shape.columns, [])
        location: str | None = str(self.others / name)
        if connector == "iceberg":
            self.catalog().create_table(name.removeprefix("c."), schema=rows.schema)
            location = None
        else:
            self.write(rows)
        key = {"primary-key": ",".join(shape.key)}
        self.session.register(name, connector, location, {**key, **shape.options()})

    def upsert(self, step: Upsert) -> Outcome:
        self.upserts += 1
        if self.upserts % 2 == 0 or step.txn is not None:
            return super().upsert(step)
        columns = [c for c in self._shape.columns if step.names is None or c.name in step.names]
        self.write(self._names.given(self._arrow(columns, step.rows)))
        return Outcome(self._table.splits().version)

    def write(self, rows: pa.Table) -> None:
        """Appends rows with another engine, as one file."""
        location = Path(str(self.others / self._name) if self.external else self._table.location)
        if self._connector == "parquet":
            location.mkdir(parents=True, exist_ok=True)
            pq.write_table(rows, location / f"part-{len(list(location.iterdir()))}.parquet")
        elif self._connector == "delta":
            frame = self._spark.createDataFrame(rows).coalesce(1)
            frame.write.format("delta").mode("append").save(str(location))
        else:
            table = self.catalog().load_table(self._name.removeprefix("c."))
            required = {f.name: f.required for f in table.schema().fields}
            schema = pa.schema([f.with_nullable(not required[f.name]) for f in rows.schema])
            table.append(rows.cast(schema))

    def catalog(self) -> SqlCatalog:
        """The adapter's catalog, as PyIceberg opens it."""
        warehouse = self._folder
        return SqlCatalog("c", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=f"file://{warehouse}")


def drawn(number: int, external: bool, connector: str) -> History:
    """A history whose columns every writer has, with the steps that the table takes."""
    left_out: tuple[type[Any], ...] = ()
    if external:
        left_out = (Compact, Vacuum, Alter, *((ReadPast, Log) if connector == "parquet" else ()))
    for seed in range(1000 * number, 1000 * number + 1000):
        history = sample(histories(PROFILES[number % len(PROFILES)], STEPS), seed)
        if {c.type for c in history.shape.columns} <= TYPES:
            steps = [s for s in history.steps if not isinstance(s, left_out)]
            plain = [replace(s, txn=None) if isinstance(s, Upsert) else s for s in steps]
            return History(history.shape, tuple(plain))
    raise AssertionError(f"no history of {TYPES}")


@pytest.fixture
def subject(fmt: str, request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[TrinitySubject]:
    """The table under test; the parameter says whether another engine makes it."""
    found = Foreign(fmt, spark, tmp_path, request.param)
    yield found
    found.close()


def played(subject: TrinitySubject, fmt: str, external: bool, numbers: range) -> Tally:
    tally = Tally()
    for number in numbers:
        play(subject, drawn(number, external, fmt), tally)
    return tally


@pytest.mark.parametrize("fmt", ["delta", *(pytest.param(f, marks=pytest.mark.full) for f in ("parquet", "iceberg"))])
@pytest.mark.parametrize("subject", [True], indirect=True)
def test_a_table_that_another_engine_made(subject: TrinitySubject, fmt: str) -> None:
    tally = played(subject, fmt, True, range(1))
    assert tally.coverage.counts["late-row"] > 0
    assert not tally.unsupported


@pytest.mark.full
@pytest.mark.parametrize("subject", [True], indirect=True)
def test_many_tables_that_another_engine_made(subject: TrinitySubject, fmt: str) -> None:
    tally = played(subject, fmt, True, range(1, 10))
    assert tally.histories == 9
    assert not tally.unsupported


@pytest.mark.parametrize("fmt", ["iceberg", pytest.param("delta", marks=pytest.mark.full)])  # no one else has manifests
@pytest.mark.parametrize("subject", [False], indirect=True)
def test_another_engine_appends_between_commits(subject: TrinitySubject, fmt: str) -> None:
    tally = played(subject, fmt, False, range(1))
    assert tally.coverage.counts["late-row"] > 0
    assert not tally.unsupported


@pytest.mark.full
@pytest.mark.parametrize("fmt", ["delta", "iceberg"])
@pytest.mark.parametrize("subject", [False], indirect=True)
def test_another_engine_appends_in_many_histories(subject: TrinitySubject, fmt: str) -> None:
    tally = played(subject, fmt, False, range(1, 10))
    assert tally.histories == 9
    assert not tally.unsupported
