"""SQL text without Spark: splitting, errors, types, columns, options, key predicates."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlglot import exp

import trinity
from trinity.errors import TrinityError
from trinity.spi import Column, TableDefinition, parse_partition
from trinity.sql.parsing.columns import read_elements
from trinity.sql.parsing.properties import read_options
from trinity.sql.queries.pushdown import key_predicate
from trinity.syntax.parse import parse, single, split
from trinity.syntax.types import type_text

pytestmark = pytest.mark.inner


def not_parsed(code: str, text: str, dialect: str = "spark") -> str:
    with pytest.raises(TrinityError) as caught:
        single(text, dialect)
    assert caught.value.code == code
    return caught.value.message


def test_split_knows_strings_comments_and_empty_statements() -> None:
    script = "SELECT ';' AS a; -- one; two\n;;SHOW TABLES LIKE 'a;b';\n/* ; */ SELECT \"x;y\"  ; -- end"
    assert split(script) == ["SELECT ';' AS a", "SHOW TABLES LIKE 'a;b'", 'SELECT "x;y"']
    assert split("-- nothing\n;") == []


@pytest.mark.parametrize("text", ["SELECT 1;", "SELECT 1 -- done", "/* a */ SELECT 1 ; ; -- b", "\n SELECT 1 ;\n"])
def test_one_statement_with_semicolon_and_comments(text: str) -> None:
    assert isinstance(single(text).tree, exp.Select)


def test_two_statements_point_to_script() -> None:
    assert "session.script()" in not_parsed("SYNTAX_ERROR", "SELECT 1;\nSELECT 2")


@pytest.mark.parametrize("text", ["", "  ;", "-- only a comment"])
def test_no_statement(text: str) -> None:
    assert "no statement" in not_parsed("SYNTAX_ERROR", text)


def test_syntax_errors_say_where() -> None:
    message = not_parsed("SYNTAX_ERROR", "SELECT a\nFROM t\nWHERE a = = 1")
    assert message.startswith("Line 3, column")
    assert ">>>" in message
    assert "Line 2" in not_parsed("SYNTAX_ERROR", "SELECT\n'never closed")


def test_unknown_dialect_names_the_nearest() -> None:
    assert "'trino'" in not_parsed("INVALID_ARGUMENTS", "SELECT 1", "trini")


def test_doubled_quotes_are_one_quote_in_spark_4() -> None:
    literal = single("SELECT 'it''s'").tree.find(exp.Literal)
    assert literal is not None
    assert literal.name == "it's"


TYPES = [
    ("spark", "DECIMAL", "decimal(10,0)"),
    ("trino", "DECIMAL", "decimal(38,0)"),
    ("duckdb", "DECIMAL", "decimal(18,3)"),
    ("spark", "NUMERIC(7)", "decimal(7,0)"),
    ("spark", "VARCHAR", "string"),
    ("trino", "VARCHAR", "string"),
    ("postgres", "VARCHAR", "string"),
    ("duckdb", "VARCHAR", "string"),
    ("spark", "VARCHAR(9)", "varchar(9)"),
    ("trino", "CHAR", "char(1)"),
    ("spark", "CHAR(3)", "char(3)"),
    ("spark", "TIMESTAMP", "timestamp"),
    ("spark", "TIMESTAMP_NTZ", "timestamp_ntz"),
    ("spark", "TIMESTAMP_LTZ", "timestamp"),
    ("trino", "TIMESTAMP", "timestamp_ntz"),
    ("trino", "TIMESTAMP(3) WITH TIME ZONE", "timestamp"),
    ("postgres", "TIMESTAMP WITH TIME ZONE", "timestamp"),
    ("duckdb", "TIMESTAMP", "timestamp_ntz"),
    ("spark", "TIME", "time"),
    ("trino", "TIME(3)", "time"),
    ("spark", "LONG", "bigint"),
    ("spark", "REAL", "float"),
    ("trino", "REAL", "float"),
    ("postgres", "DOUBLE PRECISION", "double"),
    ("trino", "VARBINARY", "binary"),
    ("postgres", "BYTEA", "binary"),
    ("postgres", "SERIAL", "int"),
    ("postgres", "INT[]", "array<int>"),
    ("spark", "ARRAY<STRUCT<a: INT, `b c`: STRING>>", "array<struct<a:int,`b c`:string>>"),
    ("trino", "ROW(a INT, b VARCHAR(3))", "struct<a:int,b:varchar(3)>"),
    ("trino", "MAP(VARCHAR, ARRAY(DECIMAL(5,2)))", "map<string,array<decimal(5,2)>>"),
]


def column_type(text: str, dialect: str) -> str:
    schema = parse(f"CREATE TABLE t (a {text})", dialect).tree.this
    return type_text(schema.expressions[0].args["kind"], dialect)


@pytest.mark.parametrize("dialect", ["spark", "trino"])
@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("SELEC * FROM t", "Line 1: 'SELEC' begins no statement. Did you mean 'SELECT'?"),
        ("-- a comment\nsho TABLES", "Line 2: 'sho' begins no statement. Did you mean 'SHOW'?"),
        ("INSRT INTO t VALUES (1)", "'INSERT'"),
        ("WIHT a AS (SELECT 1) SELECT * FROM a", "'WITH'"),
        ("((SELEC 1))", "'SELEC' begins no query. Did you mean 'SELECT'?"),
        ("FROBNICATE t", "'FROBNICATE' begins no statement."),
        ("1 + 1", "'1' begins no statement."),
        ("()", "')' begins no query."),
    ],
)
def test_a_misspelt_statement_is_named_before_spark_starts(tmp_path: Path, text: str, named: str, dialect: str) -> None:
    with trinity.connect(tmp_path) as session, pytest.raises(TrinityError, match="begins no") as caught:
        session.sql(text, dialect=dialect)
    assert caught.value.code == "SYNTAX_ERROR"
    assert named in caught.value.message


@pytest.mark.parametrize(("dialect", "text", "meant"), TYPES)
def test_types(dialect: str, text: str, meant: str) -> None:
    assert column_type(text, dialect) == meant


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("trino", "TIMESTAMP(9)"),
        ("trino", "UUID"),
        ("postgres", "NUMERIC"),
        ("postgres", "JSONB"),
        ("trino", "ROW(INT)"),
    ],
)
def test_types_without_counterpart(dialect: str, text: str) -> None:
    with pytest.raises(TrinityError) as caught:
        column_type(text, dialect)
    assert caught.value.code == "NOT_SUPPORTED"


def test_columns() -> None:
    tree = parse(
        "CREATE TABLE t (k INT PRIMARY KEY, a STRING NOT NULL DEFAULT 'x' COMMENT 'it''s', "
        "b INT DEFAULT 1 + 2, c INT NULL)"
    ).tree
    given = read_elements(tree.this.expressions, "spark")
    assert given.columns == [
        Column("k", "int"),
        Column("a", "string", nullable=False, default="'x'", comment="it's"),
        Column("b", "int", default="1 + 2"),
        Column("c", "int"),
    ]
    assert given.key == ["k"]
    assert (given.names, given.checks) == ([], [])


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a INT UNIQUE", "NOT_SUPPORTED"),
        ("a INT GENERATED ALWAYS AS (1)", "NOT_SUPPORTED"),
        ("a INT, UNIQUE (a)", "NOT_SUPPORTED"),
        ("a INT PRIMARY KEY, b INT PRIMARY KEY", "SYNTAX_ERROR"),
        ("a INT PRIMARY KEY, PRIMARY KEY (a)", "SYNTAX_ERROR"),
        ("a INT DEFAULT (SELECT 1)", "NOT_SUPPORTED"),
    ],
)
def test_columns_refused(text: str, code: str) -> None:
    tree = parse(f"CREATE TABLE t ({text})").tree
    with pytest.raises(TrinityError) as caught:
        read_elements(tree.this.expressions, "spark")
    assert caught.value.code == code


OPTIONS = [
    ("spark", "TBLPROPERTIES ('merge-engine' = 'deduplicate', 'bucket' = 4, 'ignore-delete' = true, x.y = 'z')"),
    ("spark", "WITH ('merge-engine' = 'deduplicate', 'bucket' = '4', 'ignore-delete' = 'true', 'x.y' = 'z')"),
    ("trino", """WITH ("merge-engine" = 'deduplicate', bucket = 4, "ignore-delete" = true, "x.y" = 'z')"""),
]


@pytest.mark.parametrize(("dialect", "text"), OPTIONS)
def test_options_in_three_spellings(dialect: str, text: str) -> None:
    tree = parse(f"CREATE TABLE t (a INT) {text}", dialect).tree
    options = read_options(tree.args["properties"].expressions)
    assert options.properties == {"merge-engine": "deduplicate", "bucket": "4", "ignore-delete": "true", "x.y": "z"}


def test_trino_keys_partitions_and_format_are_options() -> None:
    text = "CREATE TABLE t (a INT) WITH (primary_key = ARRAY['a', 'b'], partitioned_by = ARRAY['b'], format = 'DELTA')"
    options = read_options(parse(text, "trino").tree.args["properties"].expressions)
    assert (options.primary_key, options.partition_by, options.format) == (["a", "b"], ["b"], "delta")
    assert options.properties == {}


@pytest.mark.parametrize(
    ("dialect", "clause"),
    [
        ("spark", "PARTITIONED BY (region, bucket(8, id), days(ts), truncate(4, s), month(d))"),
        ("trino", "WITH (partitioning = ARRAY['region', 'bucket(id, 8)', 'day(ts)', 'truncate(s, 4)', 'month(d)'])"),
    ],
)
def test_partition_transforms_mean_the_same_in_both_spellings(dialect: str, clause: str) -> None:
    options = read_options(parse(f"CREATE TABLE t (a INT) {clause}", dialect).tree.args["properties"].expressions)
    fields = [str(parse_partition(text, ["REGION", "id", "ts", "s", "d"])) for text in options.partition_by]
    assert fields == ["REGION", "bucket(8, id)", "days(ts)", "truncate(4, s)", "months(d)"]


def test_flink_options_of_seed_002_parse_in_the_default_dialect() -> None:
    tree = parse(
        "CREATE TABLE t (k INT, g_1 INT, PRIMARY KEY (k) NOT ENFORCED) WITH ("
        "'merge-engine' = 'partial-update', 'fields.g_1,g_2.sequence-group' = 'a,b')"
    ).tree
    options = read_options(tree.args["properties"].expressions)
    assert options.properties == {"merge-engine": "partial-update", "fields.g_1,g_2.sequence-group": "a,b"}
    assert read_elements(tree.this.expressions, "spark").key == ["k"]


@pytest.mark.parametrize(
    "clause", ["CLUSTERED BY (a) INTO 3 BUCKETS", "PARTITIONED BY (upper(a))", "OPTIONS ('a'='b')"]
)
def test_table_clauses_without_a_meaning(clause: str) -> None:
    tree = parse(f"CREATE TABLE t (a INT) {clause}").tree
    with pytest.raises(TrinityError) as caught:
        read_options(tree.args["properties"].expressions)
    assert caught.value.code == "NOT_SUPPORTED"


KEYED = TableDefinition("s", "t", (Column("k", "int"), Column("d", "date"), Column("v", "int")), ("k", "d"))

PREDICATES = [
    ("SELECT * FROM t WHERE k = 5", "`k` = 5"),
    ("SELECT * FROM t WHERE (K >= 1 AND v = 2) AND (5 > k)", "`K` >= 1 AND 5 > `k`"),
    ("SELECT * FROM a.s.t AS x WHERE x.k IN (1, -2, 3) AND x.v = 1", "`k` IN (1, -2, 3)"),
    ("SELECT * FROM t WHERE d BETWEEN DATE '2020-01-01' AND DATE '2020-02-01'",
     "`d` BETWEEN CAST('2020-01-01' AS DATE) AND CAST('2020-02-01' AS DATE)"),
    ("SELECT * FROM t JOIN u ON t.k = u.k WHERE t.k = 5 AND k < 9", "`k` = 5"),
    ("SELECT * FROM t LEFT JOIN u ON t.k = u.k WHERE t.k = 5", "`k` = 5"),
    ("SELECT * FROM u JOIN t ON t.k = u.k WHERE t.k = 'a'", "`k` = 'a'"),
    ("SELECT * FROM x WHERE EXISTS (SELECT 1 FROM t WHERE t.k = 5 AND t.k = x.k)", "`k` = 5"),
    ("SELECT * FROM t WHERE k <> 5 AND k IS NOT NULL AND d IS NULL", "`k` <> 5 AND NOT `k` IS NULL AND `d` IS NULL"),
    ("SELECT * FROM t WHERE k <=> -(5)", "`k` IS NOT DISTINCT FROM -(5)"),
    ("SELECT * FROM t WHERE k = 5 OR k = 6", None),
    ("SELECT * FROM t WHERE v = 5", None),
    ("SELECT * FROM t WHERE NOT k = 5", None),
    ("SELECT * FROM t WHERE k = NULL", None),
    ("SELECT * FROM t WHERE k = v", None),
    ("SELECT * FROM t WHERE k = 1 + 1", None),
    ("SELECT * FROM t WHERE k NOT IN (1)", None),
    ("SELECT * FROM t WHERE k IN (SELECT 1)", None),
    ("SELECT * FROM t WHERE k = 'it\\'s'", None),
    ("SELECT * FROM t JOIN u ON t.k = u.k WHERE k = 5", None),
    ("SELECT * FROM u LEFT JOIN t ON t.k = u.k WHERE t.k = 5", None),
    ("SELECT * FROM t RIGHT JOIN u ON t.k = u.k WHERE t.k = 5", None),
    ("SELECT * FROM t FULL JOIN u ON t.k = u.k WHERE t.k = 5", None),
    ("SELECT * FROM u LEFT ANTI JOIN t ON t.k = u.k WHERE t.k = 5", None),
    ("SELECT * FROM t AS x(k, d, v) WHERE x.k = 5", None),
    ("SELECT * FROM t TABLESAMPLE (5 ROWS) WHERE k = 5", None),
    ("SELECT * FROM t PIVOT (sum(v) FOR k IN (1, 2)) WHERE d = '2020-01-01'", None),
    ("SELECT * FROM t LATERAL VIEW explode(array(1)) e AS k WHERE k = 5", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "pushed"), PREDICATES)
def test_key_predicates(text: str, pushed: str | None) -> None:
    node = next(n for n in parse(text).tree.find_all(exp.Table) if n.name == "t")
    found = key_predicate(node, KEYED)
    assert (found and found.sql(dialect="spark", identify=True)) == pushed


def test_nothing_goes_below_a_plain_table() -> None:
    plain = TableDefinition("s", "t", KEYED.columns)
    node = parse("SELECT * FROM t WHERE k = 5").tree.find(exp.Table)
    assert node is not None
    assert key_predicate(node, plain) is None


def test_partition_columns_of_a_plain_table_are_looked_at() -> None:
    plain = TableDefinition("s", "t", KEYED.columns, partition_by=("v", "days(d)"))
    node = parse("SELECT * FROM t WHERE k = 5 AND v = 3 AND d = DATE '2020-01-01'").tree.find(exp.Table)
    assert node is not None
    found = key_predicate(node, plain)
    assert found is not None
    assert found.sql(dialect="spark", identify=True) == "`v` = 3 AND `d` = CAST('2020-01-01' AS DATE)"


def test_time_travel_clauses_know_their_place() -> None:
    text = "SELECT * FROM t FOR SYSTEM_VERSION AS OF 3 AS x JOIN u TIMESTAMP AS OF now() - INTERVAL 1 DAY WHERE 1 = 1"
    places = [v.meta for v in parse(text).tree.find_all(exp.Version)]
    clauses = {text[p["start"] : p["end"] + 1] for p in places}
    assert clauses == {"FOR SYSTEM_VERSION AS OF 3", "TIMESTAMP AS OF now() - INTERVAL 1 DAY"}


@pytest.mark.parametrize("dialect", ["trino", "postgres", "duckdb"])
def test_a_sum_behind_a_join_of_texts_has_parentheses_in_spark(dialect: str) -> None:
    """Spark's || and + are of one level, from left to right; other dialects add first."""
    text = "SELECT '4' || 1 + 2 || (3 - 1) AS a, 1 + 2 || 'x' AS b"
    assert parse(text, dialect).to_spark().text == "SELECT '4' || (1 + 2) || (3 - 1) AS a, 1 + 2 || 'x' AS b"
    nested = parse("SELECT '4' || 1 + length('a' || 2 + 3) AS x", dialect).to_spark().text
    assert nested == "SELECT '4' || (1 + LENGTH('a' || (2 + 3))) AS x"


@pytest.mark.parametrize("dialect", ["trino", "duckdb"])
def test_a_backslash_in_a_pattern_stays_one_in_spark(dialect: str) -> None:
    """Without ESCAPE it is a character like others there; in Spark it escapes."""
    text = r"SELECT p LIKE 'C:\dir%' AS a, NOT p LIKE '%\_' AS b, p LIKE 'x\_' ESCAPE '\' AS c FROM t"
    [a, b, c] = parse(parse(text, dialect).to_spark().text).tree.expressions
    found = [next(node.find_all(exp.Like)).expression.name for node in (a, b, c)]
    assert found == [r"C:\\dir%", r"%\\_", r"x\_"]


def test_with_queries_of_one_name_stay_where_they_are() -> None:
    text = "SELECT (WITH c AS (SELECT 1 AS y) SELECT y FROM c), (WITH c AS (SELECT 2 AS y) SELECT y FROM c)"
    assert parse(text, "trino").to_spark().text == text
