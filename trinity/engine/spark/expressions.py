"""Expressions that come as text: each is one expression, and one that is stored with a table is Spark's alone (N2).

A DEFAULT or a CHECK runs whenever rows are written, whoever writes them, and another engine may have put it into the
table. So it is judged as it is defined and before it is used, by the rules that Spark has for a column's default.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from trinity.engine.spark.reach import FUNCTIONS, elements
from trinity.errors import TrinityError
from trinity.messages import shown_value
from trinity.spark_tree import spark_tree
from trinity.storage import Cache

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_constant", "check_stored", "one_expression", "refuse_subquery"]

_REMEMBERED: Final = 1000
_judged: Final[Cache[str, None]] = Cache(_REMEMBERED)
"""Texts that may be stored."""
_constant: Final[Cache[str, None]] = Cache(_REMEMBERED)
"""Texts that may be a DEFAULT."""
_CALLED: Final = re.compile(r"([\w.`]+)\s*\(")
"""A name that may be a function's: Spark's parser is asked about one that is not Spark's own."""
_COMMENT: Final = re.compile(r"--|/\*")
_NOW: Final = frozenset({
    "current_catalog", "current_database", "current_date", "current_schema", "current_time", "current_timestamp",
    "current_user", "localtime", "localtimestamp", "session_user", "user",
})  # fmt: skip
"""Words that Spark takes for names until it finds no such column."""


def one_expression(spark: SparkSession, text: str, what: str) -> Any:
    """The text as Spark parses it.

    Args:
        spark: the session.
        text: the expression.
        what: what it is, for messages.

    Raises:
        TrinityError: SYNTAX_ERROR for anything else than one expression: none, several, one with a name of its own.
    """
    from py4j.protocol import Py4JJavaError

    from trinity.calls.spark import spark_errors

    try:
        with spark_errors():
            tree = spark._jsparkSession.sessionState().sqlParser().parseExpression(text)
    except (TrinityError, Py4JJavaError) as error:
        if isinstance(error, TrinityError) and error.code != "SYNTAX_ERROR":  # nested too deeply
            raise
        said = error.message if isinstance(error, TrinityError) else "Spark cannot parse it."
        raise TrinityError("SYNTAX_ERROR", f"{what}: '{shown_value(text.strip())}' is no expression. {said}") from error
    if tree.getClass().getSimpleName() in ("Alias", "MultiAlias", "UnresolvedStar"):
        raise TrinityError("SYNTAX_ERROR", f"{what}: '{shown_value(text.strip())}' names columns; give one expression.")
    return tree


def refuse_subquery(spark: SparkSession, tree: Any, text: str, what: str) -> None:
    """Raises NOT_SUPPORTED for a parsed expression that holds a subquery."""
    patterns = spark._jvm.org.apache.spark.sql.catalyst.trees.TreePattern  # type: ignore[union-attr]
    if tree.containsPattern(patterns.PLAN_EXPRESSION()):
        raise _refusal(what, text, "has a subquery")


def check_stored(spark: SparkSession, text: str, what: str) -> None:
    """Refuses an expression that no table may keep.

    Args:
        spark: the session, whose functions are asked.
        text: the expression.
        what: what it is, for messages.

    Raises:
        TrinityError: NOT_SUPPORTED for a subquery, reflection, files, and functions that are not Spark's own;
            SYNTAX_ERROR as :func:`one_expression`.
    """
    _judged.get(text, lambda: _judge(spark, text, what))


def _judge(spark: SparkSession, text: str, what: str) -> None:
    tree = one_expression(spark, text, what)
    refuse_subquery(spark, tree, text, what)
    if _COMMENT.search(text) or not all(_is_own(spark, name) for name in set(_CALLED.findall(text))):
        _check_functions(spark, tree, text, what)


def check_constant(spark: SparkSession, text: str, what: str) -> None:
    """Refuses what no DEFAULT may be. Arguments as for :func:`check_stored`.

    Raises:
        TrinityError: NOT_SUPPORTED for what is not one value, the same for each row of a statement, and as
            :func:`check_stored`; COLUMN_NOT_FOUND, TYPE_MISMATCH, ... for what Spark cannot resolve.
    """
    _constant.get(text, lambda: _judge_constant(spark, text, what))


def _judge_constant(spark: SparkSession, text: str, what: str) -> None:
    from trinity.calls.spark import spark_errors

    check_stored(spark, text, what)
    tree = spark_tree(text)
    for name in {column.name for column in tree.find_all(exp.Column)} if tree is not None else ():
        if name.lower() not in _NOW:
            raise _refusal(what, text, f"names '{name}', and is of no row")
    with spark_errors():
        plan = spark.sql(f"SELECT (\n{text}\n)")._jdf.queryExecution().analyzed()
    if not plan.deterministic():
        raise _refusal(what, text, "does not give the same answer each time")
    if plan.getClass().getSimpleName() != "Project" or plan.child().getClass().getSimpleName() != "OneRowRelation":
        raise _refusal(what, text, "is about several rows")


def _check_functions(spark: SparkSession, tree: Any, text: str, what: str) -> None:
    for node in _nodes(tree):
        kind = node.getClass().getSimpleName()
        if kind == "ExpressionWithUnresolvedIdentifier":
            raise _refusal(what, text, "makes a name out of text")
        if kind != "UnresolvedFunction":
            continue
        name = ".".join(str(part) for part in elements(node.nameParts()))
        if name.lower() in FUNCTIONS:
            raise _refusal(what, text, f"calls {name}(), which {FUNCTIONS[name.lower()]}")
        if not _is_own(spark, name):
            raise _refusal(what, text, f"calls {name}(), which is no function of Spark's own")


def _is_own(spark: SparkSession, name: str) -> bool:
    """True when a name is of a function of Spark's own that reaches nothing beyond its arguments."""
    if name.lower() in FUNCTIONS:
        return False
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


def _nodes(tree: Any) -> Iterator[Any]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += elements(node.children())
