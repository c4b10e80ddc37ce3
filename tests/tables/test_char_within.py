"""CHAR and VARCHAR within structs, arrays and maps are stored as in Spark: padded, cut, refused when too long."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import trinity
from tests.support.refusals import refused
from tests.support.tables import by_k
from trinity import Column, Session

TYPES: Final = {
    "k": "int",
    "st": "struct<c:char(4),v:varchar(4)>",
    "arr": "array<char(4)>",
    "m": "map<char(4),struct<v:varchar(2)>>",
}
COLUMNS: Final = [Column(name, kind) for name, kind in TYPES.items()]
GIVEN: Final[list[dict[str, Any]]] = [
    {
        "k": 1,
        "st": {"c": "ab", "v": "ab    "},
        "arr": ["ab", "abcd  ", None],
        "m": [("ab", {"v": "x   "}), ("q", None)],
    },
    {"k": 2, "st": {"c": None, "v": None}, "arr": [], "m": []},
    {"k": 3},
]
STORED: Final[list[dict[str, Any]]] = [
    {
        "k": 1,
        "st": {"c": "ab  ", "v": "ab  "},
        "arr": ["ab  ", "abcd", None],
        "m": [("ab  ", {"v": "x "}), ("q   ", None)],
    },
    {"k": 2, "st": {"c": None, "v": None}, "arr": [], "m": []},
    {"k": 3, "st": None, "arr": None, "m": None},
]
SELECTED: Final = """
    SELECT * FROM VALUES (1, named_struct('c', 'ab', 'v', 'ab    '), array('ab', 'abcd  ', NULL),
                          map('ab', named_struct('v', 'x   '), 'q', NULL)),
                         (2, named_struct('c', NULL, 'v', NULL), array(), map()),
                         (3, NULL, NULL, NULL) AS given(k, st, arr, m)"""
"""The rows of :data:`GIVEN` as a query."""
TOO_LONG: Final[dict[str, dict[str, Any]]] = {
    "st.c": {"st": {"c": "abcde", "v": None}},
    "st.v": {"st": {"c": None, "v": "abcde"}},
    "arr.element": {"arr": ["a", "abcde"]},
    "m.key": {"m": [("abcde", None)]},
    "m.value.v": {"m": [("a", {"v": "abcde"})]},
}
"""Path -> a column with a too long text there."""


def arrow(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), pa.schema([c.to_arrow() for c in COLUMNS]))


@pytest.mark.parametrize("key", [["k"], []], ids=["keyed", "plain"])
def test_arrow_data_is_stored_padded_at_every_depth(tmp_path: Path, fmt: str, key: list[str]) -> None:
    with trinity.connect(tmp_path) as session:
        table = session.create_table(f"{fmt}.default.t", COLUMNS, primary_key=key)
        add = table.upsert if key else table.append
        add(arrow(*GIVEN))
        for path, part in TOO_LONG.items():
            where = f"'{path}' within column '{path.partition('.')[0]}' of table '{table.name}'"
            with refused("CONSTRAINT_VIOLATION", where):
                add(arrow({"k": 4, **part}))
        assert by_k(table.to_arrow()) == STORED


def test_keys_of_a_map_that_are_stored_alike(tmp_path: Path, fmt: str) -> None:
    """Spark refuses them when it writes, too, and would read one of the two."""
    alike = {"char(4)": ("ab", "ab  "), "varchar(2)": ("ab", "ab   ")}
    columns = [Column("c", "map<char(4),int>"), Column("v", "array<map<varchar(2),int>>")]
    schema = pa.schema([c.to_arrow() for c in columns])
    with trinity.connect(tmp_path) as session:
        table = session.create_table(f"{fmt}.default.t", columns)
        for key, row in {
            "c.key": {"c": [(key, 1) for key in alike["char(4)"]]},
            "v.element.key": {"v": [None, [], [(key, 1) for key in alike["varchar(2)"]]]},
        }.items():
            with refused("CONSTRAINT_VIOLATION", "'ab", "twice", f"'{key}' within column '{key[0]}'"):
                table.append(pa.Table.from_pylist([{"c": [("q", 1)]}, row], schema))
        once = [{"c": [("ab", 1)], "v": [[("ab", 1), ("a", 1)], [("ab", 1)]]}, {"c": [("ab", 1)], "v": None}]
        table.append(pa.Table.from_pylist(once, schema))
        assert table.to_arrow()["c"].to_pylist() == [[("ab  ", 1)]] * 2


def test_a_check_sees_a_char_within_as_it_is_stored(session: Session, tiered_fmt: str) -> None:
    name = f"{tiered_fmt}.default.t"
    columns, schema = (
        [Column("k", "int"), Column("st", "struct<c:char(4)>")],
        pa.schema({"k": pa.int32(), "st": pa.struct({"c": pa.string()})}),
    )
    table = session.create_table(name, columns, primary_key=["k"], checks={"ok": "st.c = 'ab  '"})
    table.upsert(pa.Table.from_pylist([{"k": 1, "st": {"c": "ab"}}], schema))
    session.sql(f"INSERT INTO {name} VALUES (2, named_struct('c', 'ab   '))")
    for add in (
        lambda: table.upsert(pa.Table.from_pylist([{"k": 3, "st": {"c": "abc"}}], schema)),
        lambda: session.sql(f"INSERT INTO {name} VALUES (3, named_struct('c', 'abc'))"),
        lambda: session.sql(f"UPDATE {name} SET st = named_struct('c', 'abc')"),
    ):
        with refused("CONSTRAINT_VIOLATION", "'ok'", "st.c = 'ab  '"):
            add()
    assert by_k(table.to_arrow()) == [{"k": n, "st": {"c": "ab  "}} for n in (1, 2)]


def test_statements_store_what_spark_stores(session: Session, tiered_fmt: str) -> None:
    name, spark = f"{tiered_fmt}.default.t", session.spark
    table = session.create_table(name, COLUMNS, primary_key=["k"])
    ddl = ", ".join(f"{column} {kind}" for column, kind in TYPES.items())
    theirs = "spark_catalog.default.char_within"
    spark.sql(f"DROP TABLE IF EXISTS {theirs}")
    spark.sql(f"CREATE TABLE {theirs} ({ddl}) USING PARQUET")
    try:
        spark.sql(f"INSERT INTO {theirs} {SELECTED}")
        session.sql(f"INSERT INTO {name} {SELECTED}")
        by_spark = by_k(spark.table(theirs).toArrow())
        assert by_k(table.to_arrow()) == by_spark == STORED
        assert session.sql(f"SELECT k FROM {name} WHERE st.c = 'ab'").count() == 0
        assert session.sql(f"SELECT k FROM {name} WHERE st.c = 'ab  '").count() == 1
        assert spark.table(theirs).where("st.c = 'ab'").count() == 0
    finally:
        spark.sql(f"DROP TABLE {theirs}")
    table.upsert(spark.createDataFrame(arrow(*GIVEN)))
    session.sql(f"UPDATE {name} SET arr = array('z') WHERE k = 2")
    session.sql(f"MERGE INTO {name} t USING (SELECT 3 AS k, map('m', named_struct('v', 'n   ')) AS m) s ON t.k = s.k "
                "WHEN MATCHED THEN UPDATE SET m = s.m")  # fmt: skip
    changed = [STORED[0], {**STORED[1], "arr": ["z   "]}, {**STORED[2], "m": [("m   ", {"v": "n "})]}]
    assert by_k(table.to_arrow()) == changed
    for statement in (
        f"INSERT INTO {name} (k, arr) VALUES (4, array('abcde'))",
        f"UPDATE {name} SET arr = array('abcde')",
    ):
        with refused("CONSTRAINT_VIOLATION", "'arr.element' within"):
            session.sql(statement)
    with refused("CONSTRAINT_VIOLATION", "'st.c' within"):
        table.upsert(spark.createDataFrame(arrow({"k": 4, **TOO_LONG["st.c"]})))
    assert by_k(table.to_arrow()) == changed


@pytest.mark.full
def test_the_data_source_tells_spark_of_char(session: Session) -> None:
    table = session.create_table("parquet.default.t", [Column("c", "char(4)"), Column("n", "int")])
    table.append(pa.table({"c": ["ab", "cd"], "n": [1, 2]}))
    rows = session.spark.read.format("trinity").option("table", "parquet.default.t").load()
    assert [row.n for row in rows.where("c = 'ab' AND c IN ('ab', 'x')").collect()] == [1]
    assert {row.c for row in rows.collect()} == {"ab  ", "cd  "}
