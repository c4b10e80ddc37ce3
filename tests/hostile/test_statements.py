"""Hostile statements: each succeeds, or is refused by a TrinityError and changes no table (N2)."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import trinity
from tests.hostile.grammar import DIALECTS, statements, texts
from trinity import Session, TrinityError
from trinity.syntax.parameters import literal, with_literals
from trinity.syntax.parse import parse

pytestmark = pytest.mark.inner

FEW: Final = 20
MANY: Final = int(os.environ.get("HOSTILE_EXAMPLES", "3000"))
LONGEST: Final = 2000
"""The most characters of a message: names of 255 characters are shown whole."""
RAW: Final = ("Traceback", "py4j", "Py4J", "JVM stacktrace", "\tat ", "org.apache.")
TABLES: Final = {
    "t": "CREATE TABLE parquet.default.t (id INT, v STRING, n DOUBLE)",
    "k": "CREATE TABLE parquet.default.k (id INT, v STRING DEFAULT 'new', n DOUBLE CHECK (n > 0), PRIMARY KEY (id))",
}
FOUND: Final = (
    ("CREATE TEMPORARY VIEW x AS SELECT map(v), 1", "spark"),
    ("UPDATE t SET v = map(v)", "spark"),
    ("CREATE TABLE x (v STRING DEFAULT map(1))", "spark"),
    ("ALTER TABLE t ADD CONSTRAINT x CHECK (map(1))", "spark"),
    ("SELECT t -> t", "spark"),
    ("SELECT 1 WHERE x -> x", "spark"),
    ("DELETE FROM t WHERE id -> id", "spark"),
)
"""(statement, dialect) that once ended in another error."""


@pytest.fixture(scope="module")
def hostile(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Yield a session over a Spark session with its own settings and views."""
    with trinity.connect(tmp_path_factory.mktemp("hostile"), spark=spark.newSession()) as session:
        yield session


def state(session: Session) -> Mapping[str, tuple[int, object]]:
    """Return table -> (version, definition) of all tables."""
    found: dict[str, tuple[int, object]] = {}
    for catalog in ("parquet", "delta", "iceberg"):
        for schema in session.connector(catalog).metadata.list_schemas():
            for name in session.list_tables(catalog, schema):
                splits = session.table(trinity.TableName(catalog, schema, name)).splits()
                found[f"{catalog}.{schema}.{name}"] = splits.version, splits.definition
    return found


def check(session: Session, text: str, dialect: str) -> None:
    for name, made in TABLES.items():
        if session.find_table(session.table_name(["parquet", "default", name])) is None:
            session.sql(made)
            session.sql(f"INSERT INTO parquet.default.{name} VALUES (1, 'a', 1), (2, 'b', 2)")
    session.use("parquet", "default")
    before = state(session)
    if (refusal := refused_with(session, text, dialect)) is not None:
        assert len(refusal) <= LONGEST, refusal[:LONGEST]
        assert [word for word in RAW if word in refusal and word not in text] == [], refusal
        assert state(session) == before


def refused_with(session: Session, text: str, dialect: str) -> str | None:
    try:
        session.sql(text, dialect=dialect)
    except TrinityError as error:
        return error.message
    return None


def examples(count: int) -> settings:
    """Return Hypothesis settings for a fixed number of reproducible examples; one that takes two minutes hangs."""
    return settings(
        max_examples=count,
        derandomize=count == FEW,
        deadline=dt.timedelta(minutes=2),
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@pytest.mark.parametrize(("text", "dialect"), FOUND)
def test_statements_that_were_raw_once(hostile: Session, text: str, dialect: str) -> None:
    check(hostile, text, dialect)


@examples(FEW)
@given(statements(), st.sampled_from(DIALECTS))
def test_n2_statements(hostile: Session, text: str, dialect: str) -> None:
    check(hostile, text, dialect)


@pytest.mark.full
@examples(MANY)
@given(statements(), st.sampled_from(DIALECTS))
def test_n2_many_statements(hostile: Session, text: str, dialect: str) -> None:
    check(hostile, text, dialect)


VALUES: Final = st.one_of(
    texts(),
    st.text(max_size=8).filter(lambda text: not any("\ud800" <= c <= "\udfff" for c in text)),
    st.integers(-(2**63) + 1, 2**63 - 1),
    st.booleans(),
    st.none(),
    st.binary(max_size=8),
    st.dates(),
    st.datetimes(),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12, places=4),
)


def stored(spark: SparkSession, text: str) -> Any:
    """Return the class and value of an expression that Spark's parser has parsed."""
    tree = spark._jsparkSession.sessionState().sqlParser().parseExpression(text)
    return tree.getClass().getSimpleName(), str(tree.value()) if tree.getClass().getSimpleName() == "Literal" else None


@settings(max_examples=300, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(texts() | st.text(max_size=8).filter(lambda text: not any("\ud800" <= c <= "\udfff" for c in text)))
def test_n2_a_text_is_one_literal_of_its_own_value(hostile: Session, value: str) -> None:
    """This holds for bound parameters, and for statements that a rewriter prints again."""
    bound = with_literals("SELECT ?", (value,))
    written = parse(bound).tree.expressions[0].sql(dialect="spark")
    for text in (literal(value), written):
        assert stored(hostile.spark, text) == ("Literal", value), text


def test_n2_parameters_are_values(hostile: Session) -> None:
    """A query with many drawn parameters returns them."""
    drawn: list[Any] = []

    @settings(max_examples=300, derandomize=True, deadline=None, database=None)
    @given(VALUES)
    def draw(value: object) -> None:
        drawn.append(value)

    draw()
    row = hostile.sql(with_literals("SELECT " + ", ".join("?" for _ in drawn), drawn)).toArrow()
    for value, column in zip(drawn, row.columns, strict=True):
        found = column[0].as_py()
        assert found == value or (isinstance(value, Decimal) and Decimal(found) == value), (value, found)
