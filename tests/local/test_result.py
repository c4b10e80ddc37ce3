"""``trinity.Result``: one interface of rows, whichever executor computes them."""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import trinity
from tests.support.without_spark import run_without_spark
from trinity import Column, Result, Session, Table, TrinityError
from trinity.rows import Row

pytestmark = pytest.mark.inner

ROWS = pa.table(
    {
        "order_id": ["a", "b"],
        "ts": pa.array([1, 2], pa.int64()),
        "deleted": pa.array([None, None], pa.bool_()),
        "amount": [1.5, None],
    }
)


def test_history_is_a_result_without_spark(local_orders: Table) -> None:
    local_orders.upsert(ROWS)
    found = local_orders.history()
    assert found.engine == "local"
    assert found.columns == ["version", "timestamp", "operation", "details"]
    assert [row.version for row in found] == sorted((row["version"] for row in found.collect()), reverse=True)
    assert found.fetchall()[0][0] == local_orders.splits().version
    assert [row["operation"] for row in found.to_pylist()] == ["append", "create"]


@pytest.fixture
def answer(local: Session) -> Result:
    at = pa.array([dt.datetime(2024, 3, 10, 1, 2, 3, 400_000, dt.UTC), None], pa.timestamp("us", "UTC"))
    inner = pa.array([{"at": at[0], "n": 1}, None], pa.struct([("at", at.type), ("n", pa.int32())]))
    listed = pa.array([[{"x": 1}, None], []], pa.list_(pa.struct([("x", pa.int64())])))
    mapped = pa.array([[("a", Decimal("1.50"))], None], pa.map_(pa.string(), pa.decimal128(9, 2)))
    return Result(
        local, pa.table({"at": at, "inner": inner, "listed": listed, "mapped": mapped, "b": [b"\x00\xff", b""]})
    )


def test_rows_are_found_by_place_name_and_attribute(answer: Result) -> None:
    first, second = answer.collect()
    clock = dt.datetime(2024, 3, 10, 1, 2, 3, 400_000, dt.UTC).astimezone().replace(tzinfo=None)
    assert first.at == first["at"] == first[0] == clock
    assert first.inner == (clock, 1)
    assert first.inner.n == 1
    assert first.listed == [(1,), None]
    assert first.mapped == {"a": Decimal("1.50")}
    assert second == (None, None, [], None, b"")
    assert first.asDict(recursive=True)["listed"] == [{"x": 1}, None]
    assert first.asDict()["inner"] is first.inner
    assert "at" in first
    assert "nothing" not in first
    with pytest.raises(AttributeError, match="no column 'nothing'; it has at, inner"):
        _ = first.nothing
    with pytest.raises(KeyError):
        _ = first["nothing"]
    assert pickle.loads(pickle.dumps(first)) == first
    assert isinstance(first, Row)
    assert repr(Result(answer._session, pa.table({"k": [1]})).collect()) == "[Row(k=1)]"


def test_a_slice_of_rows_has_its_own_values(answer: Result) -> None:
    cut = Result(answer._session, answer.to_arrow().slice(1))
    assert cut.collect() == answer.collect()[1:]


def test_a_result_is_arrow_data_for_others(answer: Result) -> None:
    assert pa.table(answer).equals(answer.to_arrow())
    assert pa.schema(answer) == answer.schema
    assert answer.to_polars().equals(pl.DataFrame(answer.to_arrow()))
    assert answer.to_pandas().shape == (2, 5)
    assert [c for c, *_ in answer.to_duckdb(duckdb.connect()).description] == answer.columns


def test_show_prints_what_spark_would(answer: Result, capsys: pytest.CaptureFixture[str]) -> None:
    Result(answer._session, answer.to_arrow().select(["listed", "mapped", "b"])).show(1)
    assert capsys.readouterr().out == (
        "+-----------+-----------+-------+\n"
        "|     listed|     mapped|      b|\n"
        "+-----------+-----------+-------+\n"
        "|[{1}, NULL]|{a -> 1.50}|[00 FF]|\n"
        "+-----------+-----------+-------+\n"
        "only showing top 1 row\n\n"
    )


def test_a_long_value_is_cut(local: Session, capsys: pytest.CaptureFixture[str]) -> None:
    found = Result(local, pa.table({"t": ["x" * 30]}))
    found.show()
    assert f"|{'x' * 17}...|" in capsys.readouterr().out
    found.show(truncate=False)
    assert f"|{'x' * 30}|" in capsys.readouterr().out
    assert f"<td>{'x' * 30}</td>" in str(found._repr_html_())


def test_an_attribute_that_no_frame_has_starts_nothing(answer: Result) -> None:
    assert not hasattr(answer, "_ipython_display_")
    assert not hasattr(answer, "__array__")


def test_what_a_frame_has_needs_spark(answer: Result) -> None:
    for ask in (lambda: answer["at"], answer.to_df):
        with pytest.raises(TrinityError, match="engine='local', without Spark; engine='auto' starts Spark") as refused:
            ask()
        assert refused.value.code == "NOT_SUPPORTED"


def test_a_result_is_data_for_a_table(local: Session, local_orders: Table) -> None:
    local_orders.upsert(Result(local, ROWS))
    assert local_orders.to_arrow().num_rows == 2


def test_a_lazy_result_is_made_at_each_use(local: Session) -> None:
    made = list[int]()

    def reader() -> pa.RecordBatchReader:
        made.append(1)
        return ROWS.to_reader()

    found = Result(local, reader)
    assert made == []
    assert found.to_arrow() == ROWS
    assert found.collect()[1].order_id == "b"
    assert len(made) == 2


def test_local_takes_no_spark(tmp_path: Path) -> None:
    with pytest.raises(TrinityError, match="takes no Spark") as refused:
        trinity.connect(tmp_path, spark=_Spark(), engine="local")  # type: ignore[arg-type]
    assert refused.value.code == "CONFIGURATION_INVALID"


class _Spark:
    """A replacement of a Spark session."""


_Spark.__name__, _Spark.__module__ = "SparkSession", "pyspark.sql.session"


def test_there_need_be_no_pyspark(tmp_path: Path) -> None:
    code = """
import sys, trinity, pyarrow as pa
session = trinity.connect(sys.argv[1], engine="local")
for fmt in ("parquet", "delta", "iceberg"):
    table = session.create_table(f"{fmt}.default.t", [trinity.Column("k", "int")], primary_key=["k"])
    table.upsert(pa.table({"k": [1, 2]}))
    print(fmt, sorted(table.to_arrow()["k"].to_pylist()), table.history().collect()[0].operation)
"""
    assert run_without_spark(code, str(tmp_path)).splitlines() == [
        f"{fmt} [1, 2] append" for fmt in ("parquet", "delta", "iceberg")
    ]


@pytest.fixture
def by_spark(session: Session) -> Result:
    return session.sql("SELECT 1 AS k, TIMESTAMP '2024-01-01 00:00:00Z' AS at, array(named_struct('x', 1L)) AS l")


def test_spark_and_this_process_give_the_same(
    by_spark: Result, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rows are compared as Arrow data, and by the methods that only a DataFrame has."""
    here = Result(session, by_spark.to_arrow())
    assert (by_spark.engine, here.engine) == ("spark", "local")
    assert here.schema == by_spark.schema
    assert here.collect() == by_spark.collect() == list(by_spark)
    assert here.where("k = 1").select(here["k"]).collect() == by_spark.select("k").collect()
    assert here.union(by_spark).count() == 2
    assert by_spark.unionAll(here).count() == 2
    for cut in (True, False):
        here.show(1, cut)
        printed = capsys.readouterr().out
        by_spark.show(1, cut)
        assert capsys.readouterr().out == printed
    assert here.to_df().schema.simpleString() == by_spark.to_df().schema.simpleString()


def test_a_result_of_spark_is_data(by_spark: Result, session: Session) -> None:
    table = session.create_table("t", [Column("k", "int"), Column("at", "timestamp")], primary_key=["k"])
    table.upsert(session.sql("SELECT 1 AS k, TIMESTAMP '2024-01-01 00:00:00Z' AS at"))
    table.delete(by_spark.select("k"))
    assert table.merge(Result(session, by_spark.to_arrow().select(["k", "at"])), "t.k = s.k") \
        .when_not_matched_insert_all().execute().inserted == 1  # fmt: skip
    assert table.merge(by_spark, "t.k = s.k").when_matched_delete().execute().deleted == 1


def test_the_names_of_duckdb_lead_to_those_here(local: Session) -> None:
    found = Result(local, pa.table({"t": [1]}))
    with pytest.raises(AttributeError, match=r"no attribute 'df'; use to_pandas\(\)$"):
        found.df()
    with pytest.raises(AttributeError, match="nor has a DataFrame"):
        found.nothing()
