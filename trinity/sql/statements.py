"""The entry to SQL: parses a statement, and runs it by the handler of its kind."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from trinity.depth import deep_recursion
from trinity.engine.executes import NotLocal, asked_spark, execute
from trinity.errors import TrinityError
from trinity.spark.settings import check_late_settings, pinned
from trinity.sql import show
from trinity.sql.changing import dml, insert
from trinity.sql.defining import alter, create
from trinity.sql.defining import schemas as ddl
from trinity.sql.local.run import local_explain, local_query
from trinity.sql.maintenance import maintenance_statement
from trinity.sql.parsing.names import parts
from trinity.sql.queries import query
from trinity.sql.queries.references import resolve
from trinity.sql.queries.results import Rows
from trinity.syntax.parameters import with_values
from trinity.syntax.parse import MISSING, Statement, check_first_word, only_one, parse
from trinity.syntax.parse import split as split

if TYPE_CHECKING:
    from trinity.session import Session
    from trinity.spi import TransactionId


@deep_recursion()
def run(
    session: Session, text: str, dialect: str = "spark", params: Any = None, txn: TransactionId | None = None
) -> Rows:
    """Run exactly one statement; return the rows of a query, SHOW or DESCRIBE, or one row of counts of DML.

    Raises:
        TrinityError: SYNTAX_ERROR with line, column and excerpt; and the errors of the kind of statement.
    """
    if params is not None:
        text = with_values(text, params, dialect)
    only, tokens = only_one(text, dialect)
    check_first_word(tokens)
    if (changing := dml.row_change(only, dialect, tokens)) is not None:
        return dml.run(session, changing, txn)
    if (maintenance := maintenance_statement(session, only, dialect, tokens)) is not None:
        if txn is not None:
            raise _takes_no_txn()
        return maintenance(session)
    try:
        statement = parse(only, dialect)
    except TrinityError as error:
        # with MISSING the text is incomplete: Spark would read WHERE in SELECT a FROM t WHERE as an alias
        if error.code != "SYNTAX_ERROR" or MISSING in error.message or dialect != "spark" or not _is_one_query(text):
            raise
        unparsed = error
        return execute(
            session,
            "The query",
            lambda _: NotLocal("only Spark parses it", unparsed),
            lambda: _unparsed_query(session, only, unparsed),
        )
    handler = _handler(statement)
    if txn is not None:
        if handler is not insert.insert:
            raise _takes_no_txn()
        handler = partial(insert.insert, txn=txn)
    if statement.words(1)[0] in ("SET", "RESET"):
        return query.run_as_set(session, statement.text)
    running = asked_spark(session)
    if running is None:  # a handler that starts Spark checks and pins the settings itself
        return handler(session, statement)
    if handler in (_query, _create, _cache):  # their rows, or a view's rows, are computed later
        check_late_settings(running, only)
    with pinned(running):
        return handler(session, statement)


def _unparsed_query(session: Session, text: str, error: TrinityError) -> Rows:
    check_late_settings(session.spark, text)
    with pinned(session.spark):
        return query.run_unparsed(session, split(text)[0], error)


def _takes_no_txn() -> TrinityError:
    return TrinityError("INVALID_ARGUMENTS", "Only INSERT, MERGE, UPDATE, DELETE and TRUNCATE take a txn.")


def _is_one_query(text: str) -> bool:
    """Return whether a text that sqlglot cannot parse looks like exactly one query."""
    try:
        parts = split(text)
    except TrinityError:
        return False
    return len(parts) == 1 and parts[0].lstrip("( \n").upper().startswith(_QUERY_WORDS)


_QUERY_WORDS: Final = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE")


_Handler = Callable[["Session", Statement], Rows]


def _create(session: Session, statement: Statement) -> Rows:
    kind = str(statement.tree.args.get("kind"))
    handlers: dict[str, _Handler] = {
        "TABLE": create.create_table,
        "VIEW": create.create_view,
        "SCHEMA": ddl.create_schema,
        "DATABASE": ddl.create_schema,
    }
    if kind not in handlers:
        raise TrinityError("NOT_SUPPORTED", f"CREATE {kind} is not supported; use Spark's own API for it.")
    if kind == "VIEW":
        check_late_settings(session.spark, statement.text)
    return handlers[kind](session, statement)


def _cache(session: Session, statement: Statement) -> Rows:
    check_late_settings(session.spark, statement.text)
    return create.cache(session, statement)


def _query(session: Session, statement: Statement) -> Rows:
    def by_spark() -> Rows:
        check_late_settings(session.spark, statement.text)
        return query.run_query(session, statement)

    return execute(session, "The query", lambda process: local_query(session, statement, process), by_spark)


def _explain(session: Session, statement: Statement) -> Rows:
    if len(statement.tokens) == 1:
        raise TrinityError("SYNTAX_ERROR", "Nothing stands after EXPLAIN; write a query, or a change of rows.")
    changing = dml.row_change(statement.text, statement.dialect, query.explained(statement))
    if changing is not None:
        return dml.explain(session, changing)
    plain = query.explained_query(statement)
    return execute(
        session,
        "EXPLAIN",
        lambda process: (
            NotLocal("only Spark has such a plan") if plain is None else local_explain(session, plain, process)
        ),
        lambda: query.explain(session, statement),
    )


_INSTEAD: Final[dict[type[exp.Expr], str]] = {
    exp.Comment: "ALTER TABLE t ALTER COLUMN c COMMENT '...' is for their columns",
    exp.Analyze: "their statistics are written with their rows",
    exp.Refresh: "each statement reads their newest version",
}
"""Statement that only tables of Spark's own have -> what Trinity's tables have instead."""


def _spark_statement(session: Session, statement: Statement) -> Rows:
    """Run a statement about a table of Spark's own. Raise NOT_SUPPORTED for one of Trinity's."""
    for node in statement.tree.find_all(exp.Table):
        if resolve(session, parts(node)) is not None:
            word, instead = statement.words(1)[0], _INSTEAD[type(statement.tree)]
            name = ".".join(parts(node))
            raise TrinityError("NOT_SUPPORTED", f"{word} is not for Trinity's tables, as '{name}' is one: {instead}.")
    return _query(session, statement)


_HANDLERS: Final[dict[type[exp.Expr], _Handler]] = {
    **dict.fromkeys(_INSTEAD, _spark_statement),
    exp.Create: _create,
    exp.Drop: ddl.drop,
    exp.Use: ddl.use,
    exp.Alter: alter.alter_table,
    exp.Describe: show.describe,
    exp.Cache: _cache,
    exp.Insert: insert.insert,
}

_WORDS: Final[dict[str, _Handler]] = {
    "SHOW": show.show,
    "USE": ddl.use,
    "EXPLAIN": _explain,
    "ALTER": alter.alter_as_text,
}
"""First word -> handler, for statements that sqlglot keeps as text or parses in a form that is not used here."""


def _handler(statement: Statement) -> _Handler:
    word = statement.words(1)[0]
    if word in ("SHOW", "USE", "EXPLAIN"):
        return _WORDS[word]
    if isinstance(statement.tree, exp.Command) and word in _WORDS:
        return _WORDS[word]
    if isinstance(statement.tree, exp.MultitableInserts):
        raise TrinityError("NOT_SUPPORTED", "FROM ... INSERT is not supported; write INSERT INTO t SELECT ...")
    return _HANDLERS.get(type(statement.tree), _query)
