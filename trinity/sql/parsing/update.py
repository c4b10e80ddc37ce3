"""The clauses of UPDATE and DELETE."""

from __future__ import annotations

from typing import Final

from trinity.engine.program import When
from trinity.errors import TrinityError
from trinity.spi import Operation
from trinity.sql.parsing.reader import Piece, Reader
from trinity.sql.parsing.row_change import Clause, CommonTable, RowChange, assignments, target

__all__ = ["read_delete", "read_truncate", "read_update"]

_REFUSED: Final = ("RETURNING", "ORDER BY", "LIMIT", "WHERE CURRENT OF")
_ADVICE: Final = "the statement ends with its WHERE."


def read_update(reader: Reader, tables: tuple[CommonTable, ...]) -> RowChange:
    """Read UPDATE t [[AS] a] SET assignments [FROM source] [WHERE condition].

    Args:
        reader: the reader, before UPDATE.
        tables: the queries of a leading WITH.

    Raises:
        TrinityError: SYNTAX_ERROR; NOT_SUPPORTED for RETURNING, LIMIT and the like.
    """
    reader.expect("UPDATE")
    reader.refuse_anywhere(_REFUSED, _ADVICE)
    name, alias = target(reader, "SET")
    reader.expect("SET")
    columns, values = assignments(reader.until("FROM", "WHERE", wanted="an assignment"))
    source = reader.until("WHERE", wanted="a source") if reader.take("FROM") else None
    clause = Clause(When.MATCHED, Operation.UPDATE, None, columns, values)
    return RowChange("UPDATE", name, alias, tables, source, _where(reader), (clause,))


def read_delete(reader: Reader, tables: tuple[CommonTable, ...]) -> RowChange:
    """Read DELETE FROM t [[AS] a] [USING source] [WHERE condition]. Arguments and errors as of :func:`read_update`."""
    reader.expect("DELETE")
    reader.refuse_anywhere(_REFUSED, _ADVICE)
    reader.expect("FROM")
    name, alias = target(reader, "USING", "WHERE")
    source = reader.until("WHERE", wanted="a source") if reader.take("USING") else None
    clause = Clause(When.MATCHED, Operation.DELETE)
    return RowChange("DELETE", name, alias, tables, source, _where(reader), (clause,))


def _where(reader: Reader) -> Piece | None:
    if reader.done:
        return None
    reader.expect("WHERE")
    return reader.rest("a condition")


def read_truncate(reader: Reader) -> tuple[str, ...]:
    """Read TRUNCATE [TABLE] t, and return the name.

    Raises:
        TrinityError: SYNTAX_ERROR; NOT_SUPPORTED for anything after the name.
    """
    reader.expect("TRUNCATE")
    reader.take("TABLE")
    name = reader.name("the name of a table")
    if not reader.done:
        reader.refuse(("PARTITION",), "delete a partition's rows with DELETE ... WHERE.")
        rest = reader.rest("the end").text
        raise TrinityError("NOT_SUPPORTED", f"TRUNCATE takes the name of one table, and no '{rest}'.")
    return name
