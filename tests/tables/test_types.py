"""Every type is written and read back equal, on every format, by Spark and by Arrow (issue: Types)."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row

from tests.support.typed_rows import CASES, typed_rows
from trinity import Column, Session, Table, TrinityError
from trinity.definition import evolve

pytestmark = pytest.mark.inner

UTC = dt.UTC


@pytest.fixture
def typed(session: Session, fmt: str) -> Table:
    columns = [Column("k", "int"), *[Column(name, kind) for name, (kind, _) in CASES.items()]]
    return session.create_table(f"{fmt}.default.typed", columns, primary_key=["k"])


def read(table: Table) -> list[dict[str, Any]]:
    return [plain(r.asDict()) for r in table.to_df().orderBy("k").collect()]


def plain(value: Any) -> Any:
    if isinstance(value, Row):
        return plain(value.asDict())
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, dt.datetime) and value.tzinfo:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


def expected() -> list[dict[str, Any]]:
    found = []
    for row in typed_rows().to_pylist():
        row["c_map"] = None if row["c_map"] is None else dict(row["c_map"])
        for item in row["c_deep"] or []:
            if item:
                item["m"] = dict(item["m"])
        found.append(plain(row))
    return found


@pytest.fixture(autouse=True)
def utc_local_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the process's zone to UTC: PySpark collects timestamps as naive local times."""
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def test_arrow_data_reads_back_equal(typed: Table) -> None:
    typed.upsert(typed_rows())
    assert read(typed) == expected()


@pytest.mark.tiered
def test_spark_data_reads_back_equal(typed: Table, session: Session) -> None:
    typed.upsert(typed_rows())
    frame = session.spark.createDataFrame(typed.to_df().collect(), typed.to_df().schema)
    typed.upsert(frame)
    assert read(typed) == expected()


@pytest.mark.tiered
def test_compaction_keeps_every_value(typed: Table) -> None:
    typed.upsert(typed_rows())
    typed.compact(full=True)
    assert read(typed) == expected()
    typed.upsert(typed_rows().slice(1))  # and the merge of base and log does, too
    assert read(typed) == expected()


def test_types_are_kept(typed: Table) -> None:
    kinds = {c.name: c.type for c in typed.definition.visible}
    assert kinds == {"k": "int", **{name: kind for name, (kind, _) in CASES.items()}}


@pytest.mark.parametrize(
    "fmt", ["delta", *[pytest.param(f, marks=pytest.mark.full) for f in ("parquet", "iceberg")]], indirect=True
)
def test_columns_of_every_type_are_added_later(session: Session, fmt: str) -> None:
    table = session.create_table(f"{fmt}.default.grows", [Column("k", "int")], primary_key=["k"])
    table.upsert(typed_rows().select(["k"]))
    table.alter(*[partial(evolve.added, column=Column(name, kind)) for name, (kind, _) in CASES.items()])
    table.upsert(typed_rows().slice(0, 2))
    assert read(table) == expected()


@pytest.mark.tiered
@pytest.mark.parametrize(
    ("kind", "bad", "code"),
    [
        ("tinyint", pa.array([128], pa.int32()), "NUMERIC_VALUE_OUT_OF_RANGE"),
        ("int", pa.array([2**31], pa.int64()), "NUMERIC_VALUE_OUT_OF_RANGE"),
        ("decimal(4,2)", pa.array([100], pa.int64()), "NUMERIC_VALUE_OUT_OF_RANGE"),
        ("int", pa.array([1.5]), "NUMERIC_VALUE_OUT_OF_RANGE"),
        ("varchar(2)", pa.array(["abc"]), "CONSTRAINT_VIOLATION"),
        ("char(2)", pa.array(["abc"]), "CONSTRAINT_VIOLATION"),
        ("int", pa.array(["1"]), "TYPE_MISMATCH"),
        ("string", pa.array([1]), "TYPE_MISMATCH"),
        ("array<int>", pa.array([["1"]]), "TYPE_MISMATCH"),
        ("boolean", pa.array([1]), "TYPE_MISMATCH"),
    ],
)
def test_what_does_not_fit_is_refused(session: Session, fmt: str, kind: str, bad: pa.Array, code: str) -> None:
    table = session.create_table(f"{fmt}.default.t", [Column("k", "int"), Column("v", kind)], primary_key=["k"])
    with pytest.raises(TrinityError) as caught:
        table.upsert(pa.table({"k": pa.array([1], pa.int32()), "v": bad}))
    assert caught.value.code == code
    assert "'v'" in caught.value.message
    assert table.to_df().count() == 0


@pytest.mark.tiered
def test_defaults_and_not_null(session: Session, fmt: str) -> None:
    columns = [
        Column("k", "int"),
        Column("n", "int", nullable=False, default="7"),
        Column("s", "string", default="'x'"),
        Column("d", "decimal(10,2)", default="1.5"),
        Column("t", "timestamp", default="current_timestamp()"),
    ]
    table = session.create_table(f"{fmt}.default.t", columns, primary_key=["k"])
    table.upsert(pa.table({"k": [1]}))
    row = table.to_df().first()
    assert row is not None
    assert (row.n, row.s, row.d) == (7, "x", Decimal("1.50"))
    assert row.t is not None
    assert [c.default for c in table.definition.visible] == [c.default for c in columns]
    with pytest.raises(TrinityError) as caught:
        table.upsert(pa.table({"k": [2], "n": pa.array([None], pa.int32())}))
    assert caught.value.code == "CONSTRAINT_VIOLATION"


@pytest.mark.tiered
def test_k3_nan_is_found_above_every_number(session: Session, fmt: str) -> None:
    """Arrow's statistics leave NaN out; a reader that relies on them would skip the row."""
    table = session.create_table(f"{fmt}.default.t", [Column("k", "int"), Column("f", "double")], primary_key=["k"])
    table.upsert(pa.table({"k": [1, 2], "f": [float("nan"), 1.0]}))
    assert [r.k for r in table.to_df().where("f > 100").collect()] == [1]
    table.compact(full=True)
    assert [r.k for r in table.to_df().where("f > 100").collect()] == [1]


@pytest.mark.tiered
def test_statements_keep_times_of_day(session: Session, fmt: str) -> None:
    """TIME is written by row changes: as a value, and as the key."""
    session.use(fmt, "default")
    session.sql("CREATE TABLE t (at TIME PRIMARY KEY, v INT, until TIME)")
    session.sql("INSERT INTO t VALUES (TIME '00:00:01', 1, TIME '23:59:59.999999'), (TIME '12:00:00', 2, NULL)")
    session.sql("UPDATE t SET until = TIME '10:00:00.000001', v = v + 1 WHERE at = TIME '12:00:00'")
    session.table("t").delete("v = 1")
    session.sql("""
        MERGE INTO t USING VALUES (TIME '12:00:00', 7), (TIME '13:00:00', 8) AS s(at, v) ON t.at = s.at
        WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (at, v) VALUES (s.at, s.v)""")
    found = sorted(map(tuple, session.sql("SELECT * FROM t").collect()))
    noon, one = dt.time(12), dt.time(13)
    assert found == [(noon, 7, dt.time(10, 0, 0, 1)), (one, 8, None)]


def test_insert_update_and_merge_assign_alike(session: Session, tiered_fmt: str) -> None:
    """M6: DECIMAL rounds, integers truncate, dates become timestamps and back; a value that does not fit fails."""
    session.sql(f"USE {tiered_fmt}.default")
    columns = "n INT, d DECIMAL(4,2), f FLOAT, t TIMESTAMP, day DATE"
    session.sql(f"CREATE TABLE a (id INT, {columns}, PRIMARY KEY (id) NOT ENFORCED)")
    values = "-7.9, 2.345, CAST(0.1 AS DOUBLE), DATE '2024-02-29', TIMESTAMP '2024-02-29 23:59:59'"
    session.sql(f"INSERT INTO a VALUES (1, {values})")
    session.sql("INSERT INTO a (id) VALUES (2)")
    names = ("n", "d", "f", "t", "day")
    pairs = ", ".join(f"{n} = {v}" for n, v in zip(names, values.split(", "), strict=True))
    session.sql(f"UPDATE a SET {pairs} WHERE id = 2")
    session.sql(
        f"MERGE INTO a USING (SELECT 3L AS id) s ON a.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, {values})"
    )
    found = session.sql("SELECT n, CAST(d AS STRING), f = CAST(0.1 AS FLOAT), CAST(t AS STRING), day FROM a").collect()
    assert [tuple(r) for r in found] == [(-7, "2.35", True, "2024-02-29 00:00:00", dt.date(2024, 2, 29))] * 3
    for statement in ("INSERT INTO a (id, d) VALUES (4, 99.995)", "UPDATE a SET d = 99.995"):
        with pytest.raises(TrinityError, match=r"'d'.*99\.995") as refused:
            session.sql(statement)
        assert refused.value.code == "NUMERIC_VALUE_OUT_OF_RANGE"
    with pytest.raises(TrinityError) as refused:
        session.sql("INSERT INTO a (id, n) VALUES (4, '7')")
    assert refused.value.code == "TYPE_MISMATCH"
    assert session.sql("SELECT * FROM a").count() == 3
