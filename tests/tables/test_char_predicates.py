"""Generated predicates over CHAR, VARCHAR and STRING: Trinity finds the rows that Spark finds in its own table (K2)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pytest

from trinity import Column, Session, Table

COLUMNS: Final = {"c": "char(4)", "d": "char(6)", "v": "varchar(5)", "s": "string"}
TEXTS: Final = ("", " ", "a", "ab", "ab ", "ab  ", " ab", "abc", "abcd", "ab\\t", "b", "ä", "äb", "cd", "zz  ")
LITERALS: Final = (*TEXTS, "ab      ", "abcde", "abcd  ", "abcdef", "abcdefg", "\\t", "~")
OPERATORS: Final = ("=", "<>", "<", "<=", ">", ">=", "<=>")
LAYOUTS: Final = ("plain", "keyed", "partitioned")
PREDICATES: Final = 40


def drawn_rows(drawn: random.Random) -> list[dict[str, str | int | None]]:
    """Return rows with distinct values of CHAR(4)."""
    found = []
    for n, text in enumerate(dict.fromkeys(t.replace("\\t", "\t").ljust(4) for t in TEXTS)):
        row: dict[str, str | int | None] = {"n": n, "c": text.rstrip(" ") + " " * drawn.randint(0, 1)}
        row["c"] = str(row["c"])[:4]
        for name in ("d", "v", "s"):
            row[name] = drawn.choice((None, *(t.replace("\\t", "\t") for t in TEXTS)))
        found.append(row)
    return found


def predicate(drawn: random.Random, depth: int = 2) -> tuple[str, str]:
    """Draw a predicate, and its form for Spark without BETWEEN and without NULL in an IN, where Spark does not pad."""
    if depth and drawn.random() < 0.4:
        (one, one_spark), (other, other_spark) = predicate(drawn, depth - 1), predicate(drawn, depth - 1)
        word = drawn.choice(("AND", "OR"))
        negation = drawn.choice(("", "NOT "))
        return f"{negation}({one} {word} {other})", f"{negation}({one_spark} {word} {other_spark})"
    column = drawn.choice(list(COLUMNS))
    kind = drawn.choice(("literal", "literal", "flipped", "column", "in", "between", "null", "constant"))
    values = [f"'{drawn.choice(LITERALS)}'" for _ in range(drawn.randint(1, 4))]
    operator, negation = drawn.choice(OPERATORS), drawn.choice(("", "NOT "))
    if kind == "in":
        known = f"{column} IN ({', '.join(values)})"
        if drawn.random() < 0.5:
            return f"{negation}({known})", f"{negation}({known})"
        listed = ", ".join(drawn.sample([*values, "NULL"], len(values) + 1))
        return f"{column} {negation}IN ({listed})", f"{negation}({known} OR NULL)"
    if kind == "between":
        low, high = values[0], values[-1]
        return f"{column} {negation}BETWEEN {low} AND {high}", f"{negation}({column} >= {low} AND {column} <= {high})"
    text = {
        "literal": f"{column} {operator} {values[0]}",
        "flipped": f"{values[0]} {operator} {column}",
        "column": f"{column} {operator} {drawn.choice(list(COLUMNS))}",
        "null": f"{column} IS {negation}NULL",
        "constant": f"{column} {operator} concat({values[0]}, {values[-1]})",
    }[kind]
    return text, text


def with_data(session: Session, fmt: str, layout: str, data: pa.Table) -> Table:
    """Make a table with the rows; a keyed one has half of them in its base, the rest and older versions in its log."""
    columns = [Column("n", "int"), *(Column(name, kind) for name, kind in COLUMNS.items())]
    key, parts = ["c"] if layout == "keyed" else [], ["c"] if layout == "partitioned" else []
    table = session.create_table(f"{fmt}.default.t", columns, primary_key=key, partition_by=parts)
    if not key:
        table.append(data)
        return table
    table.upsert(data.slice(0, data.num_rows // 2))
    table.compact(full=True)
    table.upsert(data.set_column(0, "n", pa.array([-1] * data.num_rows, pa.int32())).slice(0, 3))
    table.upsert(data.slice(data.num_rows // 2))
    table.upsert(data.slice(0, 3))
    return table


@pytest.fixture
def reference(session: Session) -> Iterator[str]:
    """Yield the name of a table of Spark's own."""
    name = "spark_catalog.default.char_predicates"
    session.spark.sql(f"DROP TABLE IF EXISTS {name}")
    kinds = ", ".join(f"{column} {kind}" for column, kind in COLUMNS.items())
    session.spark.sql(f"CREATE TABLE {name} (n INT, {kinds}) USING parquet")
    yield name
    session.spark.sql(f"DROP TABLE {name}")


@pytest.mark.full
@pytest.mark.parametrize("layout", LAYOUTS)
def test_predicates_find_what_spark_finds(session: Session, fmt: str, layout: str, reference: str) -> None:
    drawn = random.Random(f"{fmt} {layout}")
    data = pa.Table.from_pylist(drawn_rows(drawn), pa.schema([("n", pa.int32()), *((c, pa.string()) for c in COLUMNS)]))
    table = with_data(session, fmt, layout, data)
    session.spark.createDataFrame(data).write.insertInto(reference)
    for _ in range(PREDICATES):
        text, spark_text = predicate(drawn)
        wanted = sorted(r.n for r in session.spark.sql(f"SELECT n FROM {reference} WHERE {spark_text}").collect())
        assert sorted(table.to_arrow(["n"], where=text)["n"].to_pylist()) == wanted, text
        assert sorted(r.n for r in session.sql(f"SELECT n FROM {table.name} WHERE {text}").collect()) == wanted, text
    text, spark_text = predicate(drawn)
    left = session.spark.sql(f"SELECT n FROM {reference} WHERE NOT coalesce({spark_text}, FALSE)").collect()
    table.delete(text)
    assert sorted(table.to_arrow(["n"])["n"].to_pylist()) == sorted(r.n for r in left), text
