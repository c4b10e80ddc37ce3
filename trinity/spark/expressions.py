"""Checks of expressions given as text: each is one expression, and a stored one uses Spark's own functions only (N2).

A DEFAULT or a CHECK runs whenever rows are written, whoever writes them, and another engine may have put it into the
table. So it is checked when it is defined and before it is used, by Spark's rules for a column's default.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol

from sqlglot import exp

from trinity.errors import TrinityError
from trinity.messages import shown_value
from trinity.spark.reach import FUNCTIONS, elements
from trinity.spark.remote import analysed, is_remote
from trinity.spark.remote_texts import CALLED, COMMENT, RemoteExpression, is_own_function, several_rows, varies
from trinity.storage import Cache
from trinity.syntax.parse import expression_or_none

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_REMEMBERED: Final = 1000
_judged: Final[Cache[str, None]] = Cache(_REMEMBERED)
"""Texts that may be stored."""
_constant: Final[Cache[str, None]] = Cache(_REMEMBERED)
"""Texts that may be a DEFAULT."""
_NOW: Final = frozenset({
    "current_catalog", "current_database", "current_date", "current_schema", "current_time", "current_timestamp",
    "current_user", "localtime", "localtimestamp", "session_user", "user",
})  # fmt: skip
"""Functions without parentheses: Spark parses them as names, and finds later that there is no such column."""


class Parsed(Protocol):
    """The facts about an expression that the checks need."""

    def has_subquery(self) -> bool:
        """Return True when the expression has a subquery."""

    def may_hide_parts(self) -> bool:
        """Return True when a comment may hide a part of the expression."""

    def makes_names(self) -> bool:
        """Return True when the expression makes a name out of text, by ``IDENTIFIER(...)``."""

    def functions(self) -> Iterator[str]:
        """Yield the names of the functions that the expression calls."""


def one_expression(spark: SparkSession, text: str, what: str) -> Parsed:
    """Return an expression as Spark parses it.

    Args:
        spark: the session.
        text: the expression.
        what: the expression's purpose, as the beginning of a message.

    Raises:
        TrinityError: SYNTAX_ERROR for anything but one expression: none, several, one with an alias.
    """
    from py4j.protocol import Py4JJavaError

    from trinity.calls import spark_errors

    try:
        with spark_errors():
            return RemoteExpression(text) if is_remote(spark) else _ParsedBySpark(spark, text)
    except (TrinityError, Py4JJavaError) as error:
        if isinstance(error, TrinityError) and error.code != "SYNTAX_ERROR":  # nested too deeply
            raise
        reason = error.message if isinstance(error, TrinityError) else "Spark cannot parse it."
        raise TrinityError(
            "SYNTAX_ERROR", f"{what}: '{shown_value(text.strip())}' is no expression. {reason}"
        ) from error


class _ParsedBySpark:
    """An expression that Spark's parser has parsed."""

    def __init__(self, spark: SparkSession, text: str) -> None:
        self._jvm: Any = spark._jvm
        session: Any = spark._jsparkSession
        self._tree = session.sessionState().sqlParser().parseExpression(text)
        if self._tree.getClass().getSimpleName() in ("Alias", "MultiAlias", "UnresolvedStar"):
            raise TrinityError("SYNTAX_ERROR", "It names columns; give one expression.")

    def has_subquery(self) -> bool:
        patterns = self._jvm.org.apache.spark.sql.catalyst.trees.TreePattern
        return bool(self._tree.containsPattern(patterns.PLAN_EXPRESSION()))

    def may_hide_parts(self) -> bool:
        return False  # Spark's parser has removed the comments

    def makes_names(self) -> bool:
        return any(kind == "ExpressionWithUnresolvedIdentifier" for kind, _ in self._nodes())

    def functions(self) -> Iterator[str]:
        for kind, node in self._nodes():
            if kind == "UnresolvedFunction":
                yield ".".join(str(part) for part in elements(node.nameParts()))

    def _nodes(self) -> Iterator[tuple[str, Any]]:
        waiting = [self._tree]
        while waiting:
            node = waiting.pop()
            yield str(node.getClass().getSimpleName()), node
            waiting += elements(node.children())


def refuse_subquery(parsed: Parsed, text: str, what: str) -> None:
    """Raise NOT_SUPPORTED for an expression with a subquery."""
    if parsed.has_subquery():
        raise _refusal(what, text, "has a subquery")


def check_stored(spark: SparkSession, text: str, what: str) -> None:
    """Refuse an expression that may not be stored with a table. ``what`` is its purpose, as a message begins.

    Raises:
        TrinityError: NOT_SUPPORTED for a subquery, reflection, files, and functions that are not Spark's own;
            SYNTAX_ERROR as :func:`one_expression`.
    """
    _judged.get(text, lambda: _judge(spark, text, what))


def _judge(spark: SparkSession, text: str, what: str) -> None:
    parsed = one_expression(spark, text, what)
    refuse_subquery(parsed, text, what)
    if COMMENT.search(text) or not all(_is_own(spark, name) for name in set(CALLED.findall(text))):
        _check_functions(spark, parsed, text, what)


def check_constant(spark: SparkSession, text: str, what: str) -> None:
    """Refuse an expression that may not be a DEFAULT. The arguments are those of :func:`check_stored`.

    Raises:
        TrinityError: NOT_SUPPORTED unless it yields the same single value for each row of a statement, and as
            :func:`check_stored`; COLUMN_NOT_FOUND, TYPE_MISMATCH, ... if Spark cannot resolve it.
    """
    _constant.get(text, lambda: _judge_constant(spark, text, what))


def _judge_constant(spark: SparkSession, text: str, what: str) -> None:
    from trinity.calls import spark_errors

    check_stored(spark, text, what)
    tree = expression_or_none(text)
    for name in {column.name for column in tree.find_all(exp.Column)} if tree is not None else ():
        if name.lower() not in _NOW:
            raise _refusal(what, text, f"names '{name}', but belongs to no row")
    with spark_errors():
        row = analysed(spark.sql(f"SELECT (\n{text}\n)"))
        if not is_deterministic(row, text):
            raise _refusal(what, text, "does not give the same answer each time")
        if _several_rows(row, text):
            raise _refusal(what, text, "depends on several rows")


def is_deterministic(rows: DataFrame, text: str) -> bool:
    """Return True when a frame gives the same answer each time; ``text`` is the expression that it was made from."""
    if is_remote(rows):
        return not varies(text)
    made: Any = rows
    same: bool = made._jdf.queryExecution().analyzed().deterministic()
    return same


def _several_rows(row: DataFrame, text: str) -> bool:
    if is_remote(row):
        return several_rows(row.sparkSession, text)
    made: Any = row
    plan = made._jdf.queryExecution().analyzed()
    kinds = [str(node.getClass().getSimpleName()) for node in (plan, *elements(plan.children()))]
    return kinds != ["Project", "OneRowRelation"]


def _check_functions(spark: SparkSession, parsed: Parsed, text: str, what: str) -> None:
    if parsed.may_hide_parts():
        raise _refusal(what, text, "has a comment (-- or /*), and over Spark Connect nobody sees where that ends")
    if parsed.makes_names():
        raise _refusal(what, text, "makes a name out of text")
    for name in parsed.functions():
        if name.lower() in FUNCTIONS:
            raise _refusal(what, text, f"calls {name}(), which {FUNCTIONS[name.lower()]}")
        if not _is_own(spark, name):
            raise _refusal(what, text, f"calls {name}(), which is no function of Spark's own")


def _is_own(spark: SparkSession, name: str) -> bool:
    """Return True for the name of a function of Spark's own that reaches nothing beyond its arguments."""
    if name.lower() in FUNCTIONS:
        return False
    if is_remote(spark):
        return is_own_function(spark, name.replace("`", ""))
    known = spark._jsparkSession.sessionState().functionRegistry()
    identifier = spark._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier  # type: ignore[union-attr]
    found = known.lookupFunction(identifier(name))
    return bool(found.isDefined() and found.get().getSource() == "built-in")


def _refusal(what: str, text: str, why: str) -> TrinityError:
    return TrinityError(
        "NOT_SUPPORTED",
        f"{what}: '{shown_value(text.strip())}' {why}; a constant or Spark's own functions of the row's columns can "
        "stand there.",
    )
