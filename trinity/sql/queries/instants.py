"""The value of an expression as a time, for TIMESTAMP AS OF and its like."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pyarrow as pa

from trinity.calls import spark_errors
from trinity.engine.executes import NotLocal, execute
from trinity.engine.expressions import ONE_ROW, Scope, compile_expression
from trinity.engine.sql_permissions import guard_statement
from trinity.errors import TrinityError

if TYPE_CHECKING:
    from trinity.session import Session


def instant(session: Session, text: str) -> dt.datetime:
    """Return the value of an expression as a time, evaluated by this process or by Spark.

    Raises:
        TrinityError: INVALID_ARGUMENTS for NULL, and for a time beyond the years 1 to 9999; errors of the expression.
    """
    return execute(
        session,
        f"The time {text}",
        lambda _: local_instant(session, text),
        lambda: _by_spark(session, text),
        arrow=True,
    )


def local_instant(session: Session, text: str) -> dt.datetime | NotLocal:
    """Return the value of an expression as a time, evaluated by this process. Raises as :func:`instant`."""
    found = compile_expression(f"CAST({text} AS TIMESTAMP)", Scope(()), lambda: session.timezone)
    if isinstance(found, NotLocal):
        return found
    return _moment(text, found.evaluate(ONE_ROW).cast(pa.int64())[0].as_py())


def _by_spark(session: Session, text: str) -> dt.datetime:
    query = f"SELECT unix_micros(CAST({text} AS TIMESTAMP))"
    guard_statement(session, query)
    with spark_errors():
        row = session.spark.sql(query).head()
    return _moment(text, None if row is None else row[0])


def _moment(text: str, micros: int | None) -> dt.datetime:
    if micros is None:
        raise TrinityError("INVALID_ARGUMENTS", f"The time {text} is NULL; give another.")
    try:
        return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=micros)
    except OverflowError as error:
        message = f"The time {text} is beyond the years 1 to 9999; give one within."
        raise TrinityError("INVALID_ARGUMENTS", message) from error
