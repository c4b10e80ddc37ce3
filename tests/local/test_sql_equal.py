"""Queries have the same rows, names and types, whether Spark or this process runs them."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import trinity
from tests.support.refusals import refused
from trinity import Column, Session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = {
    "id": "int", "small": "tinyint", "big": "bigint", "exact": "decimal(12,3)", "wide": "decimal(38,4)",
    "text": "string", "fixed": "char(3)", "day": "date", "at": "timestamp", "clock": "timestamp_ntz", "yes": "boolean",
    "near": "double", "items": "array<int>", "named": "map<string,bigint>",
}  # fmt: skip
GROUPED = [name for name in TYPES if name not in ("near", "items", "named")]
KEYS = [*GROUPED, "near"]
"""Columns for groups and joins. MIN and MAX of FLOAT and DOUBLE may return 0.0 or -0.0."""
ALIKE = [("small", "big"), ("exact", "wide"), ("big", "exact"), ("day", "at"), ("clock", "day")]
"""Pairs of columns of different types for joins."""
SUMMED = ["id", "small", "big", "exact"]
VALUES: dict[str, list[Any]] = {
    "small": [-128, 127, 0, 1, None],
    "big": [-(2**40), 2**40, 0, 7, None],
    "exact": [Decimal("-1.500"), Decimal("999999999.999"), Decimal("0.000"), None],
    "wide": [Decimal("1.0000"), Decimal("-99999999999999999999.9999"), None],
    "text": ["a", "B", "ž", "", "a ", None],
    "fixed": ["a", "ab", "abc", None],
    "day": [dt.date(2024, 2, 29), dt.date(1969, 12, 31), dt.date(9999, 12, 31), None],
    "at": [dt.datetime(2024, 3, 10, 2, 30, tzinfo=dt.UTC), dt.datetime(1900, 1, 1, tzinfo=dt.UTC), None],
    "clock": [dt.datetime(2024, 3, 10, 2, 30, 0, 1), None],
    "yes": [True, False, None],
    "near": [0.0, -0.0, 1.5, float("nan"), float("inf"), None],
    "items": [[1, 2, 3], [], [None], [7], None],
    "named": [[("a", 1)], [], [("b", None), ("a", 2**40)], None],
}
CONDITIONS = [
    "small > 0", "text IN ('a', 'ž')", "day < DATE '2024-03-01'", "exact BETWEEN 0 AND 10", "yes", "NOT yes",
    "fixed = 'a'", "big IS NULL OR id = 3", "at >= TIMESTAMP '2000-01-01 00:00:00'", "text = 'a ' AND id <> 2",
    "near > 1", "wide <= 1",
]  # fmt: skip


@pytest.fixture
def both(warehouse: Path, spark: SparkSession) -> Iterator[tuple[Session, Session]]:
    """Yield a session that runs SQL in this process, and one that uses Spark."""
    with trinity.connect(warehouse) as here, trinity.connect(warehouse, spark=spark) as there:
        draw = random.Random(47)
        table = here.create_table("t", [Column(n, t) for n, t in TYPES.items()], primary_key=["id"])
        for first, last in ((0, 30), (20, 45)):
            rows = {name: [draw.choice(values) for _ in range(first, last)] for name, values in VALUES.items()}
            types = {name: column.to_arrow().type for name, column in ((c.name, c) for c in table.definition.visible)}
            ids = {"id": range(first, last), **rows}
            table.upsert(pa.table({name: pa.array(list(values), types[name]) for name, values in ids.items()}))
        yield here, there


def queries(seed: int, count: int) -> Iterator[str]:
    """Yield queries of all kinds that this process runs."""
    draw = random.Random(seed)
    for _ in range(count):
        where = draw.choice(["", f" WHERE {draw.choice(CONDITIONS)}"])
        yield draw.choice(
            (
                _plain, _grouped, _joined, _merged, _crossed, _united, _uncorrelated, _correlated, _compared_whole,
                _windowed, _exploded, _viewed, _by_sets, _collected, _unnamed, _by_expressions,
            )
        )(draw, where)  # fmt: skip


def _plain(draw: random.Random, where: str) -> str:
    columns = draw.sample(list(TYPES), 3)
    ordered = [name for name in columns if name in (*GROUPED, "near")] or ["id"]
    order = f" ORDER BY {draw.choice(ordered)} {draw.choice(['', 'DESC', 'ASC NULLS LAST'])}, id"
    distinct = draw.choice(["", "DISTINCT "])
    if distinct:
        ends = draw.choice(["", " ORDER BY k DESC LIMIT 3", " ORDER BY 1, k"])
        return f"SELECT DISTINCT {', '.join(c for c in columns if c in KEYS)}, id AS k FROM t{where}{ends}"
    return f"SELECT {', '.join(columns)}{draw.choice(['', ', *'])} FROM t{where}{order}{draw.choice(['', ' LIMIT 7'])}"


def _grouped(draw: random.Random, where: str) -> str:
    keys = draw.sample(KEYS, draw.randint(0, 2))
    some = draw.choice(CONDITIONS)
    calls = [f"count(*) FILTER (WHERE {some}) AS f", f"max({draw.choice(GROUPED)}) FILTER (WHERE {some}) AS g",
             f"avg({draw.choice(SUMMED)}) AS mean", f"count_if({some}) AS c",
             f"sum(DISTINCT {draw.choice(SUMMED)}) AS d",
             "bool_or(yes) AS o", "avg(CAST(small AS DECIMAL(6,2))) AS near",
             "every(yes) AS e", f"avg({draw.choice(SUMMED)}) FILTER (WHERE {some}) AS h",
             "count(*)", f"count({draw.choice(list(TYPES))})", f"count(DISTINCT {draw.choice(KEYS)})",
             f"sum({draw.choice(SUMMED)})", f"min({draw.choice(GROUPED)})", f"max({draw.choice(GROUPED)})"]  # fmt: skip
    shown = ", ".join([*keys, *draw.sample(calls, 4), "max(id) AS last"])
    by = draw.choice([f" GROUP BY {', '.join(keys)}", " GROUP BY ALL"]) if keys else ""
    having = draw.choice(["", " HAVING count(*) > 2 AND last > 10"]) if keys else ""
    return f"SELECT {shown} FROM t{where}{by}{having}"


def _by_expressions(draw: random.Random, where: str) -> str:
    """Draw a query whose groups have keys that may differ in a literal's case alone."""
    text, value = draw.choice([
        ("upper(text) = '{}'", "ab"), ("replace(fixed, '{}', 'x')", "b"), ("date_format(clock, '{}')", "mm"),
        ("CASE WHEN text = '{}' THEN small END", "b"),
    ])  # fmt: skip
    keys = [text.format(change(value)) for change in (str.lower, str.upper)]
    shown = draw.choice([", ".join([*keys, "max(id)"]), f"count(*), {keys[0]} AS k, {keys[1]} AS other"])
    return f"SELECT {shown} FROM t{where} GROUP BY {draw.choice([', '.join(keys), ', '.join(reversed(keys)), 'ALL'])}"


def _unnamed(draw: random.Random, where: str) -> str:
    """Draw a query with expressions that Spark names after their text."""
    of_groups = draw.choice([True, False])
    leaves = ["t.id", "id", "3", "-1", "`small`", "big", "1.50", "exact"]

    def number(depth: int) -> str:
        if depth == 0:
            return draw.choice(leaves)
        one, other = number(depth - 1), number(depth - 1)
        return draw.choice([
            f"({one} + {other})", f"{one} * {other}", f"-({one})", f"coalesce({one}, 0)", f"abs({one})", f"({one})",
            f"CASE WHEN {condition(depth - 1)} THEN {one} ELSE {other} END", f"if({condition(depth - 1)}, {one}, 7)",
            f"CASE {draw.choice(['id', 'big'])} WHEN 1 THEN {one} END", f"nvl({one}, {other})",
            "CAST(id + 1 AS BIGINT)", f"greatest({one}, {other})", "length(text)", "year(day)",
        ])  # fmt: skip

    def condition(depth: int) -> str:
        if depth <= 0:
            return draw.choice(["yes", "small > 0", "id <> 3", "text IS NULL", "text IS NOT NULL", "id <=> 1"])
        one, other = condition(depth - 1), condition(depth - 1)
        return draw.choice([
            f"({one} AND {other})", f"({one} OR {other})", f"NOT ({one})", f"(id {draw.choice(['', 'NOT '])}IN (1, 2))",
            f"(big {draw.choice(['', 'NOT '])}BETWEEN 1 AND 30)", "(text LIKE 'a%')", "(text NOT LIKE 'a%')",
        ])  # fmt: skip

    text = draw.choice([
        "upper(text)", "UPPER('a')", "concat(text, 'b', text)", "date_sub(day, 1)", "NULL", "true", "'x'", "(((id)))",
        "CAST(id AS STRING)", "id::bigint", "floor(near)", "nullif(text, 'a')",
    ])  # fmt: skip
    if of_groups:
        calls = [
            f"sum(id + {draw.choice(SUMMED)})", "max(id) + 1", "-sum(small)", "count(*) FILTER (WHERE id > 3)",
            f"COUNT(DISTINCT {draw.choice(KEYS)}) * 100", "sum(CASE WHEN yes THEN 1 ELSE 0 END)", "avg(id)",
            "coalesce(sum(big), 0) > 1", "bool_or(yes)", "max_by(text, id)", "CAST(max(id) AS STRING)",
        ]  # fmt: skip
        return f"SELECT {', '.join(draw.sample(calls, 3))} FROM t{where}"
    return f"SELECT {number(2)}, {condition(2)}, {text} FROM t{where}"


def _exploded(draw: random.Random, where: str) -> str:
    """Draw a query of array items, made by a function of the SELECT list."""
    item = draw.choice(["", "pos"]) + draw.choice(["explode", "explode_outer"])
    of, columns = draw.choice([
        ("items", ["x"]), ("named", ["k", "x"]), ("sequence(id, 3)", ["x"]), ("array(small, big)", ["x"]),
        ("sequence(day, day - id % 3)", ["x"]),
    ])  # fmt: skip
    names = [*(["p"] if item[:3] == "pos" else []), *columns]
    named = draw.choice(["", "", f" AS ({', '.join(names)})"] + ([" AS x"] if len(names) == 1 else []))
    distinct = "DISTINCT " if draw.random() < 0.3 else ""
    return f"SELECT {distinct}id, {draw.choice(GROUPED)} AS g, {item}({of}){named} FROM t{where}"


def _viewed(draw: random.Random, where: str) -> str:
    """Draw a query of array items by LATERAL VIEW."""
    outer, condition = draw.choice(["", "OUTER "]), draw.choice(["", " WHERE x > 1 AND id < 30", " WHERE v.x IS NULL"])
    view = f"LATERAL VIEW {outer}{draw.choice(['explode', 'explode_outer'])}(items) v AS x"
    more = draw.choice(["", f" LATERAL VIEW {outer}posexplode(named) w AS p, k, y", " LATERAL VIEW explode(named) w"])
    source = draw.choice(["t", f"(SELECT * FROM t{where}) AS t", "t JOIN (SELECT id AS o FROM t) AS q ON q.o = t.id"])
    shape = draw.choice(["SELECT * FROM {0}", "SELECT id, x FROM {0}", "SELECT x, count(*) AS n FROM {0} GROUP BY x"])
    return shape.format(f"{source} {view}{more}{condition}")


def _by_sets(draw: random.Random, where: str) -> str:
    """Draw a query that groups by grouping sets."""
    one, other, third = draw.sample(KEYS, 3)
    by = draw.choice([
        f"ROLLUP({one}, {other})", f"CUBE({one}, {other})", f"ROLLUP({one}, ({other}, {third}))",
        f"GROUPING SETS (({one}, {other}), {one}, ())", f"GROUPING SETS ({other}, ({one}, {third}), {third})",
        f"{one}, {other} WITH ROLLUP", f"{one}, {other} WITH CUBE", f"{third}, ROLLUP({one}, {other})",
        f"{one}, {other}, {third} GROUPING SETS (({one}, {other}), ({third}))", f"ROLLUP({one}, 2)",
    ])  # fmt: skip
    having = draw.choice(["", f" HAVING grouping({one}) = 1", " HAVING n > 1"])
    shown = f"grouping({one}) AS g, grouping_id() AS i, count(*) AS n, max({draw.choice(GROUPED)}) AS m, sum(id) AS s"
    return f"SELECT {one}, {other} AS o, {shown} FROM t{where} GROUP BY {by}{having}"


def _collected(draw: random.Random, where: str) -> str:
    """Draw a query of collected lists, whose order is undefined, and of values from the row with an extreme."""
    some = draw.choice(["", "", f" FILTER (WHERE {draw.choice(CONDITIONS)})"])
    calls = [
        f"max_by({draw.choice(list(TYPES))}, id){some} AS a", f"min_by({draw.choice(list(TYPES))}, id){some} AS b",
        f"collect_list(id){some} AS c", f"collect_set({draw.choice(GROUPED)}){some} AS d",
        f"collect_list(DISTINCT {draw.choice(GROUPED)}){some} AS e", f"collect_list({draw.choice(list(TYPES))}) AS f",
    ]  # fmt: skip
    key = draw.choice(["yes", "small"])
    return f"SELECT {key}, {', '.join(draw.sample(calls, 3))} FROM t{where} GROUP BY {key}"


def _windowed(draw: random.Random, where: str) -> str:
    keys = [name for name in KEYS if name != "fixed"]
    exact = [name for name in keys if name != "near"]
    by = draw.choice(["", f"PARTITION BY {draw.choice(keys)}", f"PARTITION BY {draw.choice(keys)}, id % 3"])
    ordered = f"ORDER BY {draw.choice(keys)} {draw.choice(['', 'DESC', 'NULLS LAST'])}, id"
    frame = draw.choice([
        "", "ROWS UNBOUNDED PRECEDING", "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
        "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", "ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING",
    ])  # fmt: skip
    call = draw.choice([
        f"{name} OVER ({by} {ordered})" for name in (
            "row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()", "ntile(4)",
            f"lag({draw.choice(keys)})", f"lead({draw.choice(keys)}, 2)", "lag(id, 1, 0)",
        )
    ] + [
        f"{name} OVER ({by} {ordered} {frame})" for name in (
            "count(*)", f"count({draw.choice(keys)})", f"sum({draw.choice(SUMMED)})", f"avg({draw.choice(SUMMED)})",
            f"min({draw.choice(exact)})", f"max({draw.choice(exact)})", f"first_value({draw.choice(keys)})",
            f"last_value({draw.choice(keys)})"
        )
    ] + [f"rank() OVER ({by} ORDER BY {draw.choice(keys)} DESC)", f"sum(id) OVER ({by})"])  # fmt: skip
    whole = f"SELECT id, {draw.choice(keys)} AS o, {call} AS w FROM t{where}"
    return draw.choice([
        whole, f"SELECT * EXCEPT (o) FROM ({whole}) AS q WHERE w IS NOT NULL", f"{whole} ORDER BY w, id LIMIT 9",
        f"SELECT yes, sum(count(*)) OVER (ORDER BY yes) AS r FROM t{where} GROUP BY yes",
    ])  # fmt: skip


def _joined(draw: random.Random, where: str) -> str:
    kind = draw.choice(["JOIN", "LEFT JOIN", "RIGHT OUTER JOIN", "FULL JOIN", "LEFT SEMI JOIN", "ANTI JOIN"])
    # a CHAR in a subquery is a string, which only Spark pads
    one, other = draw.choice([*((key, key) for key in KEYS if key != "fixed"), *ALIKE])
    others = f"(SELECT {other}, id AS other FROM t{where}) AS o"
    alone = kind.endswith(("SEMI JOIN", "ANTI JOIN"))
    shown = "" if alone else ", o.other"
    condition = draw.choice(["", " WHERE t.id > 20", "" if alone else " WHERE t.id < 9 AND o.other <> t.id"])
    operator = draw.choice(["=", "=", "=", "<", ">=", "<>", "<=>"])
    more = draw.choice(
        [
            "",
            " AND o.other > 20",
            " AND t.id < 9",
            " AND o.other < t.id",
            " AND t.yes",
            " AND t.id BETWEEN o.other AND 40",
            " AND NOT t.id >= 30 AND o.other IS NOT NULL",
        ]
    )
    both = draw.choice(["", " AND (t.id < 5 OR o.other > 40)" if kind == "JOIN" else ""])
    return f"SELECT t.id, t.{one}{shown} FROM t {kind} {others} ON o.{other} {operator} t.{one}{more}{both}{condition}"


def _merged(draw: random.Random, where: str) -> str:
    kind = draw.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "LEFT ANTI JOIN"])
    keys = draw.sample([name for name in KEYS if name not in ("fixed", "id")], draw.randint(1, 2))
    alone = kind.endswith(("SEMI JOIN", "ANTI JOIN"))
    near = draw.choice(["t.*", "*", keys[0]]) if alone else draw.choice(
        ["*", "t.*, o.*", "o.*, t.id", f"o.{keys[0]} AS p, t.{keys[0]} AS q, {keys[0]}, other", f"{keys[0]}, t.id"]
    )  # fmt: skip
    condition = draw.choice(["", f" WHERE {keys[0]} IS NOT NULL", " WHERE t.id > 20"])
    others = f"(SELECT {', '.join(keys)}, id AS other FROM t{where}) AS o"
    return f"SELECT {near} FROM t {kind} {others} USING ({', '.join(keys)}){condition}"


def _crossed(draw: random.Random, where: str) -> str:
    word, key = draw.choice([" CROSS JOIN ", ", "]), draw.choice([name for name in KEYS if name != "fixed"])
    condition = draw.choice(["", " WHERE t.id < o.other", f" WHERE t.{key} = o.{key} AND t.id <> other"])
    shown = draw.choice(["t.id, o.other", "*", f"o.{key}, t.yes"])
    return f"SELECT {shown} FROM t{word}(SELECT {key}, id AS other FROM t{where}) AS o{condition}"


def _united(draw: random.Random, where: str) -> str:
    column, word = draw.choice(KEYS), draw.choice(["UNION", "UNION ALL"])
    return f"WITH w AS (SELECT {column} AS c FROM t{where}) SELECT c FROM w {word} SELECT {column} FROM t ORDER BY c"


def _uncorrelated(draw: random.Random, where: str) -> str:
    """Draw a query with uncorrelated subqueries."""
    one, other = draw.choice([*((key, key) for key in GROUPED if key != "fixed"), *ALIKE])
    no, call = draw.choice(["", "NOT "]), draw.choice(["max", "min", "count"])
    value = f"(SELECT {call}({other}) FROM t{where})"
    condition = draw.choice([
        f"{no}EXISTS (SELECT * FROM t{where})", f"{one} {no}IN (SELECT {other} FROM t{where})",
        f"{one} {no}IN (SELECT {other} FROM t WHERE {other} IS NOT NULL)",
        f"NULL {no}IN (SELECT {other} FROM t{where})",
        f"small < (SELECT {call}(big) FROM t{where})", f"{no}(yes OR {one} IN (SELECT {other} FROM t{where}))",
    ])  # fmt: skip
    shown = draw.choice(["*", f"id, {value} AS v", f"id, {one} {no}IN (SELECT {other} FROM t{where}) AS among"])
    if draw.random() < 0.3:
        return (
            f"SELECT yes, count(*) AS n, {value} AS v FROM t WHERE {condition} GROUP BY yes HAVING max(id) > (SELECT 3)"
        )
    return f"SELECT {shown} FROM t WHERE {condition}"


def _correlated(draw: random.Random, where: str) -> str:
    """Draw a query with correlated subqueries."""
    one, other = draw.choice([*((key, key) for key in GROUPED if key != "fixed"), *ALIKE])
    no, more = draw.choice(["", "NOT "]), draw.choice(["", "AND o.id > 20", "AND o.yes"])
    rows = f"FROM t AS o WHERE o.{other} = t.{one} {more}"
    value = draw.choice(
        [f"(SELECT {call} {rows})" for call in ("count(*)", "max(o.text)", "sum(o.exact)", "min(o.day)")]
    )
    condition = draw.choice(
        [f"{no}EXISTS (SELECT 1 {rows})", f"t.id {no}IN (SELECT o.id {rows})", f"small {no}IN (SELECT small {rows})"]
    )
    shape = draw.choice([
        "SELECT id FROM t WHERE {0}", "SELECT id, {1} AS v FROM t", "SELECT id, {1} AS v FROM t WHERE {0}",
        "SELECT t.id, {1} AS v FROM t JOIN (SELECT id AS k FROM t) AS q ON q.k = t.id WHERE {0}",
    ])  # fmt: skip
    return shape.format(condition, value)


def _compared_whole(draw: random.Random, where: str) -> str:
    one, other = draw.choice([*((key, key) for key in KEYS), *ALIKE])
    word = draw.choice(["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL", "MINUS"])
    last = draw.choice(["", f" UNION SELECT {other}, yes FROM t", f" INTERSECT SELECT {one}, yes FROM t"])
    order = draw.choice(["", " ORDER BY 1, b DESC", " ORDER BY b, a LIMIT 5"])
    return f"SELECT {one} AS a, yes AS b FROM t {word} SELECT {other}, yes FROM t{where}{last}{order}"


def compared(both: tuple[Session, Session], text: str) -> None:
    here, there = (session.sql(text) for session in both)
    assert (here.engine, there.engine) == ("local", "spark"), text
    one, other = here.to_arrow(), there.to_arrow()
    assert one.schema.names == other.schema.names, text
    assert list(map(_type, one.schema.types)) == list(map(_type, other.schema.types)), text
    rows, expected = ([repr(_unordered(row)) for row in found.collect()] for found in (here, there))
    assert (rows == expected) if "LIMIT" in text else (sorted(rows) == sorted(expected)), text


def _type(kind: pa.DataType) -> str:
    """Return the text of a type, without the nullability of nested values."""
    return str(kind).replace(" not null", "")


def _unordered(row: Any) -> list[Any]:
    """Return the values of a row with sorted lists and maps, whose order is undefined."""

    def ordered(value: Any) -> Any:
        if isinstance(value, dict):
            return sorted((key, ordered(item)) for key, item in value.items())
        return sorted(map(ordered, value), key=repr) if isinstance(value, list) else value

    return [ordered(value) for value in row]


@pytest.mark.parametrize("count", [12, pytest.param(150, marks=pytest.mark.full)])
def test_queries_are_equal(both: tuple[Session, Session], count: int) -> None:
    for text in queries(count, count):
        compared(both, text)


def test_the_log_is_equal(both: tuple[Session, Session]) -> None:
    here, there = (session.table("t") for session in both)
    for strength in ("resolve", "full"):
        one, other = here.log(), there.log()
        assert (one.engine, other.engine) == ("local", "spark")
        assert one.columns == other.columns
        rows, expected = (sorted(repr(_unordered(row)) for row in found.collect()) for found in (one, other))
        assert rows == expected
        there.delete("id < 3")
        there.compact(strength)


def test_what_is_not_known_to_be_equal_is_sparks(both: tuple[Session, Session]) -> None:
    here, _ = both
    for text in ("SELECT sum(near) AS s FROM t", "SELECT stddev(id) AS s FROM t", "SELECT avg(near) AS a FROM t",
                 "SELECT sum(id) OVER (ORDER BY id RANGE 3 PRECEDING) AS s FROM t",
                 "SELECT id FROM t LEFT JOIN (SELECT id AS o FROM t) q ON id = o OR id < 3",
                 "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM t AS o WHERE o.id < t.id)",
                 "SELECT soundex(text) AS u FROM t", "SELECT id AS k, k + 1 AS l FROM t",
                 "SELECT count(DISTINCT *) AS c FROM (SELECT id, small FROM t) AS q",
                 "SELECT count(* EXCEPT (id)) AS c FROM t"):  # fmt: skip
        assert here.sql(text).engine == "spark"


TOTALS = [
    "sum(near)", "avg(near)", "sum(CAST(near AS FLOAT))", "avg(CAST(small AS FLOAT))", "sum(DISTINCT near)",
    "stddev(near)", "stddev_samp(id)", "stddev_pop(exact)", "variance(small)", "var_samp(near)", "var_pop(wide)",
    "sum(near) FILTER (WHERE id > 3)", "sum(near * 2 + 1)", "max(near + 0)", "min(near + 0)",
    "max_by(near + 0, id * 1.5D)",
]  # fmt: skip
"""Functions whose last digits depend on the order of rows, and some of DOUBLE whose digits do not."""


def test_totals_of_floating_point_numbers_agree_to_nine_digits(both: tuple[Session, Session]) -> None:
    """This process computes them only where the statement asks for it (L1)."""
    listed = ", ".join(f"{call} AS c{n}" for n, call in enumerate(TOTALS))
    for where in ("", " WHERE near < 2", " WHERE id = 7", " WHERE id < 0"):
        for by in ("", " GROUP BY near", " GROUP BY yes"):
            text = f"SELECT {listed} FROM t{where}{by} ORDER BY {by[10:] or 'c0'}"
            here, there = both[0].sql(text, engine="local"), both[1].sql(text)
            assert (here.engine, there.engine) == ("local", "spark")
            assert list(map(_type, here.to_arrow().schema.types)) == list(map(_type, there.to_arrow().schema.types))
            for one, other in zip(here.collect(), there.collect(), strict=True):
                known = [n for n, value in enumerate(one) if value is not None]
                assert known == [n for n, value in enumerate(other) if value is not None], text
                expected = [other[n] for n in known]
                assert [one[n] for n in known] == pytest.approx(expected, rel=1e-9, nan_ok=True), text
    over = "SELECT id, sum(near) OVER (PARTITION BY yes ORDER BY id) AS s FROM t WHERE near < 2 ORDER BY id"
    here, there = both[0].sql(over, engine="local"), both[1].sql(over)
    assert [r.s for r in here.collect()] == pytest.approx([r.s for r in there.collect()], rel=1e-9)


def test_a_statement_says_who_executes_it(both: tuple[Session, Session]) -> None:
    here, there = both
    text = "SELECT id FROM t WHERE id < 3"
    assert there.sql(text).engine == "spark"
    assert there.sql(text, engine="local").engine == "local"
    assert there.sql(text).engine == "spark"
    assert here.sql(text, engine="spark").collect() == here.sql(text).collect()
    for session in both:
        with refused("NOT_SUPPORTED", "only Spark evaluates 'SOUNDEX(text)'", "It runs with engine='local'"):
            session.sql("SELECT soundex(text) AS s FROM t", engine="local")
    there.sql("UPDATE t SET small = 1 WHERE id = 1", engine="local")
    assert there.sql("SELECT small FROM t WHERE id = 1").first().small == 1


def test_work_beyond_the_limit_is_sparks(both: tuple[Session, Session], warehouse: Path) -> None:
    """The sizes of the files decide, before any is read."""
    with trinity.connect(warehouse, local_bytes=10) as session:
        assert session.sql("SELECT 1 AS k").engine == "local"
        assert session.sql("SELECT count(*) FROM t").engine == "spark"


def test_a_read_as_arrow_data_is_sparks_where_spark_was_asked_for(
    both: tuple[Session, Session], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "trinity")
    here, there = (session.table("t") for session in both)
    assert here.explain().endswith("executor: Spark; to_arrow() reads in this process, without it")
    rows = here.to_arrow()
    assert "executed by Spark" not in caplog.text
    there.session.engine = "spark"
    assert there.explain().endswith("executor: Spark, for to_arrow() too: the session has engine='spark'")
    assert there.to_arrow().sort_by("id").select(["id", "wide"]) == rows.sort_by("id").select(["id", "wide"])
    assert "executed by Spark, since the session has engine='spark'" in caplog.text
    there.session.engine = "auto"


def test_an_append_is_sparks_where_spark_was_asked_for(
    both: tuple[Session, Session], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "trinity")
    here, there = (session.table("t") for session in both)
    rows = here.to_arrow(where="id < 3")
    there.upsert(rows)
    assert "An append to 'parquet.default.t': executed in this process" in caplog.text
    there.session.engine = "spark"
    there.upsert(rows)
    there.session.engine = "auto"
    assert "An append to 'parquet.default.t': executed by Spark" in caplog.text
    assert sorted(map(repr, here.to_arrow(where="id < 3").to_pylist())) == sorted(map(repr, rows.to_pylist()))
