"""A grammar of hostile statements: names, literals, options and clauses, put together, then damaged."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

Text = SearchStrategy[str]

DIALECTS: Final = ("spark", "spark", "spark", "trino", "postgres", "duckdb")
_ODD: Final = "`'\"\\$.{}/;-* \x00\n\r\t()[]<>?:@#%&|,=+~^ſıé漢😀"
_SHELL: Final = (
    "${env:HOME}",
    "${spark.app.name}",
    "../x",
    "a/b",
    "x') OR (1 = 1",
    "--",
    "/*",
    "*/",
    "x" * 255,
    "x" * 300,
)


def texts() -> Text:
    """Return a strategy for any text, and for known attacks."""
    return st.one_of(st.sampled_from(_SHELL), st.text(_ODD, max_size=6), st.text(max_size=4).filter(_encodable))


def _encodable(text: str) -> bool:
    return not any("\ud800" <= c <= "\udfff" for c in text)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _some(*choices: str) -> Text:
    return st.sampled_from(choices)


def _joined(*parts: Text | str) -> Text:
    found = [st.just(part) if isinstance(part, str) else part for part in parts]
    return st.tuples(*found).map(" ".join)


def _maybe(part: Text) -> Text:
    return st.one_of(st.just(""), part)


def _listed(part: Text, least: int = 1) -> Text:
    return st.lists(part, min_size=least, max_size=3).map(", ".join)


NAMES: Final = st.one_of(
    _some("t", "k", "id", "v", "n", "T", "nope", "_trinity_x", "select", "default", "text", "1a"), texts().map(_quoted)
)
TABLES: Final = st.one_of(
    _some("t", "k", "t", "k", "nope", "default.t", "parquet.default.k", "nope.t", "a.b.c.d", "text.`/x`", "delta.`/x`"),
    NAMES,
    st.lists(NAMES, min_size=1, max_size=4).map(".".join),
)
TYPES: Final = _some(
    "INT", "BIGINT", "STRING", "VARCHAR(3)", "CHAR(0)", "DECIMAL(39, 2)", "DECIMAL(5,9)", "ARRAY<INT>", "VARCHAR",
    "MAP<STRING, INT>", "STRUCT<a: INT>", "STRING COLLATE nope", "INTERVAL DAY", "VARIANT", "TIME(9)", "nope", "FLOAT",
    "TIMESTAMP", "INT(", "VOID", "DATE", "BINARY", "DOUBLE", "BOOLEAN",
)  # fmt: skip
LITERALS: Final = st.one_of(
    _some(
        "1", "-1", "0", "NULL", "TRUE", "1e400", "1.5", "9223372036854775808", "DATE '0000-00-00'", "X'0g'", "X'00'",
        "''", "TIMESTAMP 'x'", "INTERVAL '1' DAY", "INTERVAL 'x' NOPE", "'a' 'b'", "r'\\'", "1L", "1BD", "$$x$$",
    ),
    texts().map(lambda text: "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"),
    st.integers().map(str),
)  # fmt: skip
_FUNCTIONS: Final = _some(
    "upper", "abs", "count", "sum", "coalesce", "rand", "uuid", "raise_error", "reflect", "java_method", "explode",
    "array", "map", "named_struct", "nope", "t.nope", "row_number", "input_file_name", "IDENTIFIER", "current_user",
    "concat", "from_json", "transform",
)  # fmt: skip
_OPERATORS: Final = _some(
    "+", "=", "<>", "<=>", "AND", "OR", "||", "LIKE", "IS DISTINCT FROM", "%", "::", "->", "=>", "IN", "/"
)


def _larger(inner: Text) -> Text:
    return st.one_of(
        _joined(inner, _OPERATORS, inner),
        st.tuples(_FUNCTIONS, _listed(inner, 0)).map(lambda call: f"{call[0]}({call[1]})"),
        _joined("CASE WHEN", inner, "THEN", inner, "END"),
        st.tuples(inner, TYPES).map(lambda cast: f"CAST({cast[0]} AS {cast[1]})"),
        inner.map(lambda text: f"({text})"),
        _joined(
            inner, _some("IS NULL", "COLLATE nope", "OVER ()", "NOT", "BETWEEN 1 AND", "IN ()", "ESCAPE 'xx'", "[0]")
        ),
        _joined(_some("EXISTS", "1 IN", "NOT", "1 = ANY", ""), "( SELECT", inner, "FROM", TABLES, ")"),
    )


EXPRESSIONS: Final = st.recursive(
    st.one_of(NAMES, LITERALS, _some("?", ":x", "*", "t.*", "DEFAULT", "t.id", "s.id", "")), _larger, max_leaves=4
)
_OPTIONS: Final = st.tuples(
    st.one_of(
        _some(
            "'watermark-key'", "'merge-engine'", "'buckets'", "'tombstone-key'", "'sequence.field'", "'nope'",
            "'fields.v.aggregate-function'", "'rowkind.field'", "'primary-key'", "'delta.appendOnly'",
        ),
        texts().map(lambda text: "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"),
    ),
    st.one_of(LITERALS, _some("'id'", "'v,n'", "'partial-update'", "'0'", "'-1'", "'sum'")),
).map(" = ".join)  # fmt: skip
_COLUMN: Final = _joined(
    NAMES, TYPES, _maybe(_some("NOT NULL", "PRIMARY KEY", "COMMENT 'x'", "UNIQUE")),
    _maybe(_joined(_some("DEFAULT", "DEFAULT", "COMMENT", "GENERATED ALWAYS AS"), EXPRESSIONS)),
    _maybe(EXPRESSIONS.map(lambda text: f"CHECK ({text})")),
)  # fmt: skip
_COLUMNS: Final = st.one_of(st.just("id INT, v STRING"), _listed(_COLUMN))
_QUERY: Final = st.one_of(
    _joined("SELECT", _listed(EXPRESSIONS)),
    _joined("SELECT", _listed(EXPRESSIONS), "FROM", TABLES, _maybe(_joined("WHERE", EXPRESSIONS))),
    _joined(
        "SELECT * FROM", TABLES, _some("VERSION AS OF", "TIMESTAMP AS OF", "TABLESAMPLE", "JOIN", "AS"), EXPRESSIONS
    ),
    _joined("WITH", NAMES, "AS ( SELECT 1 AS id ) SELECT * FROM", TABLES),
    _joined("VALUES (", _listed(EXPRESSIONS), ")"),
    _joined("TABLE", TABLES),
    _joined("FROM", TABLES, _maybe(_joined("|> WHERE", EXPRESSIONS))),
)
_WHERE: Final = _maybe(_joined("WHERE", EXPRESSIONS))
_SET: Final = _listed(_joined(NAMES, "=", EXPRESSIONS))
_WHEN: Final = _joined(
    "WHEN", _some("MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"), _maybe(_joined("AND", EXPRESSIONS)), "THEN",
    st.one_of(_some("DELETE", "DO NOTHING", "INSERT *", "UPDATE SET *"), _joined("UPDATE SET", _SET)),
)  # fmt: skip
_ACTIONS: Final = st.one_of(
    _joined("ADD COLUMN", _COLUMN),
    _joined("DROP COLUMN", NAMES),
    _joined("RENAME COLUMN", NAMES, "TO", NAMES),
    _joined("ALTER COLUMN", NAMES, _some("TYPE", "SET DEFAULT", "COMMENT", "AFTER"), st.one_of(TYPES, EXPRESSIONS)),
    _joined("ALTER COLUMN", NAMES, _some("SET NOT NULL", "DROP NOT NULL", "FIRST", "")),
    _joined("ADD CONSTRAINT", NAMES, "CHECK (", EXPRESSIONS, ")"),
    _joined("SET TBLPROPERTIES (", _OPTIONS, ")"),
    _joined(_some("RENAME TO", "DROP CONSTRAINT", "SET LOCATION", ""), NAMES),
)
_CHANGES: Final = st.one_of(
    _joined("INSERT INTO", TABLES, _maybe(_joined("(", _listed(NAMES), ")")), _QUERY),
    _joined("UPDATE", TABLES, "SET", _SET, _WHERE),
    _joined("DELETE FROM", TABLES, _WHERE),
    _joined("MERGE INTO", TABLES, "USING", TABLES, "AS s ON", EXPRESSIONS, _WHEN, _maybe(_WHEN)),
    _joined(_some("TRUNCATE TABLE", "INSERT OVERWRITE", "REPLACE INTO"), TABLES),
)
_DEFINITIONS: Final = st.one_of(
    _joined(
        "CREATE TABLE", TABLES, "(", _COLUMNS, ")", _maybe(_some("USING delta", "USING nope", "LOCATION '/nope'")),
        _maybe(_joined("PARTITIONED BY (", EXPRESSIONS, ")")),
        _maybe(_joined("TBLPROPERTIES (", _listed(_OPTIONS), ")")),
    ),
    _joined("CREATE TABLE", TABLES, "AS", _QUERY),
    _joined("ALTER TABLE", TABLES, _ACTIONS),
    _joined(
        "CREATE", _some("TEMPORARY VIEW", "OR REPLACE TEMP VIEW", "VIEW", "SCHEMA", "FUNCTION", "INDEX"), NAMES,
        _maybe(_joined("AS", _QUERY)),
    ),
    _joined("DROP", _some("TABLE", "TABLE IF EXISTS", "VIEW", "SCHEMA", "FUNCTION"), _some("nope", "a.b", "`a/b`")),
)  # fmt: skip
_OTHERS: Final = st.one_of(
    _joined(_some("SHOW", "DESCRIBE", "USE", "SHOW CREATE TABLE", "DESCRIBE HISTORY", "SHOW COLUMNS IN"), TABLES),
    _joined(
        _some("SHOW TABLES IN", "SHOW TBLPROPERTIES", "SHOW PARTITIONS", "COMMENT ON TABLE", "REFRESH TABLE"), TABLES
    ),
    _joined("EXPLAIN", st.one_of(_QUERY, _CHANGES)),
    _joined("SET spark.sql.nope.x =", LITERALS),
    _joined(
        _some("ADD JAR", "ADD FILE", "LOAD DATA INPATH", "CALL", "EXECUTE IMMEDIATE", "BEGIN", "GRANT", "VACUUM"),
        LITERALS,
    ),
    _joined("CACHE TABLE", NAMES, _maybe(_joined("AS", _QUERY))),
)


@st.composite
def statements(draw: st.DrawFn) -> str:
    """Draw one statement, with random edits."""
    text = draw(st.one_of(_QUERY, _CHANGES, _DEFINITIONS, _OTHERS))
    for _ in range(draw(_TIMES)):
        at = draw(st.integers(0, len(text)))
        put = draw(st.one_of(_some("", "(", ")", "'", "`", "--", "/*", ";", " "), st.text(_ODD, max_size=2)))
        text = text[:at] + put + text[at + draw(st.integers(0, 4)) :]
    return text


_TIMES: Final = st.sampled_from((0, 0, 0, 1, 2))
