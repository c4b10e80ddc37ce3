"""Cursors over Trinity tables without Spark: rows as Arrow data, streams, named parameters, whole data frames."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trinity import Table, dbapi
from trinity.journal.backends.base import ArrowRows

pytestmark = pytest.mark.inner


@pytest.fixture
def db(warehouse: Path) -> Iterator[dbapi.Connection]:
    """Yield a connection without Spark, in a time zone other than the process's."""
    settings = {"spark.sql.session.timeZone": "Asia/Tokyo"}
    with dbapi.connect(warehouse=warehouse, engine="local", spark_settings=settings) as connection:
        connection.execute("CREATE TABLE k (id INT, v STRING, at TIMESTAMP, PRIMARY KEY (id))")
        yield connection


def table(lake: dbapi.Connection, name: str) -> Table:
    found: Table = lake.backend.session.table(name)  # type: ignore[attr-defined]
    return found


NOON = dt.datetime(2020, 1, 1, 12)
ROWS = [(1, "a", NOON), (2, None, None), (3, "c", NOON)]


def filled(lake: dbapi.Connection) -> dbapi.Cursor:
    lake.cursor().executemany("INSERT INTO k VALUES (?, ?, ?)", ROWS)
    return lake.execute("SELECT * FROM k ORDER BY id")


def test_what_is_not_yet_fetched_is_had_as_arrow_data(db: dbapi.Connection) -> None:
    cursor = filled(db)
    assert (cursor.rowcount, cursor.fetchone()) == (3, ROWS[0])
    rest = cursor.fetch_arrow_table()
    assert rest.schema.types == [pa.int32(), pa.string(), pa.timestamp("us", "UTC")]
    moment = dt.datetime(2020, 1, 1, 3, tzinfo=dt.UTC)
    assert rest.to_pylist() == [{"id": 2, "v": None, "at": None}, {"id": 3, "v": "c", "at": moment}]
    assert (cursor.fetchall(), cursor.fetch_arrow_table().num_rows) == ([], 0)


def test_rows_as_a_stream_and_as_a_data_frame(db: dbapi.Connection) -> None:
    reader = filled(db).fetch_record_batch()
    assert isinstance(reader, pa.RecordBatchReader)
    assert reader.read_all()["id"].to_pylist() == [1, 2, 3]
    frame = filled(db).fetch_df()
    assert isinstance(frame, pd.DataFrame)
    assert frame["v"].tolist()[::2] == ["a", "c"]
    with pytest.raises(dbapi.ProgrammingError, match="execute a query first"):
        db.cursor().fetch_arrow_table()


def test_a_page_is_computed_when_its_first_row_is_fetched() -> None:
    schema, computed = pa.schema([("n", pa.int64())]), list[int]()

    def pages() -> Iterator[pa.RecordBatch]:
        for start in (0, 2, 2, 4):
            computed.append(start)
            yield pa.record_batch({"n": range(start, start + 2) if start != 2 else []}, schema)

    rows = ArrowRows(schema, pages(), lambda page: zip(*(c.to_pylist() for c in page.columns), strict=True))
    assert (next(rows), next(rows), computed) == ((0,), (1,), [0])
    assert (next(rows), computed) == ((4,), [0, 2, 2, 4])
    assert rows.to_reader().read_all().to_pylist() == [{"n": 5}]


def test_a_large_query_is_not_read_before_it_is_fetched(db: dbapi.Connection) -> None:
    cursor = db.cursor()
    assert cursor.adbc_ingest("large", pa.table({"n": range(100_000)})) == cursor.rowcount == 100_000
    cursor.execute("SELECT n FROM large ORDER BY n")
    assert (cursor.rowcount, cursor.fetchmany(2)) == (-1, [(0,), (1,)])
    assert sum(1 for _ in cursor) == 99_998


def test_parameters_have_names(db: dbapi.Connection) -> None:
    before = table(db, "k").version
    insert = "INSERT INTO k (v, id) VALUES (:v, :id)"
    cursor = db.cursor().executemany(insert, [{"id": 1, "v": ":v"}, {"v": None, "id": 2, "more": 0}])
    assert (cursor.rowcount, table(db, "k").version) == (2, before + 1)
    query = "SELECT id FROM k WHERE id = :id OR (v = ':id' OR v = :v) ORDER BY id -- :no"
    assert db.execute(query, {"id": 2, "v": ":v"}).fetchall() == [(1,), (2,)]
    for text, values, named in [
        (query, {"id": 1, "w": 2}, "':v' has no value"),
        ("SELECT id FROM k WHERE id = ?", {"id": 1}, "write ':name'"),
        (query, 5, "not int"),
    ]:
        with pytest.raises(dbapi.ProgrammingError, match=named):
            db.execute(text, values)
    rows: list[Any] = [{"id": 3, "v": "x"}, {"id": 4}]
    with pytest.raises(dbapi.ProgrammingError, match=r"Row 2: .*':v' has no value"):
        cursor.executemany(insert, rows)
    assert table(db, "k").version == before + 1


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.sampled_from("\\'\"nt%_u0041ž\n\0")))
def test_a_text_is_what_was_given(db: dbapi.Connection, text: str) -> None:
    assert db.execute("SELECT ? AS v, 'x' AS w", [text]).fetchone() == (text, "x")


class State(str, Enum):
    PAID = "paid"


class Size(int, Enum):
    SMALL = 7


def test_an_enum_is_its_value(db: dbapi.Connection) -> None:
    insert = "INSERT INTO k (id, v) VALUES (?, ?)"
    db.execute(insert, (Size.SMALL, State.PAID))
    db.cursor().executemany(insert, [(1, State.PAID), (2, "paid")])
    assert db.execute("SELECT id, v FROM k WHERE v = ? ORDER BY id", [State.PAID]).fetchall() == [
        (1, "paid"), (2, "paid"), (7, "paid")
    ]  # fmt: skip


def test_a_number_of_rows_is_not_negative(db: dbapi.Connection) -> None:
    cursor = filled(db)
    with pytest.raises(dbapi.ProgrammingError, match="fetchmany"):
        cursor.fetchmany(-1)
    assert (cursor.fetchmany(0), cursor.fetchmany(5)) == ([], ROWS)


@pytest.mark.parametrize("versions", ["BIGINT"])
def test_parameters_have_names_on_postgresql(hr: dbapi.Connection) -> None:
    hr.cursor().executemany(
        "INSERT INTO depts VALUES (:id, :name::text)", [{"name": "a", "id": 1}, {"name": "b", "id": 2}]
    )
    found = hr.execute("SELECT name FROM depts WHERE deptno = :id AND name <> ':id'", {"id": 2})
    assert found.fetchall() == [("b",)]
    with pytest.raises(dbapi.NotSupportedError, match="fetchall"):
        hr.execute("SELECT 1").fetch_arrow_table()
    with pytest.raises(dbapi.NotSupportedError, match="executemany"):
        hr.cursor().adbc_ingest("depts", pa.table({"deptno": [1]}), "append")


FRAMES = [pa.table({"id": [1, 2]}), pd.DataFrame({"id": [1, 2]}), pl.DataFrame({"id": [1, 2]}), [{"id": 1}, {"id": 2}]]


@pytest.mark.parametrize("data", FRAMES, ids=lambda data: type(data).__module__.partition(".")[0])
def test_a_data_frame_becomes_a_table(db: dbapi.Connection, data: Any) -> None:
    cursor = db.cursor()
    assert cursor.adbc_ingest("made", data) == 2
    assert cursor.execute("SELECT * FROM parquet.default.made").fetchall() == [(1,), (2,)]
    assert cursor.adbc_ingest("made", data, "create_append", catalog_name="parquet") == 2
    assert table(db, "made").count() == 4


def test_the_modes_of_ingestion(db: dbapi.Connection) -> None:
    cursor, rows = filled(db), pa.table({"id": pa.array([3, 4], pa.int32()), "v": ["C", "D"]})
    before = table(db, "k").version
    assert cursor.adbc_ingest("k", rows, "append", db_schema_name="default") == 2
    assert table(db, "k").version == before + 1
    assert db.execute("SELECT id, v FROM k ORDER BY id").fetchall() == [(1, "a"), (2, None), (3, "C"), (4, "D")]
    for name, mode, code in [("k", "create", "TABLE_ALREADY_EXISTS"), ("no", "append", "TABLE_NOT_FOUND")]:
        with pytest.raises(dbapi.ProgrammingError) as caught:
            cursor.adbc_ingest(name, rows, mode)  # type: ignore[arg-type]  # one of the modes
        assert caught.value.code == code
    for refused in (pa.table({"a": [1], "A": [2]}), pa.table({"a": [dt.timedelta(1)]})):
        with pytest.raises(dbapi.DatabaseError):
            cursor.adbc_ingest("k", refused, "replace")
        with pytest.raises(dbapi.DatabaseError):
            cursor.adbc_ingest("new", refused)
    assert table(db, "k").count() == 4
    assert not db.backend.session.table_exists("new")  # type: ignore[attr-defined]
    assert cursor.adbc_ingest("k", rows.select(["v"]), "replace") == 2
    assert db.execute("SELECT * FROM k ORDER BY v").fetchall() == [("C",), ("D",)]


REFUSED: list[tuple[str, Any, str]] = [
    ("delta", pa.table({"unit price": [2.5]}), "NOT_SUPPORTED"),
    ("delta", pa.table({"at": pa.array([[dt.time(1)]])}), "NOT_SUPPORTED"),
    *[(fmt, pa.table({"": [1]}), "INVALID_ARGUMENTS") for fmt in ("parquet", "delta", "iceberg")],
]


@pytest.mark.parametrize(("fmt", "data", "code"), REFUSED)
def test_a_table_stays_where_its_replacement_is_refused(
    db: dbapi.Connection, fmt: str, data: pa.Table, code: str
) -> None:
    cursor = db.cursor()
    for rows in ([{"id": 1}], [{"id": 1}, {"id": 2}]):
        cursor.adbc_ingest("prices", rows, "replace", catalog_name=fmt)
    name = f"{fmt}.default.prices"
    before, version = table(db, name).to_arrow(), table(db, name).version
    with pytest.raises(dbapi.DatabaseError) as caught:
        cursor.adbc_ingest("prices", data, "replace", catalog_name=fmt)
    assert caught.value.code == code
    assert (table(db, name).to_arrow(), table(db, name).version) == (before, version)
    assert table(db, name).to_arrow(version=version - 1).num_rows == 1
