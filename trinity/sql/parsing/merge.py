"""The clauses of MERGE."""

from __future__ import annotations

from typing import Final

from sqlglot import TokenType

from trinity.engine.program import When
from trinity.errors import TrinityError
from trinity.spi import Operation
from trinity.sql.parsing.row_change import Clause, CommonTable, RowChange, assignments, column_list, target
from trinity.syntax.reader import Piece, Reader, word_of

_AFTER_MERGE: Final = ("RETURNING", "OUTPUT", "LIMIT", "ORDER BY")
_AFTER_ACTION: Final = ("WHERE", "DELETE WHERE", *_AFTER_MERGE)


def read_merge(reader: Reader, tables: tuple[CommonTable, ...]) -> RowChange:
    """Read MERGE [WITH SCHEMA EVOLUTION] [INTO] t [[AS] a] USING source {ON condition | USING (columns)} WHEN ... (M8).

    Raises:
        TrinityError: SYNTAX_ERROR; NOT_SUPPORTED for RETURNING and the like.
    """
    reader.expect("MERGE")
    evolves = reader.take("WITH", "SCHEMA", "EVOLUTION")
    reader.take("INTO")
    name, alias = target(reader, "USING")
    reader.expect("USING")
    source, condition, using = _source(reader)
    clauses: list[Clause] = []
    while not reader.done:
        reader.expect("WHEN")
        clauses.append(_clause(reader))
    if not clauses:
        raise reader.unexpected("WHEN")
    return RowChange("MERGE", name, alias, tables, source, condition, tuple(clauses), using, evolves)


def _source(reader: Reader) -> tuple[Piece, Piece | None, tuple[str, ...]]:
    """Read the source, and the condition or the columns of USING.

    A source may be a join with its own ON, so the last ON is MERGE's. USING (...) is MERGE's only if the source is no
    join.
    """
    both = reader.until("WHEN", wanted="a source")
    inner = Reader(both)
    source = inner.until("ON", "USING", "JOIN", wanted="a source")
    if inner.take("USING"):
        names = column_list(inner.inside("a column"))
        if inner.done:
            return source, None, tuple(parts[-1] for parts in names)
    inner = Reader(both)
    inner.until("ON", wanted="a source")
    if inner.done:
        raise inner.unexpected("ON")
    last = inner.at
    while not inner.done:
        last = inner.at
        inner.at += 1
        inner.until("ON", wanted="a condition")
    source = Piece(both.whole, both.dialect, both.tokens[:last])
    return source, Piece(both.whole, both.dialect, both.tokens[last + 1 :]), ()


def _clause(reader: Reader) -> Clause:
    when = _when(reader)
    condition = reader.until("THEN", wanted="a condition") if reader.take("AND") else None
    reader.expect("THEN")
    if reader.done:
        raise reader.unexpected("UPDATE, DELETE, INSERT or DO NOTHING")
    action = Reader(reader.until("WHEN", wanted="UPDATE, DELETE, INSERT or DO NOTHING"))
    clause = _action(action, when, condition)
    if not action.done:
        action.refuse(_AFTER_ACTION, "put conditions after WHEN ... AND.")
        raise action.unexpected("WHEN")
    return clause


def _when(reader: Reader) -> When:
    if reader.take("MATCHED"):
        return When.MATCHED
    reader.expect("NOT", "MATCHED")
    if reader.take("BY", "SOURCE"):
        return When.NOT_MATCHED_BY_SOURCE
    if reader.words("BY"):
        reader.take("BY")
        reader.expect("TARGET")
    return When.NOT_MATCHED


def _action(reader: Reader, when: When, condition: Piece | None) -> Clause:
    if reader.take("DO"):
        reader.expect("NOTHING")
        return Clause(when, None, condition)
    allowed = ("INSERT",) if when is When.NOT_MATCHED else ("UPDATE", "DELETE")
    word = word_of(reader.tokens[reader.at])
    if word not in allowed and word in ("INSERT", "UPDATE", "DELETE"):
        raise TrinityError("SYNTAX_ERROR", f"WHEN {when.value} THEN {word}: only {' or '.join(allowed)} can follow.")
    if reader.take("DELETE"):
        return Clause(when, Operation.DELETE, condition)
    if reader.take("UPDATE"):
        return _update(reader, when, condition)
    if reader.take("INSERT"):
        return _insert(reader, when, condition)
    raise reader.unexpected(f"{', '.join(allowed)} or DO NOTHING")


def _update(reader: Reader, when: When, condition: Piece | None) -> Clause:
    reader.expect("SET")
    if reader.take("*"):
        if when is When.NOT_MATCHED_BY_SOURCE:
            raise TrinityError(
                "INVALID_ARGUMENTS", "WHEN NOT MATCHED BY SOURCE has no source row for UPDATE SET *; name the columns."
            )
        return Clause(when, Operation.UPDATE, condition)
    reader.refuse_anywhere(_AFTER_ACTION, "put conditions after WHEN ... AND.")
    columns, values = assignments(reader.rest("an assignment"))
    return Clause(when, Operation.UPDATE, condition, columns, values)


def _insert(reader: Reader, when: When, condition: Piece | None) -> Clause:
    if reader.take("*"):
        return Clause(when, Operation.INSERT, condition)
    if reader.take("BY", "NAME"):
        reader.take("*")
        return Clause(when, Operation.INSERT, condition, by_name=True)
    reader.refuse(("ROW", "OVERRIDING"), "write INSERT *, INSERT BY NAME or INSERT (columns) VALUES (...).")
    if reader.take("DEFAULT", "VALUES"):
        return Clause(when, Operation.INSERT, condition, (), ())
    columns = tuple(column_list(reader.inside("a column"))) if reader.opens() else None
    reader.expect("VALUES")
    values = tuple(Reader(reader.inside("a value")).commas("a value"))
    if not reader.done and reader.tokens[reader.at].token_type is TokenType.COMMA:
        raise TrinityError("SYNTAX_ERROR", "INSERT in a MERGE has one row of VALUES.")
    return Clause(when, Operation.INSERT, condition, columns, values)
