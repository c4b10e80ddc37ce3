"""The text of an expression is parsed once, however many use it, and its tree is never modified."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.parser import Parser

from tests.support.counting import counted
from trinity import Column, Session, Table
from trinity.syntax.parse import expression_tree

pytestmark = pytest.mark.inner

ROWS = pa.table({"k": [1, 2, 3], "v": ["a", "b", "c"], "n": [1, 2, 3]})


@pytest.fixture
def table(local: Session) -> Table:
    columns = [Column("k", "int"), Column("v", "string"), Column("n", "int")]
    table = local.create_table("parquet.default.t", columns, primary_key=["k"])
    table.upsert(ROWS)
    return table


@pytest.fixture
def read() -> Iterator[Counter[str]]:
    """Count the texts that SQL's lexer reads."""
    with counted(Dialect, "tokenize", by=lambda dialect, text, *_: text) as texts:
        yield texts


@pytest.fixture
def parsed() -> Iterator[Counter[tuple[tuple[str, int], ...]]]:
    """Count the token sequences that are parsed as expressions."""

    def sequence(parser: Parser, kind: Any, tokens: Any, *_: Any) -> tuple[tuple[str, int], ...]:
        return tuple((token.text, token.start) for token in tokens)

    with counted(Parser, "parse_into", by=sequence) as sequences:
        yield sequences


def update(table: Table) -> None:
    table.update("k = 2 AND n + 10 > 11", {"v": "concat(v, '?')"})


def delete(table: Table) -> None:
    table.delete("k IN (1, 3) AND n * 3 > 3")


def merge(table: Table) -> None:
    on = "t.k = s.k AND t.n < s.n + 70"
    merging = table.merge(ROWS.slice(0, 1), on).when_matched_update({"n": "t.n + s.n + 80"})
    merging.when_not_matched_insert({"k": "s.k + 90", "v": "upper(s.v)", "n": "s.n + 100"}).execute()


def of_long_texts(table: Table) -> None:
    """Texts that nothing remembers, so that whoever needs a tree has to be given it."""
    keys, values = ", ".join(["2"] * 1_000), ", ".join(["v"] * 1_000)
    table.update(f"k IN ({keys}) AND n + 10 > 11", {"v": f"concat({values})"})


@pytest.mark.parametrize("change", [update, delete, merge, of_long_texts])
def test_a_text_of_a_change_is_read_once(table: Table, read: Counter[str], change: Callable[[Table], None]) -> None:
    change(table)
    assert read
    assert {text: count for text, count in read.items() if count > 1} == {}
    for text in list(read):
        tree = expression_tree(text)
        assert tree.parent is None
        assert shape(tree) == shape(expression_tree(f"{text} ")), text  # another text: parsed anew


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {t} SET v = concat(v, '?'), n = n + 5 WHERE k = 2 AND n + 10 > 11",
        "DELETE FROM {t} WHERE k IN (1, 3) AND n * 3 > 3",
        """MERGE INTO {t} AS t USING (SELECT 1 AS k, 'x' AS v, 5 AS n) AS s ON t.k = s.k AND t.n < s.n + 70
        WHEN MATCHED AND t.v <> s.v THEN UPDATE SET v = concat(s.v, t.v), n = t.n + 1
        WHEN NOT MATCHED THEN INSERT (k, v, n) VALUES (s.k + 90, upper(s.v), s.n + 100)""",
    ],
)
def test_a_statement_is_read_once_and_its_expressions_too(
    table: Table, read: Counter[str], parsed: Counter[tuple[tuple[str, int], ...]], statement: str
) -> None:
    table.session.sql(statement.format(t=table.name))
    assert read
    assert parsed
    assert [text for text, count in read.items() if count > 1] == []
    assert [tokens for tokens, count in parsed.items() if count > 1] == []


def shape(tree: exp.Expr) -> list[tuple[str, str]]:
    """Return each node with the type of its parent."""
    return [(repr(node), repr(node.parent and type(node.parent))) for node in tree.walk()]
