"""Values in change messages: each is exactly the message's, at every depth, or an error names it."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame

from tests.support.change_messages import event, messages, people, rows
from tests.support.refusals import refused
from trinity import Column, Session, cdc
from trinity.calls import spark_errors


def row_by(session: Session, tool: str, columns: dict[str, str], row: str, **given: Any) -> DataFrame:
    """Return the row versions of a tool's message about one row, which is given as JSON."""
    text = {
        "debezium": f'{{"op": "c", "after": {row}, "source": {{"lsn": 1}}}}',
        "debezium_flat": f'{row[:-1]}, "__op": "c", "__lsn": 1}}',
        "maxwell": f'{{"type": "insert", "ts": 1, "data": {row}}}',
        "canal": f'{{"type": "INSERT", "es": 1, "data": [{row}]}}',
    }[tool]
    made = [Column(name, kind) for name, kind in columns.items()]
    return getattr(cdc, tool)(messages(session, text), made, ["id"], **given)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "tool", ["debezium_flat", "canal", *(pytest.param(t, marks=pytest.mark.full) for t in ("debezium", "maxwell"))]
)
def test_a_number_keeps_all_its_digits(session: Session, tool: str) -> None:
    columns = {
        "id": "int", "n": "decimal(38,10)", "s": "string", "t": "bigint", "f": "float", "j": "string",
        "a": "array<decimal(38,10)>", "st": "struct<x:decimal(38,10),y:string>", "m": "map<string,bigint>",
    }  # fmt: skip
    long = "1234567890123456789012345678.0123456789"
    row = (
        f'{{"id": 1e2, "n": {long}, "s": 1.50e400, "t": 9007199254740993.000, "f": 0.1, "j": {{"b": [{long}, "#1"]}}, '
        f'"a": [{long}, "{long}"], "st": {{"x": {long}, "y": {long}}}, "m": {{"k": 9223372036854775807}}}}'
    )
    found = row_by(session, tool, columns, row).selectExpr("*", "CAST(f AS STRING) AS shown").collect()[0]
    exact = Decimal(long)
    assert (found.id, found.n, found.s, found.t, found.shown) == (100, exact, "1.50e400", 9007199254740993, "0.1")
    assert (found.a, tuple(found.st), found.m) == ([exact, exact], (exact, long), {"k": 2**63 - 1})
    assert found.j == f'{{"b":[{long},"#1"]}}'


def test_text_is_told_from_what_it_looks_like(session: Session) -> None:
    texts = ["#1", "##", "#", "{", "[1]", '{"a": "#1"}', "\uffff", "1.50", "", "a\n", "{#", "\\u0023", "true"]
    columns = [
        Column("id", "int"),
        Column("s", "string"),
        Column("a", "array<string>"),
        Column("m", "map<string,string>"),
    ]
    events = [event("c", 1, None, {"id": 1, "s": t, "a": [t, None], "m": {t: t}}) for t in texts]
    for ascii_only in (True, False):
        given = messages(session, *(json.dumps(e, ensure_ascii=ascii_only).replace("#", "\\u0023") for e in events))
        found = cdc.debezium(given, columns, ["id"]).collect()
        assert [(r.s, r.a, r.m) for r in found] == [(t, [t, None], {t: t}) for t in texts]


def test_times_that_fit(session: Session) -> None:
    columns = {"id": "int", "d": "date", "z": "timestamp", "n": "timestamp_ntz", "t": "time", "b": "binary"}
    row = json.dumps({
        "id": 1, "d": "2020-01-02T00:00:00", "z": "2020-01-02T03:04:05.1234567+05:00", "n": "2020-01-02T03:04:05Z",
        "t": "03:04:05.5", "b": "true",
    })  # fmt: skip
    shown = ("CAST(d AS STRING)", "unix_micros(z)", "CAST(n AS STRING)", "CAST(t AS STRING)", "hex(b)")
    found = row_by(session, "debezium", columns, row).selectExpr(*shown).collect()[0]
    assert tuple(found) == ("2020-01-02", 1577916245123456, "2020-01-02 03:04:05", "03:04:05.5", "B6BB9E")


@pytest.mark.parametrize("invalid", ["drop", pytest.param("refuse", marks=pytest.mark.full)])
@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        ("decimal(9,2)", '"1.239"', ["'c'", "1.239", "decimal(9,2)"]),
        pytest.param("timestamp", '"10:00:00"', ["'c'", "10:00:00"], marks=pytest.mark.full),
        pytest.param("decimal(9,2)", "1.239", ["1.239"], marks=pytest.mark.full),
        pytest.param("int", "1.5e0", ["1.5e0"], marks=pytest.mark.full),
        pytest.param("double", "1e400", ["1e400"], marks=pytest.mark.full),
        pytest.param("double", "1e-400", ["1e-400"], marks=pytest.mark.full),
        pytest.param("float", "16777217", ["16777217", "float"], marks=pytest.mark.full),
        pytest.param("double", "9223372036854775807", ["double"], marks=pytest.mark.full),
        pytest.param("timestamp_ntz", '"2020-01-01T10:00:00+05:00"', ["+05:00"], marks=pytest.mark.full),
        pytest.param("timestamp", '"2020"', ["2020"], marks=pytest.mark.full),
        pytest.param("date", '"2020"', ["2020"], marks=pytest.mark.full),
        pytest.param("date", '"2020-01-02T03:04:05"', ["03:04:05"], marks=pytest.mark.full),
        pytest.param("time", '"2020-01-02T03:04:05"', ["03:04:05"], marks=pytest.mark.full),
        pytest.param("binary", "1234", ["1234"], marks=pytest.mark.full),
        pytest.param("binary", '"123"', ["123"], marks=pytest.mark.full),
        pytest.param("binary", "true", ["true"], marks=pytest.mark.full),
        pytest.param("boolean", '"yes"', ["yes"], marks=pytest.mark.full),
        ("array<struct<x:int>>", '[{"x": 1}, {"x": "b"}]', ["'c[1].x'", "b", "int"]),
        pytest.param("struct<x:date,y:int>", '{"x": "now"}', ["'c.x'", "now", "date"], marks=pytest.mark.full),
        ("map<string,decimal(3,1)>", '{"k": 1.25}', ["'c[k]'", "1.25"]),
        pytest.param("map<int,int>", '{"1": 1, "01": 2}', ["'c'"], marks=pytest.mark.full),
        pytest.param("array<int>", '"[1]"', ["'c'", "[1]"], marks=pytest.mark.full),
        ("struct<x:int>", "[1.50]", ["'c'", "[1.50]", "struct"]),
    ],
)
def test_a_value_that_does_not_fit_is_refused(
    session: Session, kind: str, value: str, says: list[str], invalid: str
) -> None:
    found = row_by(
        session,
        "debezium",
        {"id": "int", "c": kind},
        f'{{"id": 1, "c": {value}}}',
        invalid=invalid,
        timestamps="milliseconds",
    )
    with refused("TYPE_MISMATCH", *says), spark_errors():
        found.collect()


BROKEN = [
    '{"op": "c", "after": {"id": 1}, "source": {"lsn": 1}} {"op": "c", "after": {"id": 2}, "source": {"lsn": 2}}',
    '{"op": "c", "after": {"id": 1}, "source": {"lsn": 1}} x',
    '{"op": "c", "after": {"id": 1}, "source": {"lsn": 1}}}',
    '{"op": "c", "after": {"id": 1}, "source": {"lsn": 1}}] x',
    '{"op": "c", "after": {"id": 1}, "source": {"lsn": 1}}, 0] x',
    '{"op": "c", "after": {"id": 1}, "source": {"lsn": 1}, "op": "d"}',
    '{"op": "c", "after": {"id": 1, "name": "a", "name": "b"}, "source": {"lsn": 1}}',
    '{"op": "c", "after": {"id": 1, "tags": {"a": 1, "a": 2}}, "source": {"lsn": 1}}',
    "{'op': 'c', 'after': {'id': 1}, 'source': {'lsn': 1}}",
    '{"op": "c", "after": {"id": NaN}, "source": {"lsn": 1}}',
    '{"op": "c", "after": {"id": 01}, "source": {"lsn": 1}}',
    '{"op": "c", "after": {"id": 1 2}, "source": {"lsn": 1}}',
    '{"op": "c", "after": [1], "source": {"lsn": 1}}',
]


@pytest.mark.parametrize("text", [BROKEN[0], *(pytest.param(text, marks=pytest.mark.full) for text in BROKEN[1:])])
def test_what_is_not_one_json_object_is_refused(session: Session, text: str) -> None:
    table = people(session)
    with refused("BAD_DATA", "no change of a row", "Debezium", text[:40]):
        table.upsert(cdc.debezium(messages(session, event("c", 1, None, {"id": 5}), text), table))
    assert rows(table) == []


def test_what_is_not_one_json_object_is_dropped_on_request(session: Session) -> None:
    good = event("c", 1, None, {"id": 5, "name": "long " * 100_000})
    columns = [Column("id", "int"), Column("name", "string")]
    found = cdc.debezium(messages(session, *BROKEN, good), columns, ["id"], invalid="drop")
    assert [r.id for r in found.collect()] == [5]
    bytes_ = messages(session, good).selectExpr("concat(CAST(value AS BINARY), X'20ff') AS value")
    with refused("BAD_DATA", "one JSON object"), spark_errors():
        cdc.debezium(bytes_, columns, ["id"]).collect()


# -- positions ----------------------------------------------------------------------------------------------------


def positions(session: Session, position: str, *sources: dict[str, Any]) -> list[Any]:
    events = [{"op": "c", "after": {"id": 1}, "source": source} for source in sources]
    found = cdc.debezium(messages(session, *events), [Column("id", "int")], ["id"], position=position)  # type: ignore[arg-type]
    return [r._watermark for r in found.collect()]


def test_positions_in_mysqls_log_are_ordered_as_they_are(session: Session) -> None:
    places = [(3, 4, 0), (3, 154, 0), (3, 154, 2), (3, 154, 10), (3, 1154, 0), (999_999, 4, 0), (1_000_000, 4, 0)]
    places += [(1_000_001, 4, 0), (9_999_999, 5, 1), (10_000_000, 4, 0), (2_147_483_647, 4, 0)]
    given = [{"file": f"mysql-bin.{file:06}", "pos": pos, "row": row} for file, pos, row in places]
    found = positions(session, "binlog", *given)
    assert found == sorted(found)
    assert len({*found}) == len(places)
    assert found[0] == "mysql-bin.000003:00000000000000000004:00000000000000000000"
    for wrong in (
        {"file": "mysql-bin", "pos": 4},
        {"file": "mysql-bin.000003"},
        {"file": "mysql-bin.000003", "pos": "x"},
    ):
        with refused("BAD_DATA", "binlog"), spark_errors():
            positions(session, "binlog", wrong)


def test_the_change_behind_the_millionth_log_file_wins(session: Session) -> None:
    table = session.create_table(
        "parquet.default.t",
        [Column("id", "int"), Column("name", "string"), Column("place", "string"), Column("kind", "string")],
        primary_key=["id"],
        properties={"watermark-key": "place", "rowkind.field": "kind"},
    )
    events = [
        {"op": op, "after": {"id": 1, "name": name}, "source": {"file": file, "pos": 4, "row": 0}}
        for op, name, file in (("c", "old", "mysql-bin.999999"), ("u", "new", "mysql-bin.1000000"))
    ]
    for one in events:
        table.upsert(cdc.debezium(messages(session, one), table, position="binlog"))
    assert rows(table) == [(1, "new")]


@pytest.mark.full
def test_other_positions_are_ordered_as_they_are(session: Session) -> None:
    lsns = [
        "00000009:ffffffff:0001",
        "0000000a:00000001:0001",
        "0000000A:00000001:0002",
        "a:2:1",
        "0000000b:00000000:0000",
    ]
    found = positions(session, "source.commit_lsn", *({"commit_lsn": lsn} for lsn in lsns))
    assert found == sorted(found)
    with refused("BAD_DATA", "source.change_lsn"), spark_errors():
        positions(session, "source.change_lsn", {"change_lsn": "NULL"})
    scns = [str(10**37), str(10**37 + 1)]
    assert positions(session, "source.scn", *({"scn": scn} for scn in scns)) == [Decimal(scn) for scn in scns]
    assert positions(session, "source.lsn", {"lsn": "9007199254740993"}, {"lsn": 1e3}) == [9007199254740993, 1000]
    with refused("BAD_DATA", "source.lsn"), spark_errors():
        positions(session, "source.lsn", {"lsn": 1.5})


# -- rows that move ---------------------------------------------------------------------------------------------


@pytest.mark.tiered
def test_an_update_that_moves_a_row_takes_the_old_one_along_or_is_refused(session: Session, fmt: str) -> None:
    name = f"{fmt}.default.people"
    session.sql(f"""
        CREATE TABLE {name} (id INT, region STRING, lsn BIGINT, kind STRING, PRIMARY KEY (id, region))
        PARTITIONED BY (region) TBLPROPERTIES ('watermark-key' = 'lsn', 'rowkind.field' = 'kind')""")
    table = session.table(name)

    def put(change: dict[str, Any], key: str | None = None) -> list[tuple[Any, ...]]:
        given = messages(session, change)
        table.upsert(cdc.debezium(given if key is None else given.selectExpr(f"'{key}' AS key", "value"), table))
        return rows(table, "id", "region")

    put(event("c", 1, None, {"id": 1, "region": "a"}), '{"id": 1}')
    moved = event("u", 2, None, {"id": 1, "region": "b"})
    for key in ('{"id": 1}', '{"schema": {"type": "struct"}, "payload": {"id": 1}}'):
        with refused("BAD_DATA", "'region'", "key of the message", "REPLICA IDENTITY FULL"):
            put(moved, key)
    with refused("BAD_DATA", "'region'", "row before the update", "REPLICA IDENTITY FULL"):
        put(event("u", 2, {"id": 0, "region": None}, {"id": 1, "region": "b"}))
    assert rows(table, "id", "region") == [(1, "a")]
    assert put(event("u", 3, {"id": 1, "region": "a"}, {"id": 1, "region": "b"}), '{"id": 1}') == [(1, "b")]
    assert put(event("u", 4, None, {"id": 1, "region": "b"}), '{"region": "b", "id": 1}') == [(1, "b")]
    assert put(event("u", 5, None, {"id": 1, "region": "b"}), "no JSON") == [(1, "b")]


def test_a_flat_update_whose_key_does_not_say_which_row_it_changes_is_refused(session: Session) -> None:
    columns = [Column("id", "int"), Column("region", "string")]
    topic = messages(session, {"id": 1, "region": "b", "__op": "u", "__lsn": 1})
    found = cdc.debezium_flat(topic.selectExpr("value", """'{"id": 1}' AS key"""), columns, ["id", "region"])
    with refused("BAD_DATA", "'region'", "key of the message"), spark_errors():
        found.collect()
