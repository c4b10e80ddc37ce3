"""Expressions in this process: their values, and which are left to Spark."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.support.expressions import (
    COLUMNS,
    FIXED,
    NESTED,
    TEXTS_OF_TIMES,
    Generator,
    NestedGenerator,
    Outcome,
    by_spark,
    in_process,
    nested_sample,
    sample,
)
from tests.support.zones import frame
from trinity import Column, Session, TrinityError
from trinity.calls import spark_errors
from trinity.engine.executes import NotLocal
from trinity.engine.expressions import Compiled, Scope, ScopeColumn, compile_expression, compile_predicate
from trinity.spi import parse_type

pytestmark = pytest.mark.inner

NAN = float("nan")


def scope(**types: str) -> Scope:
    return Scope([ScopeColumn(name, name, parse_type(kind)) for name, kind in types.items()])


def values(text: str, rows: dict[str, pa.Array], types: Scope) -> list[Any]:
    found = compile_expression(text, types)
    assert isinstance(found, Compiled), found
    return list(found.evaluate(pa.RecordBatch.from_pydict(rows)).to_pylist())


def test_nan_is_above_every_number_and_zeros_are_one() -> None:
    rows, types = {"a": pa.array([NAN, -0.0, 1.0, None])}, scope(a="double")
    assert values("a > 1e300", rows, types) == [True, False, False, None]
    assert values("a = 0.0", rows, types) == [False, True, False, None]
    assert values("a <=> NULL", rows, types) == [False, False, False, True]


def test_char_is_padded() -> None:
    rows = {"c": pa.array(["ab  ", "abcd", None])}
    assert values("c = 'ab'", rows, scope(c="char(4)")) == [True, False, None]
    assert values("c IN ('ab      ', 'x')", rows, scope(c="char(4)")) == [True, False, None]
    assert values("c = 'ab'", rows, scope(c="string")) == [False, False, None]


def test_three_values() -> None:
    rows = {"a": pa.array([1, 2, None])}
    assert values("a = 1 OR NULL", rows, scope(a="bigint")) == [True, None, None]
    assert values("a NOT IN (1, NULL)", rows, scope(a="bigint")) == [False, None, None]
    assert values("(a = 1) IS NOT TRUE", rows, scope(a="bigint")) == [False, True, True]


def test_a_time_beyond_the_last_one_is_an_error() -> None:
    rows, types = {"d": pa.array([2_000_000_000], pa.int32()).cast(pa.date32())}, scope(d="date")
    for text in ("CAST(d AS TIMESTAMP)", "d < TIMESTAMP '2024-01-01 00:00:00'", "d + INTERVAL 1 HOUR"):
        with pytest.raises(TrinityError) as beyond:
            values(text, rows, types)
        assert beyond.value.code == "NUMERIC_VALUE_OUT_OF_RANGE", text
    assert values("YEAR(d)", rows, types) == [5_477_784]
    assert values("CAST(d AS STRING)", rows, types) == ["+5477784-01-06"]


def test_a_day_begins_where_its_gap_ends() -> None:
    found = compile_expression("CAST(d AS TIMESTAMP)", scope(d="date"), lambda: "America/Toronto")
    assert isinstance(found, Compiled)
    rows = pa.RecordBatch.from_pydict({"d": pa.array([dt.date(1919, 3, 31), dt.date(2024, 3, 10)])})
    half_past = dt.datetime(1919, 3, 31, 4, 30, tzinfo=dt.UTC)
    assert found.evaluate(rows).to_pylist() == [half_past, dt.datetime(2024, 3, 10, 5, tzinfo=dt.UTC)]


def test_a_text_becomes_an_instant() -> None:
    rows, types = {"s": pa.array(["2024-01-31 10:00:00+02:00"])}, scope(s="string")
    for function in ("to_timestamp", "timestamp"):
        assert values(f"{function}(s)", rows, types) == [dt.datetime(2024, 1, 31, 8, tzinfo=dt.UTC)]
        assert isinstance(compile_expression(f"{function}(s, s, s)", types), NotLocal)


def test_dates_that_are_all_null_are_formatted() -> None:
    rows = {"d": pa.array([None, None], pa.date32())}
    assert values("date_format(d, 'E, dd MMM yyyy HH:mm:ss.SSSSSS')", rows, scope(d="date")) == [None, None]


def test_cases_of_letters() -> None:
    rows, types = {"t": pa.array(["straße ΑΣ", "abc", None, "ǰ", "\U00010d70"])}, scope(t="string")
    assert values("UPPER(t)", rows, types) == ["STRASSE ΑΣ", "ABC", None, "J\u030c", "\U00010d50"]
    assert values("LOWER(t)", rows, types) == ["straße ας", "abc", None, "ǰ", "\U00010d70"]


def test_values_within_others() -> None:
    types = scope(n="struct<A:int,b:struct<c:string>>", l="array<int>", m="map<string,int>")
    rows = {
        "n": pa.array([{"A": 1, "b": {"c": "x"}}, None], types.columns[0].type.to_arrow()),
        "l": pa.array([[1, None], None], pa.list_(pa.int32())),
        "m": pa.array([[("k", 1), ("k", 2)], []], types.columns[2].type.to_arrow()),
    }
    assert values("n.a + l[0]", rows, types) == [2, None]
    assert values("n.B.c", rows, types) == ["x", None]
    assert values("m['k']", rows, types) == [1, None]
    assert values("named_struct('p', n.a, 'q', array(l[0], 5))", rows, types)[0] == {"p": 1, "q": [1, 5]}
    assert values("map('p', n.a, 'q', 5)", rows, types) == [[("p", 1), ("q", 5)], [("p", None), ("q", 5)]]
    for text in ("map('p', 1, 'p', 2)", "map(NULL, 1)", "map(m['k'], 1)", "map('p', NULL)", "map()"):
        assert isinstance(compile_expression(text, types), NotLocal), text
    with pytest.raises(TrinityError) as unknown:
        compile_expression("n.z", types)
    assert unknown.value.code == "COLUMN_NOT_FOUND"
    with pytest.raises(TrinityError) as outside:
        values("l[2]", rows, types)
    assert outside.value.code == "INVALID_ARGUMENTS"


def test_patterns() -> None:
    rows, types = {"t": pa.array(["ab\n", "a\r", "b", None])}, scope(t="string")
    assert values("t RLIKE 'b$'", rows, types) == [True, False, True, None]
    assert values("t RLIKE 'a.'", rows, types) == [True, False, False, None]
    for pattern in ("a++", "(?i)a", "[[:alpha:]]", "(", r"\\b", r"[^a]$", r"\\s$"):
        assert isinstance(compile_expression(f"t RLIKE '{pattern}'", types), NotLocal), pattern


def test_a_backslash_escapes_in_like() -> None:
    rows, types = {"t": pa.array(["a\\b", "a%b", "a\\%b", None])}, scope(t="string")
    for like in ("LIKE", "ILIKE"):
        assert values(rf"t {like} '%a\\\\b%'", rows, types) == [True, False, False, None]
        assert values(rf"t {like} '%\\%b'", rows, types) == [False, True, True, None]
        assert values(rf"t NOT {like} 'a\\\\\\%b'", rows, types) == [True, True, False, None]
        for pattern in (r"C:\\Users%", "a%\\\\"):  # Spark's errors: an escape in the middle, and one at the end
            assert isinstance(compile_expression(f"t {like} '{pattern}'", types), NotLocal)


def test_the_next_whole_number_of_one_has_its_type() -> None:
    for function in ("floor", "ceil"):
        found = compile_expression(f"{function}(n)", scope(n="decimal(5,0)"))
        assert isinstance(found, Compiled)
        assert str(found.type) == "decimal(5,0)"


def test_matches_are_replaced_and_extracted() -> None:
    rows, types = {"t": pa.array(["ab-12\n", "7-x", "", None, "a \x0b b"])}, scope(t="string")
    assert values(r"regexp_replace(t, '(\\w)-(\\w)', '$2_$1')", rows, types) == ["a1_b2\n", "x_7", "", None, "a \x0b b"]
    assert values(r"regexp_replace(t, '\\d$', '<>')", rows, types) == ["ab-1<>\n", "7-x", "", None, "a \x0b b"]
    assert values(r"regexp_replace(t, '\\s+', '')", rows, types) == ["ab-12", "7-x", "", None, "ab"]
    assert values("regexp_extract(t, '(x)|([a-b]+)', 2)", rows, types) == ["ab", "", "", None, "a"]
    assert values("regexp_extract(t, '[0-9]+', 0)", rows, types) == ["12", "7", "", None, ""]
    assert values("regexp_extract(t, '^b|x', 0)", rows, types) == ["", "x", "", None, ""]
    for text in ("replace(t, 'a*', '')", "replace(t, '(a*)+b', '')", "replace(t, '(a)', '$2')", "replace(t, 'a', n)",
                 r"replace(t, 'a', '\\$')", "extract(t, 'a')", "extract(t, '(a|)+b', 1)", "extract(t, 'a|b$', 0)",
                 "replace(t, 'a', 'b', 2)"):  # fmt: skip
        assert isinstance(
            compile_expression(f"regexp_{text}", Scope([*types.columns, *scope(n="string").columns])), NotLocal
        ), text


def test_sequences() -> None:
    rows, types = {"a": pa.array([3, 0, None], pa.int32())}, scope(a="int")
    assert values("sequence(1, a)", rows, types) == [[1, 2, 3], [1, 0], None]
    assert values("sequence(CAST(1 AS BIGINT), 6, 2)", rows, types) == [[1, 3, 5]] * 3
    assert values("sequence(DATE '2024-02-28', DATE '2024-03-01', INTERVAL 2 DAYS)", rows, types)[0] == [
        dt.date(2024, 2, 28), dt.date(2024, 3, 1)
    ]  # fmt: skip
    with pytest.raises(TrinityError, match="steps of 1"):
        values("sequence(1, a, 1)", rows, types)
    for text in ("sequence(1, 2, a)", "sequence(1, 2, 0)", "sequence(1.5, 2)", "sequence(DATE '2024-01-01', a)"):
        assert isinstance(compile_expression(text, types), NotLocal), text


def test_names_have_qualifiers_and_any_case() -> None:
    columns = [
        ScopeColumn("Id", "t_id", parse_type("int"), "t"),
        ScopeColumn("id", "s_id", parse_type("int"), "s"),
        ScopeColumn("v", "v", parse_type("int"), "s"),
    ]
    rows = {
        "t_id": pa.array([1, 2], pa.int32()),
        "s_id": pa.array([1, 1], pa.int32()),
        "v": pa.array([0, 1], pa.int32()),
    }
    assert values("T.ID = s.id AND V = 0", rows, Scope(columns)) == [True, False]
    with pytest.raises(TrinityError) as ambiguous:
        compile_expression("id = 1", Scope(columns))
    assert ambiguous.value.code == "INVALID_ARGUMENTS"
    with pytest.raises(TrinityError) as unknown:
        compile_expression("t.v = 1", Scope(columns))
    assert unknown.value.code == "COLUMN_NOT_FOUND"


def test_what_is_left_to_spark_is_named() -> None:
    found = compile_expression("soundex(c) = 'A100' AND a = 1", scope(a="int", c="string"))
    assert isinstance(found, NotLocal)
    assert "SOUNDEX(c)" in found.reason


@pytest.mark.parametrize(
    "text",
    [
        "a = b < c",
        "a IN (SELECT 1)",
        "user = 'x'",
        "x.y = 1",
        "a = 'five'",
        r"t = '\x'",
        "a =",
        "d < '2024-1-1'",
        "a = t",
        "t LIKE '%🐎'",  # Java stores it as two characters
        "CAST(NULL AS INT) % ROUND(a, -3)",  # some Spark plans evaluate the divisor, which may fail
        "ROUND(a, -3) < CAST(NULL AS INT)",
        "TRUNC(d, 'Q') = d",  # NULL in Spark, as every unit of one letter
        "DATE_TRUNC('M', d) = d",
        "TRUNC(d, week) = d",  # the units in a column
        "DATE_TRUNC(week, d) = d",
        "d + INTERVAL 1 D = d",
        "d + INTERVAL '1 d' = d",
        "d + INTERVAL '1day' = d",
        "d + INTERVAL '- 1 day' = d",
        "d + INTERVAL '1 day 3' = d",
        "k IN ('', NULL)",  # Spark pads '' depending on the other values
        "-n > 0",  # Spark rounds it to 34 digits
        "CAST(1 AS SMALLINT) + 1.5",  # parsed like 1S + 1.5, which has another type
        "n - ABS(CAST('-2147483648' AS INT))",  # fails only where n is not NULL
        "ROUND(5) + 1.5",  # Spark uses the digits of an INT, not those of 5
    ],
)
def test_what_only_spark_reads_is_left_to_it(text: str) -> None:
    types = scope(a="int", b="int", c="boolean", t="string", d="date", n="decimal(38,0)", k="char(3)", week="string")
    found = compile_expression(text, types)
    assert isinstance(found, NotLocal)


def test_a_condition_is_boolean() -> None:
    with pytest.raises(TrinityError) as refused:
        compile_predicate("a", scope(a="int"))
    assert refused.value.code == "TYPE_MISMATCH"


@dataclass(frozen=True)
class Comparison:
    """The results of this process and of Spark for the same rows."""

    session: Session
    zone: str
    rows: pa.Table
    columns: Sequence[Column] = field(default_factory=lambda: COLUMNS)

    def of(self, places: Sequence[int]) -> Comparison:
        """Return the same comparison for some of the rows."""
        return replace(self, rows=self.rows.take(places))

    def mine(self, text: str) -> Outcome | NotLocal:
        """Return this process's result of an expression, or its error code."""
        try:
            return in_process(self.rows, text, self.zone, self.columns)
        except TrinityError as error:
            return error.code

    def theirs(self, texts: Sequence[str]) -> dict[str, Outcome]:
        """Return Spark's result of each expression: all in one job, or in several where one fails."""
        try:
            with spark_errors():
                return dict(zip(texts, by_spark(self.session, self.rows, texts, self.columns), strict=True))
        except TrinityError as error:
            if len(texts) == 1:
                return {texts[0]: error.code}
        half = len(texts) // 2
        return self.theirs(texts[:half]) | self.theirs(texts[half:])

    def differing(self, texts: Sequence[str], *, least: float = 0.5) -> list[str]:
        """Return the expressions whose results differ. This process must evaluate a share of more than ``least``."""
        found = {text: self.mine(text) for text in texts}
        mine = {text: answer for text, answer in found.items() if not isinstance(answer, NotLocal)}
        failing = [text for text, answer in mine.items() if isinstance(answer, str)]
        succeeding = [text for text in mine if text not in failing]
        assert len(succeeding) > len(texts) * least
        given = self.theirs(succeeding)
        differing = [f"{text}: {mine[text]}, {given[text]}" for text in succeeding if mine[text] != given[text]]
        return differing + self.failing_otherwise(failing)

    def failing_otherwise(self, texts: Sequence[str]) -> list[str]:
        """Return the failing expressions that Spark evaluates, or that fail there for other rows or for another reason.

        Where rows fail for several reasons, either side may report any of them: each is repeated with a row that has it
        alone. Rows that do not fail must have Spark's values.
        """
        differing = list[str]()
        evaluated = dict[str, tuple[str, list[int]]]()
        for text in texts:
            alone = [self.of([place]).mine(text) for place in range(self.rows.num_rows)]
            answers = [self.mine(text), self.theirs([text])[text]]
            for code in answers[:1] if answers[0] == answers[1] else answers:
                place = alone.index(code) if code in alone else None
                if place is None or self.of([place]).theirs([text])[text] != code:
                    differing.append(f"{text}: {answers}, row {place}")
            if places := [place for place, answer in enumerate(alone) if not isinstance(answer, str)]:
                evaluated[f"CASE WHEN k IN ({', '.join(map(str, places))}) THEN {text} END"] = text, places
        given = self.theirs(list(evaluated))
        for guarded, (text, places) in evaluated.items():
            said, their = self.of(places).mine(text), given[guarded]
            if isinstance(their, str) or said != (their[0], [their[1][place] for place in places]):
                differing.append(f"{text} in rows {places}: {said}, {their}")
        return differing


def test_expressions_are_evaluated_as_spark_does(session: Session, zone: str) -> None:
    generator = Generator(1)
    conditions = [generator.condition() for _ in range(150)]
    assert Comparison(session, zone, sample(60, 1)).differing(conditions) == []
    expressions = [generator.expression() for _ in range(150)]
    assert Comparison(session, zone, sample(60, 1, mild=True)).differing(expressions) == []


def test_fixed_expressions_are_evaluated_as_spark_does(session: Session, zone: str) -> None:
    """Those whose results once differed: each is as in Spark now, or left to it."""
    assert Comparison(session, zone, sample(60, 1, mild=True)).differing(FIXED, least=0) == []


def test_texts_are_times_as_in_spark(session: Session, zone: str) -> None:
    rows = pa.table({"t": [text[1:-1] for text in TEXTS_OF_TIMES]})
    for kind in ("timestamp", "timestamp_ntz"):
        theirs = frame(session, rows).selectExpr("t", f"try_cast(t AS {kind}) AS at").toArrow()
        read = compile_expression(f"CAST(t AS {kind})", scope(t="string"), lambda: zone)
        assert isinstance(read, Compiled)
        for text, at in zip(theirs["t"].to_pylist(), theirs["at"].cast(pa.int64()).to_pylist(), strict=True):
            try:
                mine = read.evaluate(pa.RecordBatch.from_pydict({"t": [text]})).cast(pa.int64())[0].as_py()
            except TrinityError as error:
                mine = None if error.code == "TYPE_MISMATCH" else error.code
            assert (text, mine) == (text, at), kind


def test_a_time_alone_is_of_today() -> None:
    today = dt.datetime.now(dt.UTC).date()
    rows, types = {"t": pa.array(["10:20", "T7", "7:8:9.5"])}, scope(t="string")
    read = values("CAST(t AS TIMESTAMP)", rows, types)
    assert all(dt.timedelta() <= at.date() - today <= dt.timedelta(days=1) for at in read)  # or midnight has passed
    assert [str(at.time()) for at in read] == ["10:20:00", "07:00:00", "07:08:09.500000"]
    with pytest.raises(TrinityError):
        values("CAST(t AS TIMESTAMP_NTZ)", rows, types)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(6))
def test_many_expressions_are_evaluated_as_spark_does(session: Session, zone: str, seed: int) -> None:
    generator = Generator(100 + seed)
    assert Comparison(session, zone, sample(60, seed)).differing([generator.condition() for _ in range(800)]) == []
    for mild in (True, False):
        expressions = [generator.expression() for _ in range(400)]
        assert Comparison(session, zone, sample(60, seed, mild=mild)).differing(expressions, least=0.2) == []


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
def test_nested_values_and_patterns_are_evaluated_as_spark_does(session: Session, seed: int) -> None:
    generator = NestedGenerator(seed)
    expressions = list(dict.fromkeys(generator.expression() for _ in range(200)))
    assert Comparison(session, "UTC", nested_sample(40, seed), NESTED).differing(expressions, least=0.3) == []


@pytest.mark.full
def test_every_character_has_the_case_that_spark_gives_it(session: Session) -> None:
    draw = random.Random(1)
    letters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    pool = "aA\u03a3\u03c3\u03c2ß\u0130\u0131ǅŉΐﬁ.'\u0301\u00ad :1ᾳᾼ"
    words = ["".join(draw.choices(pool, k=draw.randrange(1, 6))) for _ in range(20_000)]
    rows = pa.table({"text": pa.array([*letters, *words])})
    found = frame(session, rows).selectExpr("text", "upper(text) AS u", "lower(text) AS l").toArrow().combine_chunks()
    [batch] = found.to_batches()
    for name, function in (("u", "UPPER"), ("l", "LOWER")):
        mine = compile_expression(f"{function}(text)", scope(text="string"))
        assert isinstance(mine, Compiled)
        other = pc.not_equal(mine.evaluate(batch), batch.column(name))
        assert batch.filter(other).to_pylist() == []
