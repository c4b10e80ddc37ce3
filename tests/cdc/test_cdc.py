"""Other tools' change messages through the public API: messages, row versions, upserts, and reads of the table."""

from __future__ import annotations

import base64
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from tests.support.change_messages import event, messages, people, rows
from tests.support.iceberg import iceberg_spark
from tests.support.refusals import refused
from trinity import Column, Session, cdc

ID_NAME = [Column("id", "int"), Column("name", "string")]


def person(key: int, name: str | None) -> dict[str, Any]:
    return {"id": key, "name": name}


# -- Debezium ---------------------------------------------------------------------------------------------


def test_debezium(session: Session) -> None:
    table = people(session)
    topic = messages(
        session,
        event("r", 1, None, person(1, "a")),
        event("c", 2, None, person(2, "b")),
        {"schema": {"type": "struct"}, "payload": event("c", 3, None, person(3, "c"))},
        event("u", 9, None, person(1, "a2")),
        event("u", 5, person(1, "a"), person(1, "late")),
        event("d", 6, person(2, None), None),
        None,
        "null",
        {"schema": None, "payload": None},
        event("u", 7, person(3, "c"), person(4, "moved")),
    )
    found = cdc.debezium(topic, table)
    assert found.columns == ["id", "name", "lsn", "kind"]
    versions = [(r.kind, r.id, r.lsn) for r in found.collect()]
    assert versions == [
        ("+I", 1, 1), ("+I", 2, 2), ("+I", 3, 3), ("+U", 1, 9), ("+U", 1, 5), ("-D", 2, 6), ("-D", 3, 7), ("+I", 4, 7),
    ]  # fmt: skip
    table.upsert(found)
    assert rows(table) == [(1, "a2"), (4, "moved")]


def test_debezium_into_a_table_with_a_tombstone(session: Session) -> None:
    table = session.create_table(
        "parquet.default.t",
        [*ID_NAME, Column("ts", "bigint"), Column("gone", "boolean")],
        primary_key=["id"],
        properties={"watermark-key": "ts", "tombstone-key": "gone"},
    )
    topic = messages(session, event("c", 1, None, person(1, "a")), event("c", 1, None, person(2, "b")))
    deleted = messages(session, event("d", 2, person(1, "a"), None))
    binary = topic.union(deleted).selectExpr("CAST(value AS BINARY) AS v")
    found = cdc.debezium(binary, table, column="v", position="source.ts_ms")
    assert dict(found.dtypes) == {"id": "int", "name": "string", "ts": "bigint", "gone": "boolean"}
    table.upsert(found)
    assert rows(table, "id", "ts") == [(2, 7)]


def test_values_of_debezium(session: Session) -> None:
    types = {
        "k": "bigint", "b": "boolean", "f": "double", "n": "decimal(10,2)", "big": "decimal(38,0)", "d": "date",
        "t": "timestamp_ntz", "z": "timestamp", "bytes": "binary", "a": "array<int>", "s": "struct<x:int>",
    }  # fmt: skip
    columns = [Column(name, kind) for name, kind in types.items()]
    row = {
        "k": 2**62, "b": True, "f": 0.1, "n": "12.50", "big": 10**37 + 1, "d": 19000, "t": 1_700_000_000_123_456,
        "z": "2023-11-14T22:13:20Z", "bytes": "AQID", "a": [1, None], "s": {"x": 5, "y": 6},
    }  # fmt: skip
    precise = {"k": 1, "n": "+x4=", "big": "AQAAAAAAAAAA", "t": 1_700_000_000_123, "d": "2022-01-08Z"}
    shown = {name: f"CAST({name} AS STRING)" for name in ("d", "t")} | {"z": "unix_seconds(z)", "bytes": "hex(bytes)"}

    def read(message: dict[str, Any], **given: Any) -> tuple[Any, ...]:
        found = cdc.debezium(messages(session, event("c", 1, None, message)), columns, ["k"], **given)
        return tuple(found.selectExpr(*(f"{shown.get(n, n)} AS {n}" for n in types)).collect()[0])

    assert read(row, timestamps="microseconds") == (
        2**62, True, 0.1, Decimal("12.50"), 10**37 + 1, "2022-01-08", "2023-11-14 22:13:20.123456", 1_700_000_000,
        "010203", [1, None], (5,),
    )  # fmt: skip
    found = read(precise, timestamps={"t": "milliseconds"}, decimals="base64")
    assert found[3:7] == (Decimal("-12.50"), 2**64, "2022-01-08", "2023-11-14 22:13:20.123")
    # more digits than a DOUBLE has
    late_and_early = (event("c", 1, None, {"k": 1, "t": t}) for t in (4_102_444_799_999_999_999, -1))
    few = [Column("k", "bigint"), Column("t", "timestamp_ntz")]
    nanos = cdc.debezium(messages(session, *late_and_early), few, ["k"], timestamps="nanoseconds")
    shown_times = [r.t for r in nanos.selectExpr("CAST(t AS STRING) AS t").collect()]
    assert shown_times == ["2099-12-31 23:59:59.999999", "1969-12-31 23:59:59.999999"]


def longer(*given: Any) -> Any:
    """Return a test parameter of the long tier."""
    return pytest.param(*given, marks=pytest.mark.full)


@pytest.mark.parametrize(
    ("message", "code", "says"),
    [
        ('{"op": "c", "after": {"id": 1, ', "BAD_DATA", ["no change of a row", '{"op": "c"']),
        longer("plain text", "BAD_DATA", ["plain text"]),
        longer("", "BAD_DATA", ["no change of a row"]),
        longer("[]", "BAD_DATA", ["no change of a row", "Debezium"]),
        longer(event("t", 1), "BAD_DATA", ["no change of a row"]),
        (event("d", 1), "BAD_DATA", ["lacks the row before"]),
        longer(event("u", 1, person(1, "a")), "BAD_DATA", ["lacks the row after"]),
        (event("c", None, None, person(1, "a")), "BAD_DATA", ["no source.lsn", "another position"]),
        (event("c", 1, None, {"id": "one"}), "TYPE_MISMATCH", ["'id'", "one", "int"]),
        longer(event("c", 1, None, {"id": 1.5}), "TYPE_MISMATCH", ["'id'", "1.5"]),
        longer(event("c", 1, None, {"id": 1, "at": 5}), "TYPE_MISMATCH", ["'at'", "timestamps"]),
        longer(event("c", 1, None, {"id": 1, "n": "AQ=="}), "TYPE_MISMATCH", ["'n'", "decimals"]),
        (
            event("u", 1, None, {"id": 1, "name": "__debezium_unavailable_value"}),
            "BAD_DATA",
            ["'name'", "unavailable", "REPLICA IDENTITY FULL"],
        ),
    ],
)
def test_what_is_wrong_with_a_message_is_said(session: Session, message: Any, code: str, says: list[str]) -> None:
    table = people(session, "id INT, name STRING, at TIMESTAMP, n DECIMAL(5,2)")
    version = table.splits().version
    with refused(code, *says):
        table.upsert(cdc.debezium(messages(session, event("c", 1, None, person(5, "x")), message), table))
    assert table.splits().version == version


def test_what_is_no_change_is_dropped_on_request(session: Session) -> None:
    given = messages(session, "plain text", "", "{}", event("m", 1), event("c", 1, None, person(1, "a")))
    assert cdc.debezium(given, ID_NAME, ["id"], invalid="drop").count() == 1


@pytest.mark.full
def test_unknown_values_of_debezium_keep_what_is_stored(session: Session) -> None:
    session.sql("""
        CREATE TABLE parquet.default.people (id INT, name STRING, body STRING, lsn BIGINT, body_lsn BIGINT, kind STRING,
                                             PRIMARY KEY (id))
        TBLPROPERTIES ('merge-engine' = 'partial-update', 'rowkind.field' = 'kind',
                       'fields.lsn.sequence-group' = 'name', 'fields.body_lsn.sequence-group' = 'body',
                       'partial-update.remove-record-on-sequence-group' = 'lsn')""")
    table = session.table("parquet.default.people")

    def put(*events: dict[str, Any]) -> list[tuple[Any, ...]]:
        table.upsert(cdc.debezium(messages(session, *events), table, watermark="lsn", unavailable={"body": "body_lsn"}))
        return rows(table, "id", "name", "body", "body_lsn")

    unknown = "__debezium_unavailable_value"
    first = event("c", 10, None, {"id": 1, "name": "a", "body": "long"})
    other = event("c", 10, None, {"id": 2, "name": "x", "body": "text"})
    assert put(first, other, event("u", 30, None, {"id": 1, "name": None, "body": unknown})) == [
        (1, None, "long", 10), (2, "x", "text", 10),
    ]  # fmt: skip
    assert put(event("u", 20, None, {"id": 1, "name": "late", "body": "longer"})) == [
        (1, None, "longer", 20), (2, "x", "text", 10),
    ]  # fmt: skip
    gone = event("d", 40, {"id": 2, "name": None, "body": None})
    assert put(event("u", 40, None, {"id": 1, "name": "b", "body": None}), gone) == [(1, "b", None, 40)]


def test_unknown_values_of_every_type_are_known_as_such(session: Session) -> None:
    """Debezium writes the placeholder as the column's type allows."""
    unknown = "__debezium_unavailable_value"
    forms: dict[str, tuple[str, Any]] = {
        "texts": ("array<string>", [unknown]),
        "uuids": ("array<string>", ["b68a35a7-17ad-35b3-af2a-ae46edb4545a"]),
        "digits": ("array<string>", [*unknown.encode()]),
        "numbers": ("array<int>", [*unknown.encode()]),
        "amounts": ("array<decimal(5,2)>", [*unknown.encode()]),
        "bytes": ("binary", base64.b64encode(unknown.encode()).decode()),
        "pairs": ("map<string,string>", {unknown: unknown}),
        "json": ("string", json.dumps({unknown: unknown}, separators=(",", ":"))),
    }
    columns = [Column("id", "int"), *(Column(name, kind) for name, (kind, _) in forms.items())]
    for name, (_, value) in forms.items():
        given = messages(session, event("u", 1, None, {"id": 1, name: value}))
        with pytest.raises(PySparkException, match=f"BAD_DATA: Column '{name}': .*unavailable"):
            cdc.debezium(given, columns, ["id"]).collect()
        (row,) = cdc.debezium(given, columns, ["id"], unavailable={name: "own"}).collect()
        assert (row[name], row.own) == (None, None)
    known = {"id": 1, "texts": ["x"], "numbers": [95], "amounts": [1], "bytes": "AQ==", "pairs": {"x": unknown}}
    (row,) = cdc.debezium(messages(session, event("u", 1, None, known)), columns, ["id"]).collect()
    assert (row.numbers, row.pairs, row.json) == ([95], {"x": unknown}, None)


def test_flat_messages_of_debezium(session: Session) -> None:
    table = people(session)
    topic = messages(
        session,
        {**person(1, "a"), "__op": "c", "__source_lsn": 1},
        {**person(2, "b"), "__deleted": "false", "__lsn": 1},
        {"schema": {}, "payload": {**person(3, "c"), "__op": "r", "__lsn": 1}},
        None,
        {**person(1, "a2"), "__op": "u", "__deleted": "false", "__lsn": 3},
        {**person(2, None), "__deleted": "true", "__lsn": 3},
        {**person(3, None), "__op": "d", "__lsn": 3},
    )
    table.upsert(cdc.debezium_flat(topic, table))
    assert rows(table, "id", "name", "lsn") == [(1, "a2", 3)]
    with refused("BAD_DATA", "ExtractNewRecordState"):
        table.upsert(cdc.debezium_flat(messages(session, person(1, "a")), table))


def test_aggregates_take_old_rows_back(session: Session) -> None:
    table = session.create_table(
        "parquet.default.sums",
        [Column("id", "int"), Column("amount", "int"), Column("kind", "string")],
        primary_key=["id"],
        properties={"merge-engine": "aggregation", "rowkind.field": "kind", "fields.amount.aggregate-function": "sum"},
    )
    topic = messages(
        session,
        event("c", 1, None, {"id": 1, "amount": 5}),
        event("c", 2, None, {"id": 1, "amount": 7}),
        event("u", 3, {"id": 1, "amount": 5}, {"id": 1, "amount": 6}),
        event("d", 4, {"id": 1, "amount": 7}),
    )
    table.upsert(cdc.debezium(topic, table, position=None, preimages=True))
    assert rows(table, "id", "amount") == [(1, 6)]


# -- Maxwell, Canal, Flink ----------------------------------------------------------------------------------


def test_maxwell(session: Session) -> None:
    def change(kind: str, ts: int, data: Any = None, **others: Any) -> dict[str, Any]:
        return {"database": "d", "table": "t", "type": kind, "ts": ts, "xid": 1, "data": data, **others}

    table = people(session)
    topic = messages(
        session,
        change("bootstrap-start", 1, {}),
        change("bootstrap-insert", 1, person(1, "a")),
        change("insert", 2, person(2, "b")),
        change("insert", 2, person(3, "c")),
        change("update", 2, person(1, "a2"), old={"name": "a"}),
        change("update", 3, person(4, None), old={"id": 3, "name": "c"}),
        change("delete", 3, person(2, "b")),
        {"type": "table-alter", "database": "d", "table": "t", "ts": 4, "sql": "ALTER ..."},
    )
    table.upsert(cdc.maxwell(topic, table))
    assert rows(table) == [(1, "a2"), (4, None)]
    update = change("update", 2, {"id": 1, "name": "new", "tags": [1]}, old={"name": None, "tags": [2]})
    columns = [*ID_NAME, Column("tags", "array<int>")]
    found = cdc.maxwell(messages(session, update), columns, ["id"], preimages=True, position="xid", watermark="xid")
    assert [tuple(r) for r in found.collect()] == [(1, None, [2], 1, "-U"), (1, "new", [1], 1, "+U")]
    with refused("BAD_DATA", "Maxwell"):
        table.upsert(cdc.maxwell(messages(session, change("replace", 1, person(1, "a"))), table))


def test_canal(session: Session) -> None:
    def change(kind: str, es: int, data: Any, old: Any = None) -> dict[str, Any]:
        return {"type": kind, "es": es, "ts": es + 1, "isDdl": False, "data": data, "old": old, "pkNames": ["id"]}

    table = people(session, "id INT, name STRING, price DECIMAL(5,2), at TIMESTAMP_NTZ, bytes BINARY")
    texts = {"id": "1", "name": "a", "price": "5.18", "at": "2026-01-02 03:04:05.5", "bytes": "A\u00ff"}
    others = [{**texts, "id": "2"}, {**texts, "id": "3"}]
    topic = messages(
        session,
        change("INSERT", 1, [texts, *others]),
        change("UPDATE", 2, [{**texts, "name": None}, {**texts, "id": "4"}], [{"name": "a"}, {"id": "2"}]),
        change("DELETE", 3, [{**texts, "id": "3"}]),
        {"type": "ALTER", "isDdl": True, "es": 4, "sql": "ALTER ...", "data": None},
    )
    table.upsert(cdc.canal(topic, table))
    found = rows(table, "id", "name", "price", "bytes", "lsn")
    assert found == [(1, None, Decimal("5.18"), b"A\xff", 2), (4, "a", Decimal("5.18"), b"A\xff", 2)]
    assert {str(r["at"]) for r in table.to_df().collect()} == {"2026-01-02 03:04:05.500000"}
    with refused("BAD_DATA", "Canal"):
        table.upsert(cdc.canal(messages(session, change("UPSERT", 1, [texts])), table))


@pytest.mark.full
def test_flink_rows(session: Session) -> None:
    table = people(session)
    log = [(1, "a", 1, "INSERT"), (2, "b", 1, "+I"), (1, "a", 1, "update_before"), (1, "a2", 2, "2"), (2, "b", 1, "-D")]
    columns = dict(zip(("id", "name", "lsn", "op"), map(list, zip(*log, strict=True)), strict=True))
    given = session.spark.createDataFrame(pa.table(columns).cast(pa.schema(
        [("id", pa.int32()), ("name", pa.string()), ("lsn", pa.int64()), ("op", pa.string())]
    ))).coalesce(1)  # fmt: skip
    table.upsert(cdc.flink_rows(given, row_kind="kind"))
    assert rows(table) == [(1, "a2")]
    assert [r.gone for r in cdc.flink_rows(given, tombstone="gone").collect()] == [False, False, True, False, True]
    with refused("COLUMN_NOT_FOUND", "'kind'"):
        cdc.flink_rows(given, "kind")
    with refused("BAD_DATA", "row kind"):
        table.upsert(cdc.flink_rows(given.selectExpr("id", "name", "lsn", "'?' AS op"), row_kind="kind"))


# -- change feeds of tables -------------------------------------------------------------------------------


@pytest.mark.full
def test_delta_changes(session: Session, tmp_path: Path) -> None:
    source, spark = f"delta.`{tmp_path}/source`", session.spark
    spark.sql(
        f"CREATE TABLE {source} (id INT, name STRING) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    spark.sql(f"INSERT INTO {source} VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')")
    spark.sql(f"UPDATE {source} SET name = 'a2' WHERE id = 1")
    spark.sql(f"UPDATE {source} SET id = 30 WHERE id = 3")
    spark.sql(f"DELETE FROM {source} WHERE id = 2")
    reader = spark.read.format("delta").option("readChangeFeed", "true")

    def feed(first: int, last: int) -> DataFrame:
        return reader.option("startingVersion", first).option("endingVersion", last).load(f"{tmp_path}/source")

    table = people(session)
    table.upsert(cdc.delta_changes(feed(3, 4), table))
    table.upsert(cdc.delta_changes(feed(0, 2), table))
    assert rows(table) == [(1, "a2"), (4, "d"), (30, "c")]
    again = cdc.delta_changes(feed(2, 3), ["id"], preimages=True, watermark="v").collect()
    versions = sorted((r.v, r.id, r._row_kind) for r in again)
    assert versions == [(2, 1, "+U"), (2, 1, "-U"), (3, 3, "-D"), (3, 30, "+U")]
    assert [r._row_kind for r in again if r.v == 2] == ["-U", "+U"]


@pytest.mark.full
def test_changes_of_a_table_of_trinitys_rebuild_it(session: Session) -> None:
    source, target = (
        session.create_table(f"parquet.default.{name}", ID_NAME, primary_key=["id"]) for name in ("source", "target")
    )
    source.upsert(pa.table({"id": pa.array([1, 2], pa.int32()), "name": ["a", "b"]}))
    source.upsert(pa.table({"id": pa.array([1, 3], pa.int32()), "name": ["a2", "c"]}))
    source.delete([2])
    with refused("INVALID_ARGUMENTS", "target", "rowkind.field"):
        cdc.delta_changes(source.changes("2020-01-01").to_df(), target)
    table = people(session)
    for form in (True, False):
        table.upsert(cdc.delta_changes(source.changes("2020-01-01", compute_updates=form).to_df(), table))
        assert rows(table) == [(1, "a2"), (3, "c")]


@pytest.mark.full
def test_iceberg_changes(session: Session) -> None:
    session.sql("CREATE TABLE iceberg.default.source (id INT, name STRING)")
    spark = iceberg_spark(session)
    name = "iceberg.default.source"
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    spark.sql(f"UPDATE {name} SET name = 'a2' WHERE id = 1")
    spark.sql(f"DELETE FROM {name} WHERE id = 2")
    spark.sql(
        "CALL iceberg.system.create_changelog_view(table => 'default.source', changelog_view => 'changes', "
        "identifier_columns => array('id'))"
    )
    view = spark.table("changes")
    assert {"UPDATE_BEFORE", "UPDATE_AFTER", "DELETE"} < {r._change_type for r in view.collect()}
    found = cdc.iceberg_changes(view, ["id"], after=10, watermark="lsn", row_kind="kind")
    local = session.spark.createDataFrame(found.toArrow())  # the other session's
    table = people(session)
    table.upsert(local)
    # ordinal 0 is the snapshot in which the table was made
    assert rows(table, "id", "name", "lsn") == [(1, "a2", 13), (3, "c", 12)]


# -- what is given ----------------------------------------------------------------------------------------


def test_what_is_wrong_with_a_call_is_said(session: Session) -> None:
    topic = messages(session, event("c", 1, None, person(1, "a")))
    plain = session.create_table("parquet.default.plain", ID_NAME)
    table = people(session)
    with refused("COLUMN_NOT_FOUND", "'values'", "'value'"):
        cdc.debezium(topic, table, column="values")
    with refused("TYPE_MISMATCH", "'value'", "JSON"):
        cdc.maxwell(topic.selectExpr("1 AS value"), table)
    with refused("INVALID_ARGUMENTS", "primary key"):
        cdc.debezium(topic, plain)
    with refused("INVALID_ARGUMENTS", "key"):
        cdc.canal(topic, ID_NAME)
    with refused("COLUMN_NOT_FOUND", "'idd'", "'id'"):
        cdc.canal(topic, ID_NAME, ["idd"])
    with refused("INVALID_ARGUMENTS", "not both"):
        cdc.debezium(topic, ID_NAME, ["id"], row_kind="k", tombstone="t")
    with refused("INVALID_ARGUMENTS", "preimages"):
        cdc.debezium(topic, ID_NAME, ["id"], tombstone="t", preimages=True)
    with refused("DUPLICATE_COLUMN_NAME", "'name'"):
        cdc.debezium(topic, ID_NAME, ["id"], watermark="name")
    with refused("INVALID_ARGUMENTS", "'id'", "unavailable"):
        cdc.debezium(topic, table, unavailable={"id": "id_lsn"})
    with refused("INVALID_ARGUMENTS", "position"):
        cdc.debezium(topic, table, position="lsn")  # type: ignore[arg-type]
    with refused("COLUMN_NOT_FOUND", "_change_type"):
        cdc.delta_changes(topic, ["value"])
