"""Limits of session.sql: a statement reaches only tables, unless the session also allows code and files (N2)."""

from __future__ import annotations

from collections.abc import Iterator

from trinity.engine.program import Expression, Program, expressions_of
from trinity.errors import TrinityError
from trinity.messages import shown_value
from trinity.spark.expressions import one_expression, refuse_subquery
from trinity.spark.reach import reach_of_expression, reach_of_statement
from trinity.spark.settings import pinned
from trinity.target import Host


def guard_statement(session: Host, text: str) -> None:
    """Refuse a statement that reaches code, files or Spark's own commands.

    Args:
        session: nothing is refused when it was opened with ``allow_code=True``.
        text: the statement as Spark runs it.

    Raises:
        TrinityError: PERMISSION_DENIED naming what the statement reaches.
    """
    if not session.allow_code and (found := reach_of_statement(session.spark, text)) is not None:
        raise _denied(found)


def guard_expression(session: Host, text: str) -> None:
    """Refuse an expression that reaches code, files or Spark's commands, also by a subquery.

    Arguments and errors as for :func:`guard_statement`.
    """
    if not session.allow_code and (found := reach_of_expression(session.spark, text)) is not None:
        raise _denied(found)


def guard_predicate(session: Host, text: str) -> None:
    """Refuse text that is no predicate over columns, or that reaches beyond them.

    Raises:
        TrinityError: SYNTAX_ERROR unless it is one expression; NOT_SUPPORTED for a subquery; PERMISSION_DENIED as
            :func:`guard_statement`.
    """
    with pinned(session.spark):
        refuse_subquery(one_expression(session.spark, text, "where"), text, "where")
        guard_expression(session, text)


def guard_program(session: Host, program: Program) -> None:
    """Refuse a text in a row change from Python that is not one expression, or that reaches beyond rows.

    Raises:
        TrinityError: SYNTAX_ERROR, PERMISSION_DENIED, as :func:`guard_predicate`.
    """
    with pinned(session.spark):
        for what, text in _texts(program):
            if isinstance(text, str):
                one_expression(session.spark, text, f"{program.statement}, {what}")
                guard_expression(session, text)


def _texts(program: Program) -> Iterator[tuple[str, Expression | None]]:
    yield "the condition that rows match", program.on
    for case in program.cases:
        yield f"the condition of WHEN {case.when.value}", case.condition
        for name, value in (case.values or {}).items():
            yield from ((f"the value of '{name}'", text) for text in expressions_of(value))


def _denied(found: str) -> TrinityError:
    return TrinityError(
        "PERMISSION_DENIED",
        f"{shown_value(found)}; a session lets SQL do so only when it was opened with connect(..., allow_code=True).",
    )
