"""Generated expressions over a column of every type, and their values by Spark and by this process."""

from __future__ import annotations

import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa

from tests.support.edges import CASES, PRIMITIVES, literal, plain
from tests.support.zones import frame
from trinity import Column, Session
from trinity.engine.executes import NotLocal
from trinity.engine.expressions import Scope, compile_expression
from trinity.spark.texts import with_char
from trinity.spi import arrow_type
from trinity.syntax.operands import with_plain_comparisons

Outcome: TypeAlias = "tuple[str, list[Any]] | str"
"""The type and the values of an expression, or the code of its error."""

COLUMNS: Final = [
    Column("k", "int"),
    *[Column(name, CASES[name][0]) for name in PRIMITIVES],
    *[Column(f"{name}2", CASES[name][0]) for name in PRIMITIVES],
]
"""Two columns of each type, so that values of one type are combined."""
NESTED: Final = [
    Column("k", "int"),
    Column("s", "struct<A:int,b:struct<c:string,d:double>>"),
    Column("l", "array<int>"),
    Column("m", "map<string,bigint>"),
    Column("w", "map<int,string>"),
    Column("ls", "array<struct<x:int,y:string>>"),
    Column("t", "string"),
]
"""Nested columns."""


def sample(rows: int, seed: int = 0, *, mild: bool = False) -> pa.Table:
    """Return rows of random edge values and NULLs; mild ones are values with which most calculations succeed."""
    draw = random.Random(seed)
    arrays = [pa.array(range(rows), pa.int32())]
    for column in COLUMNS[1:]:
        name = column.name.removesuffix("2")
        edges = [] if mild and name in _MILD else CASES[name][1]
        values = [*edges, *_MILD.get(name, ()), None]
        arrays.append(pa.array([draw.choice(values) for _ in range(rows)], arrow_type(column.type)))
    return pa.table(arrays, names=[c.name for c in COLUMNS])


def nested_sample(rows: int, seed: int) -> pa.Table:
    """Return rows of random nested values, of texts for patterns to match, and of NULLs."""
    draw = random.Random(seed)
    arrays = [pa.array(range(rows), pa.int32())]
    for column in NESTED[1:]:
        values = [*_NESTED_VALUES[column.name], None]
        arrays.append(pa.array([draw.choice(values) for _ in range(rows)], arrow_type(column.type)))
    return pa.table(arrays, names=[c.name for c in NESTED])


def by_spark(
    session: Session, rows: pa.Table, texts: Sequence[str], columns: Sequence[Column] = COLUMNS
) -> list[Outcome]:
    """Return the type and the values of each expression, all evaluated by one Spark job."""
    given = with_char(frame(session, rows), columns)
    wanted = [f"{with_plain_comparisons(text)} AS e{number}" for number, text in enumerate(texts)]
    found = given.selectExpr("k", *wanted).toArrow().sort_by("k")
    return [_outcome(found.column(f"e{number}")) for number in range(len(texts))]


def _outcome(values: pa.Array | pa.ChunkedArray) -> Outcome:
    zoned = pa.types.is_timestamp(values.type) and values.type.tz is not None
    name = "timestamp" if zoned else "time" if pa.types.is_time(values.type) else str(values.type)
    return name.removeprefix("large_").replace(" not null", ""), plain(values)


def in_process(rows: pa.Table, text: str, zone: str, columns: Sequence[Column] = COLUMNS) -> Outcome | NotLocal:
    """Return the type and the values of an expression that this process evaluates."""
    found = compile_expression(text, Scope.of(columns), lambda: zone)
    if isinstance(found, NotLocal):
        return found
    [batch] = rows.combine_chunks().to_batches()
    return _outcome(found.evaluate(batch))


class Generator:
    """A generator of expressions, some of which this process leaves to Spark."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def condition(self, depth: int = 2) -> str:
        """Draw an expression of type BOOLEAN."""
        draw = self.draw
        if depth and draw.random() < 0.4:
            left, right = self.condition(depth - 1), self.condition(depth - 1)
            return draw.choice(
                [
                    f"({left}) AND {right}",
                    f"{left} OR ({right})",
                    f"NOT ({left})",
                    f"({left}) IS TRUE",
                    f"({left}) IS NOT FALSE",
                    f"({left}) IS NULL",
                    f"{left} AND {right} OR ({left})",
                ]
            )
        if draw.random() < 0.1:
            return draw.choice(["c_boolean", "TRUE", "FALSE", "CAST(NULL AS BOOLEAN)", "NOT c_boolean2", "NULL"])
        return self.comparison()

    def comparison(self) -> str:
        """Draw a comparison of values of one type, or of two that Spark compares."""
        draw = self.draw
        family = draw.choice(_FAMILIES)
        value, other, third = (self.value(family) for _ in range(3))
        operator = draw.choice(
            ["=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
        )
        not_ = draw.choice(["", "NOT "])
        return draw.choice(
            [
                f"{value} {operator} {other}",
                f"{value} {operator} {other}",
                f"{value} {not_}IN ({other}, {third})",
                f"{value} {not_}IN ({other}, NULL)",
                f"{value} {not_}BETWEEN {other} AND {third}",
                f"{value} IS {not_}NULL",
            ]
        )

    def expression(self, depth: int = 2) -> str:
        """Draw an expression of any type."""
        draw = self.draw
        kinds = (self.number, self.number, self.text, self.day, lambda d: self.condition(min(d, 1)))
        kind = draw.choice(kinds)
        if depth and draw.random() < 0.3:
            first, second = kind(depth - 1), kind(depth - 1)
            condition = self.condition(0)
            return draw.choice(
                [
                    f"CASE WHEN {condition} THEN {first} ELSE {second} END",
                    f"IF({condition}, {first}, {second})",
                    f"CASE WHEN {condition} THEN {first} WHEN {self.condition(0)} THEN {second} END",
                    f"COALESCE({first}, {second})",
                    f"NVL({first}, {second})",
                    f"NULLIF({first}, {second})",
                    f"GREATEST({first}, {second})",
                    f"LEAST({first}, {second})",
                    f"ISNULL({first})",
                    f"CASE {first} WHEN {second} THEN 1 ELSE 2 END",
                    f"isnotnull({first})",
                    f"({first}) = ({second})",
                    f"({first}) < ({second})",
                    f"CASE WHEN {condition} THEN {first} ELSE NULL END",
                ]
            )
        return kind(depth)

    def number(self, depth: int) -> str:
        """Draw a calculation."""
        draw = self.draw
        if not depth or draw.random() < 0.2:
            return self.value(_NUMBERS)
        first, second = self.number(depth - 1), self.number(depth - 1)
        return draw.choice(
            [
                f"{first} + {second}",
                f"{first} - {second}",
                f"{first} * {second}",
                f"({first}) / {second}",
                f"({first}) % {second}",
                f"({first}) DIV {second}",
                f"MOD({first}, {second})",
                f"-({first})",
                f"ABS({first})",
                f"({first} + {second}) * {second}",
                f"LENGTH({self.text(depth - 1)})",
                f"{draw.choice(_PARTS)}({self.day(depth - 1)})",
                f"{draw.choice(_TIME_PARTS)}({self.time()})",
                f"DATEDIFF({self.day(depth - 1)}, {self.day(depth - 1)})",
                f"CAST({first} AS {draw.choice(_WHOLE)})",
                f"CAST({first} AS {draw.choice(_FRACTIONS)})",
                f"CAST({self.text(depth - 1)} AS {draw.choice(['DOUBLE', 'DECIMAL(10,2)', 'BIGINT'])})",
                f"CAST({draw.choice(_TEXTS_OF_NUMBERS)} AS {draw.choice(['DOUBLE', 'DECIMAL(10,2)', 'BIGINT'])})",
                f"{draw.choice(['ROUND', 'BROUND'])}({first}, {draw.choice(['0', '1', '2', '5', '-1', '-3'])})",
                f"{draw.choice(['ROUND', 'BROUND', 'FLOOR', 'CEIL', 'SQRT', 'SIGN'])}({first})",
                f"{draw.choice(['FLOOR', 'CEIL'])}(CAST({self.value(_NUMBERS)} AS DECIMAL(20,0)))",
                f"IF(ISNAN({self.value(('c_float', 'c_double'))}), 1, 2)",
                f"{draw.choice(['LENGTH', 'OCTET_LENGTH', 'BIT_LENGTH'])}({self.text(depth - 1)})",
                f"INSTR({self.text(depth - 1)}, {draw.choice(_PARTS_OF_TEXTS)})",
                f"LOCATE({draw.choice(_PARTS_OF_TEXTS)}, {self.text(depth - 1)})",
                f"EXTRACT({draw.choice(_EXTRACTED)} FROM {self.time()})",
                f"CAST({self.text(depth - 1)} AS INT)",
                "CAST(c_boolean AS INT)",
            ]
        )

    def text(self, depth: int) -> str:
        """Draw an expression of a text type."""
        draw = self.draw
        if not depth or draw.random() < 0.2:
            return self.value(("c_string", "c_varchar", "c_char", "c_string"))
        first, second = self.text(depth - 1), self.text(depth - 1)
        number = draw.choice(["0", "1", "2", "3", "-1", "-2", "100"])
        return draw.choice(
            [
                f"{first} || {second}",
                f"CONCAT({first}, {second}, 'x')",
                f"TRIM({first})",
                f"LTRIM({first})",
                f"RTRIM({first})",
                f"TRIM(BOTH FROM {first})",
                f"TRIM(LEADING FROM {first})",
                f"SUBSTRING({first}, {number}, {draw.choice(['0', '1', '2', '-1', '100'])})",
                f"SUBSTR({first}, {number})",
                f"LEFT({first}, {number})",
                f"REPLACE({first}, 'b', 'xyz')",
                f"REPLACE({first}, 'ab', '')",
                f"CAST({self.value(_NUMBERS[:4])} AS STRING)",
                f"CAST({self.day(depth - 1)} AS STRING)",
                f"'no. ' || {self.value(_NUMBERS[:4])}",
                "CAST(c_boolean AS STRING)",
                f"{first} || NULL",
                f"{self.value(('c_int', 'c_tinyint'))} {draw.choice('+-')} c_int2 || {second}",
                f"{first} || {draw.choice(['c_tinyint', '1'])} {draw.choice('+-')} 2",
                f"{first} || ({draw.choice(['c_tinyint', '1'])} {draw.choice('+-')} 2)",
                f"{draw.choice(['UPPER', 'LOWER', 'UCASE', 'LCASE', 'REVERSE', 'BTRIM'])}({first})",
                f"RIGHT({first}, {number})",
                f"{draw.choice(['LPAD', 'RPAD'])}({first}, {number}{draw.choice(_PADDING)})",
                f"REPEAT({first}, {number})",
                f"SPLIT_PART({first}, {draw.choice(_PARTS_OF_TEXTS)}, {number})",
                f"CONCAT_WS('-', {first}, {second}, CAST(c_int AS STRING))",
                f"CONCAT_WS({first}, {second}, c_string2)",
                f"NVL2({first}, {second}, 'x')",
                f"CAST({self.value(('c_dec', 'c_dec38', 'c_dec38s'))} AS STRING)",
                f"IF({first} ILIKE {draw.choice(_PATTERNS)}, {second}, {first})",
                f"IF({first} {draw.choice(['LIKE', 'ILIKE'])} {draw.choice(_ESCAPED)} ESCAPE '!', {second}, {first})",
                f"DATE_FORMAT({self.day(depth - 1)}, {draw.choice(_WRITTEN)})",
                f"IF({first} LIKE {draw.choice(_PATTERNS)}, {second}, {first})",
                f"IF(REPLACE({first}, 'b', {draw.choice(_WILD)}) LIKE {draw.choice(_BACKSLASHES)}, {second}, {first})",
                f"IF(STARTSWITH({first}, 'a') OR CONTAINS({first}, 'b'), {second}, {first})",
                f"IF(NOT ENDSWITH({first}, 'b') AND {first} <> 'ab', {second}, {first})",
            ]
        )

    def day(self, depth: int) -> str:
        """Draw an expression of a date or a timestamp."""
        draw = self.draw
        if not depth or draw.random() < 0.3:
            return self.value(("c_date", "c_date", "c_ts", "c_ntz"))
        date = self.value(("c_date",))
        interval = f"INTERVAL {draw.choice(['1', '-13', '400', '35'])} {draw.choice(_UNITS)}"
        number = draw.choice(["1", "-40", "c_tinyint", "c_int", "c_smallint2", "0", "10000"])
        return draw.choice(
            [
                f"DATE_ADD({date}, {number})",
                f"DATE_SUB({date}, {number})",
                f"{date} + {number}",
                f"{date} - {number}",
                f"CAST({self.time()} AS DATE)",
                f"TO_DATE({self.time()})",
                f"{self.day(depth - 1)} + {interval}",
                f"{self.day(depth - 1)} - {interval}",
                f"{self.time()} + {interval}",
                f"{interval} + {self.time()}",
                f"{self.time()} - INTERVAL 1 DAY 2 HOURS",
                f"DATE_TRUNC('{draw.choice(_CUT)}', {self.day(depth - 1)})",
                f"TRUNC({date}, '{draw.choice(_CUT)}')",
                f"LAST_DAY({date})",
                f"ADD_MONTHS({date}, {draw.choice(['1', '-1', '12', '-11'])})",
                f"CAST({draw.choice(_TEXTS_OF_DAYS)} AS DATE)",
                f"CAST({self.text(depth - 1)} AS DATE)",
                f"CAST(CAST({self.day(depth - 1)} AS STRING) AS DATE)",
                f"TO_DATE({draw.choice(_DAYS_READ)}, {draw.choice(_READ)})",
                f"TO_TIMESTAMP(DATE_FORMAT({self.time()}, {(pattern := draw.choice(_READ))}), {pattern})",
                f"{draw.choice(['TO_TIMESTAMP', 'TIMESTAMP'])}({draw.choice([date, *TEXTS_OF_TIMES])})",
                f"CAST({date} AS TIMESTAMP)",
                f"CAST({date} AS TIMESTAMP_NTZ)",
                f"CAST(CAST({self.day(depth - 1)} AS STRING) AS {draw.choice(['TIMESTAMP', 'TIMESTAMP_NTZ'])})",
                f"CAST({draw.choice(TEXTS_OF_TIMES)} AS {draw.choice(['TIMESTAMP', 'TIMESTAMP_NTZ'])})",
            ]
        )

    def time(self) -> str:
        """Draw a timestamp column or literal."""
        return self.value(("c_ts", "c_ntz"))

    def value(self, family: Sequence[str]) -> str:
        """Draw a column or a literal of one of some types."""
        draw = self.draw
        name = draw.choice(family)
        kind, values = CASES[name]
        if draw.random() < 0.5:
            return draw.choice([name, f"{name}2"])
        if name in ("c_string", "c_char", "c_varchar"):
            return draw.choice(["'ab'", "'ab  '", "'abcd'", "''", "'abcde'", "'ab      '", "'žluťoučký 🐎'"])
        if name in ("c_date", "c_ts", "c_ntz") and draw.random() < 0.5:
            return draw.choice([*_TIMES, "'2024-02-29'", "'2024-03-10 02:30:00'"])
        if name in _NUMBERS and draw.random() < 0.7:
            return draw.choice(_NUMBER_TEXTS)
        return literal(kind, draw.choice([*values, None]))


_WILD: Final = ("'%'", "'_'", r"'\\'")
_BACKSLASHES: Final = (
    r"'%\\\\%'", r"'a\\\\%'", r"'%\\\\c'", r"'a\\\\C'", r"'a\\%c'", r"'%\\%%'", r"'%\\%c'", r"'A\\_c'", r"'a\\\\\\%'",
    r"'a\\c'", r"'%\\'",
)  # fmt: skip
"""Patterns of LIKE with backslashes; Spark refuses the last two."""
FIXED: Final = [
    *[f"{name}({t})" for name in ("to_timestamp", "timestamp") for t in ("c_date", "c_ntz", "c_ts", "NULL")],
    *[f"{name}('2024-01-31 10:00:00+02:00')" for name in ("to_timestamp", "timestamp")],
    "to_timestamp(CAST(c_ntz AS STRING) || '+02:00')",
    "timestamp(CAST(c_date AS STRING) || ' 10:00:00Z')",
    *[
        f"REPLACE(c_string, 'b', '{put}') {like} {pattern}"
        for pattern in _BACKSLASHES
        for put, like in ((r"\\", "LIKE"), ("%", "NOT ILIKE"))
    ],
    r"c_string LIKE ANY ('%\\%%', 'a%')",
    *[f"trunc(c_date, '{unit}')" for unit in ("Q", "M", "Y", "D", "yy", "mon", "quarter")],
    *[f"date_trunc('{unit}', c_ts)" for unit in ("Q", "M", "Y", "D", "H", "S", "W", "ms", "yy", "dd", "quarter")],
    *["'4' || 1 + 2", "k || 1 - 2", "k + 1 || 2", "k || k * 2", "k || (k - 1) || -k", "k || k - 1 || 'x'"],
    *[f"{name}(CAST(k AS DECIMAL({size})))" for name in ("floor", "ceil") for size in ("5,0", "38,0", "5,1", "38,1")],
    "trunc(c_date, CASE WHEN k < 5 THEN 'year' ELSE 'month' END)",
    *[f"c_ts + INTERVAL {interval}" for interval in ("'- 1 day'", "' -1 day '", "'+2 days'", "'1day'", "-1 DAY")],
    *[f"c_ts + INTERVAL {interval}" for interval in ("1 D", "'1' H", "'1 d'", "'1 day 3'", "'1 day x'")],
]
"""Expressions for which this process once had other values than Spark."""
_READ = ["'yyyy-MM-dd'", "'dd.MM.yyyy'", "'yyyyMMdd'", "'MM/dd/yyyy HH:mm'", "'yyyy-MM-dd\\'T\\'HH:mm:ss.SSS'"]
_WRITTEN = [*_READ, "'yyyy-MM'", "'HH:mm:ss.SSSSSS'", "'E, dd MMM yyyy'", "'yyyy'"]
_DAYS_READ = [
    "'2024-02-29'",
    "'2023-02-29'",
    "'29.02.2024'",
    "'20240229'",
    "'2024-2-9'",
    "''",
    "c_string",
    "' 2024-02-29'",
]


class NestedGenerator:
    """A generator of expressions over nested values and over texts that match patterns."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def expression(self) -> str:
        """Draw an expression of any type."""
        number, other, text = self.number(), self.number(), self.text()
        return self.draw.choice(
            [
                f"{number} + {other}",
                f"{number} > {other} AND {text} IS NOT NULL",
                f"COALESCE({number}, {other})",
                f"CASE WHEN {text} = 'x' THEN {number} ELSE {other} END",
                f"UPPER({text})",
                f"array({number}, {other}, NULL)",
                f"array({number}, {other})[{self.place()}]",
                f"named_struct('p', {number}, 'q', {text})",
                f"named_struct('p', {number}, 'q', {text}).Q",
                "struct(k, s, l)",
                f"map('p', {number}, 'q', {other})",
                f"map(1, {text}, {self.draw.choice(['2', '1', '3L'])}, NULL)[{self.place()}]",
                f"{self.draw.choice(['s', 's.b', 'l', 'm', 'ls', 'ls[0]'])} IS NULL",
                *[f"{self.draw.choice(['t', text])} RLIKE {self.pattern()}" for _ in range(4)],
                *[
                    f"regexp_replace({self.draw.choice(['t', text])}, {self.pattern()}, {self.draw.choice(_PUT)})"
                    for _ in range(4)
                ],
                *[
                    f"regexp_extract({self.draw.choice(['t', text])}, {self.pattern()}{self.draw.choice(_OF_GROUP)})"
                    for _ in range(4)
                ],
                f"sequence({number}, {other})",
                f"sequence({self.draw.choice(['k', 's.a', '1', '-2L', 'CAST(k AS TINYINT)'])}, {number})",
                f"sequence(k, s.a, {self.draw.choice(['1', '2', '-3'])})",
                f"sequence(DATE '2024-02-27', DATE '2024-03-01' + s.a{self.draw.choice(_STEPS)})",
            ]
        )

    def number(self) -> str:
        """Draw an expression of a number."""
        number = f"ls[{self.place()}].x"
        return self.draw.choice(["s.a", "s.b.d", f"l[{self.place()}]", f"m[{self.key()}]", number, "k"])

    def text(self) -> str:
        """Draw an expression of a text."""
        return self.draw.choice(["s.b.c", f"w[{self.place()}]", f"ls[{self.place()}].y", "t"])

    def place(self) -> str:
        """Draw an index of an array."""
        return self.draw.choice([*["0", "1", "k % 2", "s.a"] * 3, "-1", "2", "CAST(NULL AS INT)"])

    def key(self) -> str:
        """Draw a key of a map."""
        return self.draw.choice(["'k'", "'x'", "'none'", "t", "s.b.c"])

    def pattern(self) -> str:
        """Draw a regular expression as a literal."""
        draw = self.draw
        parts, times = draw.choice([(_PATTERN_PARTS, _TIMES_IN_PATTERNS), (_PATTERN_PARTS[:17], ("", "", "+", "{2}"))])
        some = "".join(draw.choice(parts) + draw.choice(times) for _ in range(draw.randrange(4)))
        return f"'{draw.choice(['', '', '^'])}{some}{draw.choice(['', '', '$'])}'"


_PATTERN_PARTS: Final = (
    "a", "b", "ab", ".", "[a-c]", "(a|b.)", r"\\d", r"\\w", "([a-z])", r"\\.", "((a)|b)", "(ab)", "x|y", "(x|(.))",
    r"[0-9\\-]", "(a|b)", " ", "[^a]", r"\\W", r"(\\d)-(\\d)", r"\\s", r"\\S", r"[\\sa]",
    "(a*)", "(", "[[:alpha:]]", r"\\bx",
)  # fmt: skip
_PUT: Final = ("''", "'-'", "'<$0>'", "'$1'", "'$2_$1'", "'x$1 '", r"'\\\\'")
_OF_GROUP: Final = ("", ", 0", ", 1", ", 2")
_STEPS: Final = ("", "", ", INTERVAL 1 DAY", ", INTERVAL 2 DAYS", ", INTERVAL -1 DAY")
_TIMES_IN_PATTERNS: Final = ("", "", "", "*", "+", "?", "{2}", "{0,1}", "*?", "++")
_NESTED_VALUES: Final[dict[str, list[Any]]] = {
    "s": [{"A": 1, "b": {"c": "x", "d": 1.5}}, {"A": 0, "b": None}, {"A": None, "b": {"c": "k", "d": None}}],
    "l": [[1, 2], [None, 5, 7], [40, 0]],
    "m": [[("k", 1), ("x", None)], [], [("x", 2**40)]],
    "w": [[(0, "x"), (1, "ab")], [(1, None)], []],
    "ls": [[{"x": 7, "y": "x"}, None], [{"x": None, "y": "Äb"}, {"x": 1, "y": None}]],
    "t": [
        "x",
        "ab",
        "aab\n",
        "a\r\n",
        "x\u2028",
        "1-2",
        "a.b",
        "\r",
        "\n",
        "",
        "aXb",
        "žluť 🐎",
        "a b",
        "_9",
        "ab\r",
        "a\x0b\tb",
    ],
}
_NUMBERS: Final = (
    "c_tinyint",
    "c_smallint",
    "c_int",
    "c_bigint",
    "c_float",
    "c_double",
    "c_dec",
    "c_dec38",
    "c_dec38s",
)
_FAMILIES: Final = (
    _NUMBERS, _NUMBERS, _NUMBERS, ("c_string", "c_char", "c_varchar"), ("c_char",), ("c_date", "c_ts", "c_ntz"),
    ("c_date",), ("c_ts",), ("c_ntz",), ("c_binary",), ("c_boolean",), ("c_float",), ("c_double",), ("c_time",),
)  # fmt: skip
_NUMBER_TEXTS: Final = (
    "0", "-1", "127", "-128", "2147483647", "-2147483648", "2147483648", "9223372036854775807",
    "-9223372036854775808", "9223372036854775808", "1.5", "-0.01", "0.0", "00.10", "12345678.90", ".5", "5.", "1e0",
    "-2.5E-3", "1L", "1S", "-1Y", "1.5D", "0.1F", "1.5F", "1.50BD", "9007199254740993", "'5'", "NULL",
)  # fmt: skip
_TIMES: Final = (
    "DATE '2024-02-29'", "TIMESTAMP '2024-03-10 02:30:00.000001'", "TIMESTAMP '2024-11-03 01:30:00'",
    "TIMESTAMP_NTZ '2024-11-03 01:30:00'", "TIMESTAMP '2024-03-10 07:30:00Z'", "DATE '1582-10-10'",
    "TIMESTAMP_LTZ '1883-11-18 12:00:00'",
)  # fmt: skip
_WHOLE: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_PARTS: Final = ("YEAR", "MONTH", "DAY", "DAYOFMONTH", "QUARTER", "DAYOFYEAR", "DAYOFWEEK", "WEEKDAY", "WEEKOFYEAR")
_FRACTIONS: Final = ("DOUBLE", "FLOAT", "DECIMAL(10,2)", "DECIMAL(38,18)", "DECIMAL(5,0)")
_PADDING: Final = ("", ", 'x'", ", '🐎'")
_EXTRACTED: Final = ("YEAR", "QUARTER", "MONTH", "DAY", "DOY", "DAYOFWEEK", "WEEK", "HOUR", "MINUTE")
_UNITS: Final = (
    "DAY", "DAYS", "WEEK", "MONTH", "MONTHS", "YEAR", "HOUR", "HOURS", "MINUTES", "SECOND",
    "MILLISECONDS", "MICROSECOND",
)  # fmt: skip
_CUT: Final = (
    "YEAR", "yyyy", "QUARTER", "MONTH", "mm", "WEEK", "DAY", "dd", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "Q", "M",
)  # fmt: skip
_PARTS_OF_TEXTS: Final = ("'b'", "'ab'", "''", "' '", "'🐎'", "'.'")
_ESCAPED: Final = ("'a!%c'", "'!%%'", "'%!_%'", "'a!%%'", "'!!%'", "'%ä%'")
_TEXTS_OF_DAYS: Final = (
    "'2024-2-9'", "' 2024-02-29T99 '", "'2024-02'", "'2024'", "'-0045-12-31'", "'+10000-1-1'", "'2023-02-29'",
    "'24-01-01'",
    "'2024-01-01x'", "''", "'9999999-01-01'", "'2024-01-01 10:00'",
)  # fmt: skip
TEXTS_OF_TIMES: Final = (
    "'2024-03-10 02:30:00'", "'2024-11-03 01:30:00.123456789'", "' 2024-1-2T3:4:5. '", "'2024-02-29 23'",
    "'2024-02-29T1:2'", "'2024-2'", "'2024'", "'0000-12-31 00:00:00'", "'-0044-03-15 12:00:00'",
    "'+12024-01-01 00:00:00'",
    "'294247-01-10 04:00:54.775807'", "'294247-01-10 04:00:54.775808'", "'-290308-12-21 19:59:05.224192'",
    "'999999-01-01'", "'2024-01-01 10:20:30Z'", "'2024-01-01 10:20:30 +5:30'", "'2024-01-01 10:20:30.5UTC-1'",
    "'2024-07-01 10:20:30Europe/Paris'", "'2024-01-01 10:20:30 EST'", "'2024-01-01 10:20:30+01'",
    "'2024-01-01 10:20:30+0130'", "'2024-01-01 10:20:30GMT+01:02:03'", "'2024-01-01 10:20:30-18:00'",
    "'2024-01-01 10:20:30+18:01'", "'2024-01-01 10:20:30+1:5'", "'2024-01-01 10:20:30+130'", "'2024-01-01 10:20:30UT'",
    "'2024-01-01 10:20:30utc'", "'2024-01-01 10:20:30 CST'", "'2024-01-01 10:20:30Europe'",
    "'2024-01-01 10:20:30posix/UTC'", "'2024-01-01 10:20:30 PST8PDT'", "'2024-01-01 10:20:30Etc/GMT+5'",
    "'2024-01-01 10:20:30GMT0'", "'2024-01-01 10:20:30.5.5'", "'2024-01-01 10:20Z'", "'2024-01-01 24:00:00'",
    "'2024-01-01 10:60:00'", "'2024-02-30 10:00:00'", "'2024-01-01  10:00:00'", "'2024-01-01 10:00:00x'",
    "'2024-01-01Z'", "'2024-01-01T'", "'2024-01-011 00:00:00'", "'024-01-01 00:00:00'", "'2024-01-01 10:20:30\u00a0'",
    "'T'", "'x'", "''", "'10'", "'2024-01-01 10:20:30+1:05:03'", "'2024-01-01 10:20:30+010203'",
    "'2024-01-01 10:20:30America/Sao_Paulo'", "'2024-01-01 10:20:30-0'", "'2024-01-01 10:20:30GMT-00:00'",
)  # fmt: skip
_TEXTS_OF_NUMBERS: Final = (
    "' 1.5 '", "'1e3'", "'.5'", "'5.'", "'1d'", "'0x1p3'", "'-inf'", "'NaN'", "'+Infinity'", "'1e400'", "'1.005'",
    "'-1.005'",
    "'12345678.905'", "'1e-400'", "'1_0'", "'x'", "'1e39'", "''",
)  # fmt: skip
_TIME_PARTS: Final = ("HOUR", "MINUTE", "SECOND", "YEAR", "DAY")
_PATTERNS: Final = ("'a%'", "'%b%'", "'_b__'", "'%'", "''", "'a_c'", "'%.%'", "'line%k'", "'(a%'", "'ž%🐎'", "'a%%c'")
_MILD: Final[dict[str, list[Any]]] = {
    **{f"c_{kind}": [0, 1, 2, 3, -7, 11] for kind in ("tinyint", "smallint", "int", "bigint")},
    "c_float": [1.5, -2.25, 3.0, 0.1],
    "c_double": [1.5, -2.25, 3.0, 0.1, 7.0],
    "c_dec": [Decimal("1.25"), Decimal("-3.00"), Decimal("0.10")],
    "c_dec38": [Decimal(5), Decimal(-12)],
    "c_dec38s": [Decimal("1.5"), Decimal("-0.000000000000000001")],
    "c_string": ["abc", "a%c", "a.c", "line\nbreak", "Äß", "12", " 42 ", "+7", "  ab  ", "(a)", "ab", "\tx"],
    "c_date": [0, 19_782, 19_783, 19_999, -1, 10_957],
    "c_ts": [0, -1, 1_709_210_096_789_012, 1_710_054_000_000_000, 1_730_612_700_000_001],
    "c_ntz": [0, -1, 1_709_210_096_789_012, 1_710_037_800_000_000],
}
"""Values that are no edge values."""
