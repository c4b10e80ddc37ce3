"""Error messages: shortened values, no traceback, the table's full name; and errors that do not blame the data."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import trinity
from tests.support.refusals import refused
from trinity import Column, Session, TrinityError, dbapi
from trinity.messages import SHOWN, presentable, value_text

pytestmark = pytest.mark.inner

LONG = {
    "plain": "x" * 100_000,
    "words": "x y " * 25_000,
    "quotes": "it's " * 20_000,
    "path": "/a" * 50_000,
    "sql": "(a = 'b') AND " * 7_000,
}
MOST = 2000
"""The most characters of a message."""


def shown(work: Callable[[], Any]) -> str:
    """Return the message of the error that a function must raise."""
    with pytest.raises(TrinityError) as caught:
        work()
    assert len(str(caught.value)) < MOST
    assert len(repr(caught.value)) < MOST
    return caught.value.message


@pytest.fixture
def light(tmp_path: Path) -> Session:
    """Return a session that starts no Spark here."""
    return trinity.connect(tmp_path)


@pytest.mark.parametrize("shape", LONG)
def test_a_long_value_is_shown_in_short(light: Session, shape: str) -> None:
    value = LONG[shape]
    table = light.create_table(
        "t", [Column("k", "int"), Column("v", "int"), Column("s", "varchar(3)")], primary_key=["k"]
    )
    shown(lambda: table.upsert(pa.table({"k": [1], "v": [value], "s": ["a"]})))
    assert "'s'" in shown(lambda: table.upsert(pa.table({"k": [1], "v": [1], "s": [value]})))
    shown(lambda: table.upsert(pa.table({"k": [1], value: [1]})))
    shown(lambda: light.table(value))
    shown(lambda: light.table(f"`{value}`"))
    shown(lambda: light.connector(value))
    shown(lambda: light.use(None, value))
    shown(lambda: light.sql("SELECT 1", dialect=value))
    shown(lambda: light.create_table("u", [Column("k", value)]))
    shown(lambda: light.create_table("u", [Column(value, "int"), Column(value, "int")]))
    shown(lambda: light.create_table("u", [Column("k", "int")], partition_by=[value]))
    shown(lambda: light.create_table("u", [Column("k", "int")], properties={"tombstone.retention": value}))
    shown(lambda: light.create_table("u", [Column("k", "int")], properties={value: "1"}))
    shown(lambda: table.vacuum(retain=value))
    shown(lambda: trinity.connect(catalogs={"c": {"connector": value}}))
    shown(lambda: dbapi.connect(value))
    shown(lambda: dbapi.connect(f"inline:{json.dumps({'schemas': value})}"))


def test_ten_megabytes_are_no_matter(light: Session) -> None:
    value = "x" * 10_000_000
    table = light.create_table("t", [Column("k", "int"), Column("s", "varchar(3)")], primary_key=["k"])
    for work in (
        lambda: table.upsert(pa.table({"k": [1], "s": [value]})),
        lambda: table.upsert(pa.table({"k": [value], "s": ["a"]})),
        lambda: table.upsert(pa.table({"k": [1], value: ["a"]})),
        lambda: light.connector(value),
        lambda: trinity.connect(catalogs={"c": {"connector": value, "password": value}}),
    ):
        shown(work)


def test_what_is_cut_is_cut_in_its_middle() -> None:
    found = TrinityError("BAD_DATA", f"Column 'c': '{'x' * 1000}' is no number; write 1.").message
    assert found.startswith("Column 'c': 'xxx")
    assert found.endswith("xxx' is no number; write 1.")
    assert "x" * SHOWN not in found
    path = f"/{'folder/' * 60}00000000000000000001.json"
    assert path in TrinityError("BAD_DATA", f"Manifest '{path}' is missing; restore it.").message


@pytest.mark.parametrize("shape", LONG)
def test_a_message_stays_as_it_is_when_it_is_told_on(shape: str) -> None:
    once = presentable(f"Column 'c': '{LONG[shape]}' is wrong.")
    assert presentable(once) == once


def test_no_message_has_a_traceback() -> None:
    try:
        raise ValueError("the reason")
    except ValueError:
        import traceback

        text = f"The worker failed:\n{traceback.format_exc()}"
    assert TrinityError("BAD_DATA", text).message == "The worker failed:\nValueError: the reason\n"


def test_errors_of_create_table_name_the_catalog(light: Session, fmt: str) -> None:
    name = f"{fmt}.default.t"
    k = Column("k", "int")
    for columns, options in (
        ([], {}),
        ([k, k], {}),
        ([k], {"primary_key": ["n"]}),
        ([k], {"partition_by": ["k"]}),
        ([k], {"primary_key": ["k"], "properties": {"watermark-key": "n"}}),
        ([Column("k", "int", default="1 +")], {}),
        ([k], {"checks": {"c": "n > 0"}}),
        ([k], {"checks": {"c": "k >"}}),
    ):
        assert f"'{name}'" in shown(lambda: light.create_table(name, columns, **options))  # noqa: B023
    with pytest.raises(TrinityError, match=r"default\.t"):
        light.table(f"{fmt}.default.t")


NO_HANDLES = """
import resource, sys, os
import pyarrow as pa, pyarrow.parquet as pq, trinity, trinity.engine.reading.spark.merge_view
from trinity import Column, TrinityError
folder = sys.argv[1]
tables = {}
with trinity.connect(folder) as session:
    for name in ("parquet.default.a", "parquet.default.b", "iceberg.default.a", "iceberg.default.b"):
        session.create_table(name, [Column("k", "int")], primary_key=["k"]).upsert(pa.table({"k": [1]}))
    os.makedirs(f"{folder}/files")
    pq.write_table(pa.table({"k": [1]}), f"{folder}/files/1.parquet")
    for name in ("a", "b"):
        session.register(f"parquet.default.files_{name}", "parquet", f"{folder}/files", {"primary-key": "k"})
with trinity.connect(folder) as session:
    for name in ("parquet.default.a", "iceberg.default.a", "parquet.default.files_a"):
        session.table(name).splits()
    others = [session.table(n) for n in ("iceberg.default.b", "parquet.default.files_b", "parquet.default.b")]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    found = []
    for table in others:
        for work in (table.splits, lambda: table.merge_view_sql("spark")):
            try:
                work()
                found.append("done")
            except TrinityError as error:
                found.append(error.code)
            except OSError:
                found.append("FILESYSTEM_ERROR")
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
print(",".join(found))
"""


def test_no_file_handles_are_no_bad_data(tmp_path: Path) -> None:
    """A process that may open no more files gets an error that says so; no file is reported as damaged."""
    done = subprocess.run(
        [sys.executable, "-c", NO_HANDLES, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    codes = done.stdout.strip().split(",")
    assert set(codes) <= {"done", "FILESYSTEM_ERROR"}, codes
    assert codes.count("FILESYSTEM_ERROR") > 2, codes


# -- Spark ---------------------------------------------------------------------------------------------------


def test_a_worker_s_error_comes_without_its_traceback(session: Session, tiered_fmt: str) -> None:
    from pyspark.sql.functions import udf

    session.spark.udf.register("fails", udf(lambda value: int(f"no use of {value}"), "int"))
    session.sql(f"CREATE TABLE {tiered_fmt}.default.t (k INT)")
    message = shown(lambda: session.sql(f"INSERT INTO {tiered_fmt}.default.t SELECT fails(1)"))
    assert "no use of 1" in message
    assert "Traceback" not in message
    assert 'File "' not in message


@pytest.mark.full
@pytest.mark.parametrize(
    "condition",
    ["v > 0 -- above\n", "v > 0 /* above */", "-- one\nv > 0 -- two\nAND v < 9 -- three\n"],
)
def test_a_check_that_ends_in_a_comment_comes_back(session: Session, tiered_fmt: str, condition: str) -> None:
    session.sql(f"USE {tiered_fmt}.default")
    session.sql(f"CREATE TABLE t (v INT, CONSTRAINT c CHECK ({condition}))")
    session.create_table("u", [Column("v", "int", default="1 -- one")], checks={"c": condition})
    for name in ("t", "u"):
        texts = []
        for old, new in ((name, f"{name}2"), (f"{name}2", f"{name}3")):
            text = session.sql(f"SHOW CREATE TABLE {old}").head()[0]
            texts.append(text.replace(f".{old} ", ".x "))
            session.sql(text.replace(f".{old} ", f".{new} "))
        last = session.sql(f"SHOW CREATE TABLE {name}3").head()[0]
        assert last.replace(f".{name}3 ", ".x ") == texts[1]
        with pytest.raises(TrinityError, match="CONSTRAINT_VIOLATION"):
            session.sql(f"INSERT INTO {name}3 VALUES (-1)")


def test_more_values_than_columns_are_a_type_mismatch(session: Session, tiered_fmt: str) -> None:
    session.sql(f"CREATE TABLE {tiered_fmt}.default.t (k INT PRIMARY KEY, v INT)")
    for text in ("VALUES (1, 2, 3)", "VALUES (1)", "SELECT 1, 2, 3", "(k) VALUES (1, 2)"):
        with pytest.raises(TrinityError) as caught:
            session.sql(f"INSERT INTO {tiered_fmt}.default.t {text}")
        assert caught.value.code == "TYPE_MISMATCH"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (7, "7"),
        (Decimal("1.50"), "1.50"),
        (2.5, "2.5"),
        ("it's", "'it's'"),
        (dt.date(2020, 1, 2), "'2020-01-02'"),
        (dt.datetime(2020, 1, 2, 3, tzinfo=dt.UTC), "'2020-01-02 03:00:00+00:00'"),
        (b"\x01\xff", "X'01FF'"),
        (("a", 1), "('a', 1)"),
        ({"d": dt.date(2020, 1, 2), "n": [Decimal(1), None]}, "{'d': '2020-01-02', 'n': (1, NULL)}"),
    ],
)
def test_values_are_written_as_in_sql(value: Any, text: str) -> None:
    assert value_text(value) == text


@pytest.mark.full
def test_rows_are_told_in_sql(session: Session) -> None:
    """A MERGE matches one row twice, and another inserts a live key."""
    session.use("parquet", "default")
    session.sql("CREATE TABLE t (d DATE, n DECIMAL(9,2), v INT, PRIMARY KEY (d, n))")
    session.sql("INSERT INTO t VALUES (DATE '2020-01-02', 1.5, 1)")
    source = "(SELECT DATE '2020-01-02' AS d, 1.5BD AS n, x AS v FROM VALUES (1), (2) AS v(x)) s"
    key = "(d = '2020-01-02', n = 1.50)"
    with refused("MERGE_TARGET_ROW_MULTIPLE_MATCHES", key):
        session.sql(f"MERGE INTO t USING {source} ON t.d = s.d WHEN MATCHED THEN UPDATE SET v = s.v")
    with refused("CONSTRAINT_VIOLATION", key):
        session.sql(f"MERGE INTO t USING {source} ON t.v = -1 WHEN NOT MATCHED AND s.v = 1 THEN INSERT *")


def test_messages_have_the_whole_name(session: Session, fmt: str) -> None:
    """This holds for messages about the table's definition, and about the one that an adapter changes."""
    table = session.create_table(f"{fmt}.default.t", [Column("k", "int"), Column("v", "int")], primary_key=["k"])
    row = {"k": [1], "v": [1]}
    with refused("TYPE_MISMATCH", f"'{fmt}.default.t'"):
        table.upsert(pa.table({**row, "v": [["a"]]}), evolve=True)
    with refused("TYPE_MISMATCH", f"'{fmt}.default.t'"):
        table.upsert(pa.table({**row, "x": pa.nulls(1)}), evolve=True)
    for change in (
        lambda: table.add_column(Column("V", "int")),
        lambda: table.drop_column("k"),
        lambda: table.widen_column("v", "string"),
        lambda: table.rename_column("v", "k"),
        lambda: table.set_not_null("k", not_null=False),
        lambda: table.set_properties({"merge-engine": "first-row"}),
    ):
        assert f"'{fmt}.default.t'" in shown(change)


def test_names_in_backticks_name_columns(session: Session) -> None:
    """The keys of a dict of values may be quoted as in SQL, as in Delta's Python API."""
    table = session.create_table("parquet.default.t", [Column("k", "int"), Column("a b", "int")])
    table.append(pa.table({"k": [1], "a b": [1]}))
    assert table.update("k = 1", {"`A b`": "2"}).updated == 1
    assert table.to_arrow()["a b"].to_pylist() == [2]
    with refused("COLUMN_NOT_FOUND", "no column 'a c'", "'a b'"):
        table.update("k = 1", {"`a c`": "2"})
