"""INSERT OVERWRITE and REPLACE WHERE: a MERGE ON FALSE, which deletes old rows and inserts new ones in one commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trinity.errors import TrinityError
from trinity.spi import Column
from trinity.sql.changing import dml
from trinity.sql.queries.results import Rows, counts
from trinity.syntax.parse import only_one
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from trinity.session import Session
    from trinity.spi import TableDefinition, TransactionId
    from trinity.table import Table

_NEW = "_trinity_new"


@dataclass(frozen=True)
class Overwrite:
    """The replacement of rows of a plain table by those of a query.

    Attributes:
        query: text of the query of the new rows.
        targets: the columns that the query fills, in order; None to match its columns by name.
        where: condition of the rows that are replaced, which new rows must meet, too; None for all rows.
    """

    query: str
    targets: Sequence[Column] | None
    where: str | None

    @property
    def source(self) -> str:
        """The query as a named source, whose columns have the names of the columns that they fill."""
        names = "" if self.targets is None else f"({', '.join(quoted(c.name) for c in self.targets)})"
        return f"(\n{self.query}\n) AS {_NEW}{names}"

    def merge(self, table: str) -> str:
        """Return the text of the MERGE into a table of this name."""
        if self.targets is None:
            insert = "INSERT BY NAME"
        else:
            names = [quoted(column.name) for column in self.targets]
            values = ", ".join(f"{_NEW}.{name}" for name in names)
            insert = f"INSERT ({', '.join(names)}) VALUES ({values})"
        gone = f" AND (\n{self.where}\n)" if self.where else ""
        return (
            f"MERGE INTO {table} USING {self.source} ON FALSE "
            f"WHEN NOT MATCHED THEN {insert} WHEN NOT MATCHED BY SOURCE{gone} THEN DELETE"
        )


def overwrite(
    session: Session,
    table: Table,
    wanted: Overwrite,
    txn: TransactionId | None,
    check: Callable[[TableDefinition], None] | None = None,
) -> Rows:
    """Replace rows of a plain table in one commit, and return one row of counts.

    ``check`` is as for :func:`~trinity.sql.changing.dml.change_rows`.

    Raises:
        TrinityError: NOT_SUPPORTED for a keyed table; CONSTRAINT_VIOLATION for a new row that does not meet the
            condition of REPLACE WHERE; as a MERGE.
    """
    definition = table.definition
    if check is not None:
        check(definition)
    if definition.keyed:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Table '{table.name}' has a key, by which INSERT INTO replaces rows; to have only the new rows, TRUNCATE "
            "it first, or MERGE with WHEN NOT MATCHED BY SOURCE THEN DELETE.",
        )
    if wanted.where is not None:
        outside = session.sql(f"SELECT 1 FROM {wanted.source} WHERE NOT coalesce((\n{wanted.where}\n), FALSE) LIMIT 1")
        if outside.collect():
            raise TrinityError(
                "CONSTRAINT_VIOLATION",
                f"A new row for table '{table.name}' is not one that REPLACE WHERE ({wanted.where}) replaces; correct "
                "the query, or the condition.",
            )
    text, tokens = only_one(wanted.merge(".".join(map(quoted, table.name.parts))), "spark")
    piece = dml.row_change(text, "spark", tokens)
    assert piece is not None
    done = dml.change_rows(session, piece, txn=txn, check=check)
    return counts(inserted=done.inserted, deleted=done.deleted)
