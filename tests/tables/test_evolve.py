"""``evolve=True``: the table gets the new columns of the data, and nothing else changes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import trinity
from tests.support.foreign import FIRST, SECOND, delta_rs
from tests.support.foreign import KEYED as FOREIGN
from tests.support.tables import spark_rows
from tests.support.threads import at_once
from trinity import Column, Session, Table, TrinityError

KEYED = "CREATE TABLE {}.default.t (id INT PRIMARY KEY, v INT, price DECIMAL(6,2), name VARCHAR(5))"


@pytest.fixture
def table(session: Session, fmt: str) -> Table:
    session.sql(KEYED.format(fmt))
    return session.table(f"{fmt}.default.t")


def columns(table: Table) -> dict[str, str]:
    return {c.name: c.type for c in table.definition.visible}


def data(**given: tuple[pa.DataType, list[Any]]) -> pa.Table:
    return pa.table({name: pa.array(values, kind) for name, (kind, values) in given.items()})


def not_evolved(table: Table, code: str, given: Any) -> str:
    """Return the error's message; check that rows and columns are unchanged."""
    before = table.splits().version
    with pytest.raises(TrinityError) as raised:
        table.upsert(given, evolve=True)
    assert raised.value.code == code, raised.value.message
    assert table.splits().version == before
    return raised.value.message


def test_new_columns_and_wider_types(table: Table) -> None:
    table.upsert(data(id=(pa.int32(), [1]), v=(pa.int32(), [1]), price=(pa.decimal128(6, 2), [Decimal("1.50")])))
    before = table.splits().version
    wider: dict[str, Any] = {
        "id": (pa.int32(), [2]),
        "v": (pa.int64(), [2**40]),
        "price": (pa.decimal128(12, 2), [Decimal("1234567.00")]),
    }
    day = dt.date(2026, 1, 2)
    done = table.upsert(data(Added=(pa.date32(), [day]), **wider, tags=(pa.list_(pa.string()), [["a"]])), evolve=True)
    assert columns(table) == {
        "id": "int", "v": "bigint", "price": "decimal(12,2)", "name": "varchar(5)", "Added": "date",
        "tags": "array<string>",
    }  # fmt: skip
    assert spark_rows(table) == [
        (1, 1, Decimal("1.50"), None, None, None),
        (2, 2**40, Decimal("1234567.00"), None, day, ["a"]),
    ]
    assert done.version == before + 2  # the definition, then the rows
    again = table.upsert(data(id=(pa.int32(), [3]), added=(pa.date32(), [day]), v=(pa.int16(), [3])), evolve=True)
    assert again.version == done.version + 1  # names have no case, and nothing becomes narrower
    assert columns(table)["v"] == "bigint"
    assert table.to_df(version=before).columns == ["id", "v", "price", "name"]


def test_what_cannot_follow_is_refused_before_anything_changes(session: Session, tiered_fmt: str) -> None:
    session.sql(KEYED.format(tiered_fmt))
    table, key, new = session.table(f"{tiered_fmt}.default.t"), (pa.int32(), [1]), (pa.int64(), [1])
    assert "'v'" in not_evolved(table, "TYPE_MISMATCH", data(id=key, x=new, v=(pa.string(), ["1"])))
    assert "'name'" in not_evolved(table, "TYPE_MISMATCH", data(id=key, x=new, name=(pa.int32(), [1])))
    assert "'x'" in not_evolved(table, "TYPE_MISMATCH", data(id=key, x=(pa.null(), [None])))
    assert "'x'" in not_evolved(table, "TYPE_MISMATCH", data(id=key, x=(pa.duration("s"), [1])))
    not_evolved(table, "DUPLICATE_COLUMN_NAME", data(id=key, x=new, X=new))
    not_evolved(table, "INVALID_ARGUMENTS", data(id=key, _trinity_x=new))
    assert "primary key" in not_evolved(table, "CONSTRAINT_VIOLATION", data(x=new))
    # a text has no declared length, so the column keeps its own, which the row exceeds; the rows are unchanged
    with pytest.raises(TrinityError, match="longer"):
        table.upsert(data(id=key, name=(pa.string(), ["longer"]), x=new), evolve=True)
    assert spark_rows(table) == []
    with pytest.raises(TrinityError, match="'y'"):
        table.upsert(data(id=key, y=new))


def test_spark_and_polars_data(session: Session, spark: SparkSession) -> None:
    session.sql("CREATE TABLE p (region STRING, n SMALLINT, part INT) PARTITIONED BY (part)")
    table = session.table("p")
    table.append(spark.sql("SELECT 'eu' AS REGION, 70000 AS n, 1L AS part, 1.5D AS f"), evolve=True)
    table.append(pl.DataFrame({"region": ["us"], "f": [2.5], "ok": [True]}), evolve=True)
    assert columns(table) == {"region": "string", "n": "int", "part": "int", "f": "double", "ok": "boolean"}
    assert spark_rows(table) == [("eu", 70000, 1, 1.5, None), ("us", None, None, 2.5, True)]
    with pytest.raises(TrinityError, match="append"):
        table.upsert(pl.DataFrame({"new": [1]}), evolve=True)
    assert "new" not in columns(table)


@pytest.mark.tiered
def test_two_writers_at_once(table: Table) -> None:
    """They add the same column, another one, and widen the same one. Where the types do not fit, one of them fails."""
    kinds = {"a": pa.int32(), "b": pa.string(), "v": pa.int64()}

    def write(number: int, *names: str) -> None:
        given: dict[str, Any] = {n: (kinds[n], [None]) for n in names}
        table.upsert(data(id=(pa.int32(), [number]), **given), evolve=True)

    works = [partial(write, 1, "a"), partial(write, 2, "a", "v"), partial(write, 3, "b"), partial(write, 4, "a", "b")]
    assert at_once(works) == []
    assert {n: columns(table)[n] for n in kinds} == {"a": "int", "b": "string", "v": "bigint"}
    assert [row[0] for row in spark_rows(table)] == [1, 2, 3, 4]
    found = at_once(
        [
            lambda: table.upsert(data(id=(pa.int32(), [5]), c=(pa.int32(), [1])), evolve=True),
            lambda: table.upsert(data(id=(pa.int32(), [6]), c=(pa.bool_(), [True])), evolve=True),
        ]
    )
    assert [getattr(error, "code", error) for error in found] == ["TYPE_MISMATCH"]
    assert len(spark_rows(table)) == 5


def test_a_table_of_others_is_altered_by_its_owner(session: Session, tmp_path: Path) -> None:
    delta_rs(tmp_path / "theirs", FIRST)
    table = session.register("theirs", "delta", tmp_path / "theirs", FOREIGN)
    table.upsert(SECOND, evolve=True)  # no columns to add
    assert "theirs" in not_evolved(table, "NOT_SUPPORTED", SECOND.append_column("more", pa.array([1] * len(SECOND))))


@pytest.mark.parametrize("options", ["'merge-engine' = 'partial-update'", "'merge-engine' = 'aggregation'"])
def test_engines_that_fold_by_column(session: Session, options: str) -> None:
    session.sql(f"CREATE TABLE t (id INT PRIMARY KEY, a INT) TBLPROPERTIES ({options})")
    table = session.table("t")
    for given in ({"a": 1}, {"b": 2}, {"c": 3}):
        table.upsert(pl.DataFrame({"id": [1], **{n: [v] for n, v in given.items()}}), evolve=True)
    assert spark_rows(table) == [(1, 1, 2, 3)]


@pytest.mark.parametrize("catalog", ["parquet", "delta", "iceberg"])
@pytest.mark.parametrize("name", ["_change_type", "_COMMIT_VERSION", "_commit_timestamp", "_commit_snapshot_id"])
def test_names_of_a_feeds_columns_are_not_added(tmp_path: Path, catalog: str, name: str) -> None:
    """A table with such columns, from the rows of a feed, could have no feed itself."""
    with trinity.connect(tmp_path) as session:
        table = session.create_table(f"{catalog}.default.t", [Column("id", "bigint")], primary_key=["id"])
        given = pa.table({"id": [1], name: ["insert"]})
        assert name in not_evolved(table, "INVALID_ARGUMENTS", given)
        assert columns(table) == {"id": "bigint"}
        assert table.upsert(given.select(["id"]), evolve=True).rows == 1
