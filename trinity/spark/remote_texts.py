"""Checks of SQL texts over Spark Connect, which does not show how Spark parses them: uncertain texts are refused (N2).

The text itself is searched, since another parser might read it differently from Spark. So a name before a parenthesis
counts as a function anywhere, even within a literal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from trinity.depth import deep_recursion
from trinity.errors import TrinityError
from trinity.messages import shown_value
from trinity.syntax.parse import expression_or_none

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EXPLAIN: Final = re.compile(r"\s*explain\s+(?:(?:extended|codegen|cost|formatted)\s+)?", re.IGNORECASE)
_SHOW: Final = re.compile(r"\s*(?:show|describe\s+function|desc\s+function)\s", re.IGNORECASE)
_SET: Final = re.compile(r"\s*set\s+([\w.]+)\s*=[^;]*", re.IGNORECASE)
CALLED: Final = re.compile(r"([\w.`]+)\s*\(")
"""A name that may be a function's."""
COMMENT: Final = re.compile(r"--|/\*")
_SUBQUERY: Final = re.compile(r"\b(?:select|from|values|table)\b", re.IGNORECASE)
_WORDS: Final = frozenset({
    "all", "and", "any", "as", "between", "by", "case", "cast", "distinct", "div", "else", "end", "escape", "exists",
    "filter", "group", "ilike", "in", "is", "like", "not", "null", "on", "or", "over", "regexp", "rlike", "some",
    "then", "try_cast", "when", "within",
})  # fmt: skip
"""Words of SQL that may stand before a parenthesis and are no functions."""
_TYPES: Final = frozenset({"char", "dec", "decimal", "numeric", "time", "varchar"})
_VARYING: Final = frozenset({
    "input_file_block_length", "input_file_block_start", "input_file_name", "monotonically_increasing_id", "rand",
    "randn", "random", "randstr", "shuffle", "spark_partition_id", "uniform", "uuid",
})  # fmt: skip
"""Functions of Spark that do not give the same answer each time."""
_NAME: Final = re.compile(r"\w+")
_CLASS: Final = "Class: org.apache.spark.sql.catalyst.expressions."
"""The beginning of a line that DESCRIBE FUNCTION shows for Spark's own functions only, not for one that hides them."""


@dataclass(frozen=True)
class RemoteExpression:
    """An expression, judged by its text. A text that is not certainly one expression raises SYNTAX_ERROR."""

    text: str

    def __post_init__(self) -> None:
        tree = _tree(self.text)
        if isinstance(tree, (exp.Query, exp.Alias, exp.Aliases, exp.Star, exp.DDL, exp.Command, exp.Tuple)):
            tree = None
        if not isinstance(tree, exp.Condition):
            raise TrinityError("SYNTAX_ERROR", "Only Spark's own parser can tell whether it is one expression.")

    def has_subquery(self) -> bool:
        """Return True when the expression may have a subquery."""
        return bool(_SUBQUERY.search(self.text))

    def may_hide_parts(self) -> bool:
        """Return True when a comment, or text that looks like one, may hide a part of the expression."""
        return bool(COMMENT.search(self.text))

    def makes_names(self) -> bool:
        """Return True when the expression may make a name out of text."""
        return "identifier" in self.functions()

    def functions(self) -> Iterator[str]:
        """Yield the names of functions that the expression may call."""
        yield from _called(self.text)


@deep_recursion()
def _tree(text: str) -> exp.Expr | None:
    return expression_or_none(text)


def _called(text: str) -> Iterator[str]:
    for name in dict.fromkeys(CALLED.findall(text)):
        plain = name.replace("`", "").lower()
        if plain not in _WORDS and plain not in _TYPES:
            yield plain


def varies(text: str) -> bool:
    """Return True when an expression may give another answer each time."""
    return any(name in _VARYING for name in _called(text))


def several_rows(spark: SparkSession, text: str) -> bool:
    """Return True when an expression concerns more than one row: an aggregate, a window function, a generator.

    Raises:
        PySparkException: Spark's error in the expression.
    """
    query = f"SELECT (\n{text}\n)"
    _ = spark.sql(query).schema  # raises errors, which EXPLAIN would only put into its answer
    plan = str(spark.sql(f"EXPLAIN EXTENDED {query}").collect()[0][0])
    analysed = plan.partition("== Analyzed Logical Plan ==")[2].partition("\n\n== ")[0].strip().splitlines()
    return len(analysed) != 3 or not analysed[1].startswith("Project ") or "OneRowRelation" not in analysed[2]


def is_own_function(spark: SparkSession, name: str) -> bool:
    """Return True for the name of a function of Spark's own that no other function of the session hides."""
    from trinity.calls import quiet
    from trinity.spark_names import PySparkException

    if not _NAME.fullmatch(name):
        return False
    try:
        with quiet():
            lines = [str(row[0]) for row in spark.sql(f"DESCRIBE FUNCTION `{name}`").collect()]
    except PySparkException:
        return False
    return any(line.startswith(_CLASS) for line in lines)


def plain_command(text: str, setting: re.Pattern[str]) -> tuple[bool, str]:
    """Return whether a statement is a command that reaches nothing, and the statement to judge otherwise.

    That is the statement within an EXPLAIN, or else the statement itself. ``setting`` matches the names of settings
    that SET may change.
    """
    if _SHOW.match(text):
        return True, text
    if (found := _SET.fullmatch(text)) is not None and setting.fullmatch(found[1].lower()):
        return True, text
    begun = _EXPLAIN.match(text)
    return False, text[begun.end() :] if begun else text


def unseen(text: str) -> str:
    """Return the beginning of the message that refuses a text."""
    return f"Over Spark Connect nobody sees that '{shown_value(text.strip())}' reaches neither code nor files"
