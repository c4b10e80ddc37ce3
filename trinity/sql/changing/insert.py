"""INSERT INTO: rows by position or by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sqlglot import TokenType, exp

from trinity.calls import spark_errors
from trinity.engine.appending.append import append_derived, append_rows
from trinity.engine.executes import NotLocal, ThisProcess, execute
from trinity.engine.values.defaults import default_text
from trinity.errors import TrinityError, nearest
from trinity.spi import Column, CommitResult, TableDefinition, TransactionId
from trinity.sql.changing.overwrite import Overwrite, overwrite
from trinity.sql.local.column_names import with_column_names
from trinity.sql.local.insert import reader_with_names, why_only_spark_stores, with_field_names
from trinity.sql.local.run import local_rows
from trinity.sql.parsing.names import existing_table
from trinity.sql.queries.query import run_query_of
from trinity.sql.queries.reads import Read
from trinity.sql.queries.references import Edit, apply_edits
from trinity.sql.queries.results import Rows, counts
from trinity.syntax.parse import Statement, parse
from trinity.syntax.reader import Piece, Reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from trinity.session import Session
    from trinity.table import Table

_APPENDS: Final = "INSERT INTO appends rows"
_REFUSED: Final = {
    "partition": ("PARTITION (...)", "INSERT INTO t REPLACE WHERE column = value replaces the rows of a partition"),
    "conflict": ("ON CONFLICT", _APPENDS),
    "returning": ("RETURNING", _APPENDS),
    "alternative": ("INSERT OR", _APPENDS),
    "exists": ("IF EXISTS", _APPENDS),
    "default": ("DEFAULT VALUES", "name a column, and write VALUES (DEFAULT)"),
}
"""sqlglot's argument of an unsupported clause of INSERT -> the clause, and what to write instead."""


def insert(session: Session, statement: Statement, txn: TransactionId | None = None) -> Rows:
    """Run INSERT INTO t [(columns)] [BY NAME] query. On a keyed table it upserts by the table's merge engine (M4).

    INSERT OVERWRITE t and INSERT INTO t REPLACE WHERE condition replace rows of a plain table. The result is one row of
    counts.

    Raises:
        TrinityError: TYPE_MISMATCH, also for a wrong number of columns; COLUMN_NOT_FOUND, DUPLICATE_COLUMN_NAME,
            CONSTRAINT_VIOLATION; NOT_SUPPORTED for ON CONFLICT and the like.
    """
    from trinity.engine.changing.statement import rerun

    statement = statement.to_spark()
    node = statement.tree
    assert isinstance(node, exp.Insert)
    _refuse(node)
    table = existing_table(session, node.this)
    definition = table.definition
    by_name = bool(node.args.get("by_name"))
    named = [c.name for c in node.this.expressions] if isinstance(node.this, exp.Schema) else []
    targets = _targets(table, definition, named)
    query = _query(statement, node, targets, lambda: session.spark)
    if node.args.get("overwrite") or node.args.get("where") is not None:
        replaced = _condition(statement, node)
        return overwrite(session, table, Overwrite(query.text, None if by_name else targets, replaced), txn)

    def filled(names: Sequence[str]) -> Sequence[Column]:
        found = _targets(table, definition, names) if by_name else targets
        _check_width(table, found, len(names))
        return found

    def here(process: ThisProcess) -> CommitResult | NotLocal:
        selected = query if by_name else replace(query, tree=with_column_names(query.tree))
        found = local_rows(session, selected, process)
        if isinstance(found, NotLocal):
            return found
        columns, types = filled(found.names), [c.type for c in found.relation.columns]
        reason = why_only_spark_stores(columns, types, by_name=by_name)
        if reason is not None:
            return reason
        rows = reader_with_names(found.relation, [c.name for c in columns])
        return _write(table, rows if by_name else with_field_names(rows, columns, types), found.reads, txn)

    def by_spark() -> CommitResult:
        from trinity.engine.values.spark.assignment import inserted_rows, placed_rows

        rows, reads = run_query_of(session, query)
        columns = filled(list(rows.columns))
        rows = rows.toDF(*[c.name for c in columns])
        rows = rows if by_name else placed_rows(rows, columns, "INSERT")
        rows = inserted_rows(rows, columns, str(table.name))
        if query.words(1) == ("VALUES",):
            rows = rows.coalesce(1)  # a handful of rows: one file, in their order
        with spark_errors():
            return _write(table, rows, reads, txn)

    done = rerun(table, lambda: execute(session, f"INSERT INTO '{table.name}'", here, by_spark))
    return counts(inserted=done.rows)


def _check_width(table: Table, targets: Sequence[Column], given: int) -> None:
    if given != len(targets):
        raise TrinityError(
            "TYPE_MISMATCH",
            f"INSERT INTO '{table.name}' fills {len(targets)} columns ({', '.join(c.name for c in targets)}), "
            f"and the query has {given}.",
        )


def _write(table: Table, rows: Any, reads: Sequence[Read], txn: TransactionId | None) -> CommitResult:
    """Append rows. Only if they were read from the table itself, check that no concurrent commit changed it."""
    own = next((read for read in reads if read.handle.same_place(table.handle)), None)
    if own is not None:
        return append_derived(table, rows, own.handle, own.splits, txn)
    return append_rows(table, rows, txn)


def _refuse(node: exp.Insert) -> None:
    target = node.this.this if isinstance(node.this, exp.Schema) else node.this
    for key, (what, instead) in _REFUSED.items():
        if node.args.get(key) or target.args.get(key):
            raise TrinityError("NOT_SUPPORTED", f"{what} is not supported; {instead}.")


def _targets(table: Table, definition: TableDefinition, named: Sequence[str]) -> list[Column]:
    """Return the columns that the statement fills, in its order; all columns if it names none."""
    if not named:
        return list(definition.visible)
    by_name = {c.name.lower(): c for c in definition.visible}
    found: list[Column] = []
    for name in named:
        column = by_name.get(name.lower())
        if column is None:
            known = [c.name for c in definition.visible]
            raise TrinityError(
                "COLUMN_NOT_FOUND",
                f"Table '{table.name}' has no column '{name}'.{nearest(name, known)} It has: {', '.join(known)}.",
            )
        if column in found:
            raise TrinityError("DUPLICATE_COLUMN_NAME", f"INSERT INTO '{table.name}' names '{name}' more than once.")
        found.append(column)
    return found


def _query(
    statement: Statement, node: exp.Insert, targets: Sequence[Column], spark: Callable[[], SparkSession]
) -> Statement:
    """Return the query of the statement. A WITH before INSERT becomes a part of the query."""
    tokens = statement.tokens
    start = _query_start(statement, node)
    if start >= len(tokens):
        raise TrinityError("SYNTAX_ERROR", "INSERT INTO has no query; write VALUES (...) or SELECT after the table.")
    keyword = next(i for i, t in enumerate(tokens) if t.token_type is TokenType.INSERT)
    head = statement.text[: tokens[keyword].start] if keyword else ""
    text = statement.text[tokens[start].start :]
    if tokens[start].text.upper() == "VALUES":
        offset, rows = tokens[start].start, Piece(statement.text, "spark", tokens[start + 1 :])
        edits = [(a - offset, b - offset, new) for a, b, new in _default_edits(rows, targets, spark)]
        text = apply_edits(text, edits)
    if keyword and tokens[start].text.upper() == "TABLE":
        text = f"SELECT * FROM{text[len('TABLE') :]}"
    return parse(head + text, "spark")


def _query_start(statement: Statement, node: exp.Insert) -> int:
    target = node.this.this if isinstance(node.this, exp.Schema) else node.this
    tokens, last = statement.tokens, target.parts[-1].meta["end"]
    at = next(i for i, t in enumerate(tokens) if t.start > last) if tokens[-1].start > last else len(tokens)
    if isinstance(node.this, exp.Schema):
        ends = (i for i in range(at, len(tokens)) if tokens[i].token_type is TokenType.R_PAREN)
        at = next(ends, len(tokens)) + 1  # without parentheses it is INSERT INTO t SET ...
    if node.args.get("by_name"):
        at += 2
    if node.args.get("where") is not None:
        at = _query_after(statement, at)
    return at


_QUERIES: Final = ("SELECT", "VALUES", "WITH", "TABLE", "FROM")


def _query_after(statement: Statement, at: int) -> int:
    """Return the index of the first token of the query that follows a condition; ``at`` is where that begins."""
    reader = Reader(Piece.of(statement), at)
    reader.until(*_QUERIES, wanted="a condition")
    return reader.at


def _condition(statement: Statement, node: exp.Insert) -> str | None:
    """Return the text of the condition of REPLACE WHERE; None for a statement without it."""
    if node.args.get("where") is None:
        return None
    tokens = statement.tokens
    first = next(
        n for n, t in enumerate(tokens) if t.text.upper() == "REPLACE" and tokens[n + 1].text.upper() == "WHERE"
    )
    return statement.text[tokens[first + 2].start : tokens[_query_after(statement, first + 2)].start].strip()


def _default_edits(rows: Piece, targets: Sequence[Column], spark: Callable[[], SparkSession]) -> Iterator[Edit]:
    """Yield edits that replace the keyword DEFAULT in rows of VALUES by the column's default."""
    for row in map(Reader, Reader(rows).commas("a row")):
        values = Reader(row.inside("a value")).commas("a value") if row.opens() else ()
        for value, target in zip(values, targets, strict=False):
            if value.is_word("DEFAULT"):
                yield value.start, value.tokens[-1].end + 1, default_text(target, spark)
