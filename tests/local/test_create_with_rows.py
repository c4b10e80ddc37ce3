"""A table made from rows by one call: its columns and rows; a refused call leaves no table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tests.support.refusals import refused
from trinity import Session

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


@dataclass
class Order:
    """A row as an application declares it."""

    id: int
    price: Decimal


GIVEN = {
    "pandas": pd.DataFrame({"id": [1, 2], "state": ["new", None]}),
    "polars": pl.DataFrame({"id": [1, 2], "state": ["new", None]}),
    "lazy": pl.LazyFrame({"id": [1, 2], "state": ["new", None]}),
    "arrow": pa.table({"id": [1, 2], "state": ["new", None]}),
    "dicts": [{"id": 1, "state": "new"}, {"id": 2}],
}


@pytest.mark.parametrize("kind", GIVEN)
def test_a_table_is_made_of_rows(local: Session, kind: str) -> None:
    _is_made(local, "parquet", GIVEN[kind])


def test_a_table_of_each_format_is_made_of_rows(local: Session, local_fmt: str) -> None:
    table = _is_made(local, local_fmt, GIVEN["arrow"])
    again = local.create_table(f"{local_fmt}.default.again", table, primary_key=["id"])
    assert again.to_arrow().sort_by("id") == table.to_arrow().sort_by("id")
    kept = local.create_table(f"{local_fmt}.default.again", [{"id": 7}], if_not_exists=True)
    assert kept.count() == 2
    with refused("TABLE_ALREADY_EXISTS", "again"):
        local.create_table(f"{local_fmt}.default.again", [{"id": 7}])


def _is_made(session: Session, fmt: str, given: Any) -> Any:
    table = session.create_table(f"{fmt}.default.orders", given, primary_key=["id"])
    assert [(c.name, c.type, c.nullable) for c in table.definition.visible] == [
        ("id", "bigint", False),
        ("state", "string", True),
    ]
    assert table.to_arrow().sort_by("id").to_pylist() == [{"id": 1, "state": "new"}, {"id": 2, "state": None}]
    table.upsert({"id": 2, "state": "paid"})
    assert table.count() == 2
    return table


def test_rows_of_one_key_are_merged(local: Session, local_fmt: str) -> None:
    rows = [{"id": 1, "at": NOON, "n": 1}, {"id": 1, "at": NOON - dt.timedelta(1), "n": 2}]
    made = local.create_table(f"{local_fmt}.default.t", rows, primary_key=["id"], properties={"watermark-key": "at"})
    assert made.to_arrow(columns=["n"]).to_pylist() == [{"n": 1}]


def test_results_dataclasses_and_streams_are_rows(local: Session) -> None:
    first = local.create_table("first", [Order(1, Decimal("1.50")), Order(2, Decimal("2.00"))])
    assert [c.type for c in first.definition.visible] == ["bigint", "decimal(3,2)"]
    second = local.create_table("second", local.sql("SELECT id FROM first WHERE price > 1.5"))
    assert second.to_arrow().to_pylist() == [{"id": 2}]
    third = local.create_table("third", first.to_reader(columns=["id"]))
    assert third.count() == 2
    only = local.create_table("only", pl.Schema({"id": pl.Int32, "at": pl.Date}))
    assert [c.type for c in only.definition.visible] == ["int", "date"]
    assert only.count() == 0


def _stops() -> Iterator[pa.RecordBatch]:
    yield pa.record_batch({"id": [1]})
    raise OSError("the source is gone")


def test_refused_rows_leave_no_table(local: Session, local_fmt: str) -> None:
    name = f"{local_fmt}.default.t"
    with refused("CONSTRAINT_VIOLATION", "id"):
        local.create_table(name, [{"id": 1}, {"id": None}], primary_key=["id"])
    assert not local.table_exists(name)
    with refused("CONSTRAINT_VIOLATION", "small"):
        local.create_table(name, [{"id": 1}, {"id": 9}], checks={"small": "id < 5"})
    assert not local.table_exists(name)
    stream = pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64())]), _stops())
    with pytest.raises(Exception, match="the source is gone"):
        local.create_table(name, stream)
    assert not local.table_exists(name)
    assert local.create_table(name, [{"id": 3}]).count() == 1


@pytest.mark.parametrize(
    ("given", "code", "named"),
    [
        ({"id": "int"}, "INVALID_ARGUMENTS", ("[row]", "Column")),
        ([1], "INVALID_ARGUMENTS", ("Row 0",)),
        (5, "INVALID_ARGUMENTS", ("int",)),
        ([{"id": 1}, {"id": "x"}], "TYPE_MISMATCH", ("id", "row 1", "'x'")),
        ([{"id": None}], "TYPE_MISMATCH", ("id", "type")),
        (pa.table({"id": [1], "ID": [2]}), "DUPLICATE_COLUMN_NAME", ("ID",)),
        ([], "INVALID_ARGUMENTS", ("column",)),
        (pd.DataFrame([[1, 2]], columns=["id", "id"]), "DUPLICATE_COLUMN_NAME", ("'id'",)),
        (pd.DataFrame({"id": [1], "n": [1 << 70]}), "TYPE_MISMATCH", ("'n'", "too large")),
        (pd.DataFrame({"id": [1, 2], "n": [1, "x"]}), "TYPE_MISMATCH", ("'n'", "astype")),
        ([{"id": 1, "n": [{"void": 1, "b": None}]}], "TYPE_MISMATCH", ("'n'", "b:void")),
        (pl.Series("id", [1]), "INVALID_ARGUMENTS", ("Series", "to_frame()")),
        (pd.Series([1], name="id"), "INVALID_ARGUMENTS", ("Series", "to_frame()")),
        (pl.DataFrame({"id": [1 << 70]}, schema={"id": pl.Int128}), "TYPE_MISMATCH", ("cast it",)),
    ],
)
def test_what_makes_no_table(local: Session, given: Any, code: str, named: tuple[str, ...]) -> None:
    with refused(code, *named):
        local.create_table("t", given)
    assert not local.table_exists("t")


def test_ctrl_c_within_a_stream_is_ctrl_c(local: Session, local_fmt: str) -> None:
    table = local.create_table(f"{local_fmt}.default.t", pa.schema([("id", pa.int64())]))

    def pages() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"id": [1]})
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table.append(pa.RecordBatchReader.from_batches(table.schema, pages()))
    assert table.count() == 0
