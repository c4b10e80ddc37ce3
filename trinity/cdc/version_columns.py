"""The columns of row versions: the key, and those that say how fresh a version is and what it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from trinity.definition.columns import Columns, columns_of
from trinity.errors import TrinityError, nearest
from trinity.merge.spec import MergeSpec, merge_spec
from trinity.spi import Column, TableDefinition
from trinity.syntax.quoting import quoted
from trinity.table import Table

Rows = Columns | Table
"""Columns of the rows in messages, or the table that has these columns."""

_WATERMARK: Final = "_watermark"
_ROW_KIND: Final = "_row_kind"


@dataclass(frozen=True)
class VersionColumns:
    """The columns by which the rows of a result are row versions.

    Attributes:
        key: names of the key columns.
        watermark: name of the watermark column; None for none.
        row_kind: name of the row kind column, or None.
        tombstone: name of the tombstone column, or None; there is exactly one of the two.
        preimages: True when an update's old row comes before its new one, as ``-U``.
    """

    key: tuple[str, ...]
    watermark: str | None
    row_kind: str | None
    tombstone: str | None
    preimages: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that a row gets in addition to its own."""
        return tuple(name for name in (self.watermark, self.row_kind, self.tombstone) if name is not None)

    def marks(self, watermark: str, kind: str) -> list[str]:
        """Return Spark SQL of the columns of :attr:`names`, given Spark SQL of a row's watermark and row kind."""
        found = [f"{watermark} AS {quoted(self.watermark)}"] if self.watermark is not None else []
        if self.tombstone is not None:
            return [*found, f"({kind} IN ('-U', '-D')) AS {quoted(self.tombstone)}"]
        return [*found, f"{kind} AS {quoted(self.row_kind or _ROW_KIND)}"]

    def check(self, columns: Sequence[str]) -> None:
        """Check the names of a row's own columns against the key and the names of :attr:`names`.

        Raises:
            TrinityError: COLUMN_NOT_FOUND for a key column that the row lacks; DUPLICATE_COLUMN_NAME.
        """
        present = {name.lower() for name in columns}
        for name in self.key:
            if name.lower() not in present:
                message = f"Key column '{name}' is none of the rows' columns.{nearest(name, [*columns])}"
                raise TrinityError("COLUMN_NOT_FOUND", message)
        names = [*columns, *self.names]
        for name in names:
            if sum(name.lower() == other.lower() for other in names) > 1:
                message = f"Column '{name}' would be there twice; give the watermark or the mark another name."
                raise TrinityError("DUPLICATE_COLUMN_NAME", message)


def version_columns(
    given: object,
    key: Sequence[str] | None,
    position: str | None,
    watermark: str | None,
    row_kind: str | None,
    tombstone: str | None,
    preimages: bool = False,
) -> VersionColumns:
    """Return the columns that mark the row versions of a result.

    If ``given`` is a table, its properties give the defaults of the other arguments. The watermark column holds
    ``position``; if that is None, the result has no such column.

    Raises:
        TrinityError: INVALID_ARGUMENTS for both marks, for preimages without a row kind, for rows without key, for a
            watermark without position, and for a table whose properties the result could not follow.
    """
    ordered = position is not None
    if not ordered and watermark is not None:
        raise TrinityError("INVALID_ARGUMENTS", "A watermark column needs a position; give it, or no watermark.")
    if row_kind is not None and tombstone is not None:
        raise TrinityError("INVALID_ARGUMENTS", "Give row_kind or tombstone, not both.")
    if isinstance(given, Table):
        definition = given.definition
        spec = merge_spec(definition) if definition.keyed else None
        if spec is None:
            raise TrinityError("INVALID_ARGUMENTS", f"Table '{given.name}' has no primary key to upsert by.")
        key = spec.key if key is None else key
        if ordered and watermark is None:
            watermark = _ordering(definition, spec)
        if row_kind is None and tombstone is None:
            row_kind, tombstone = _marks(definition, spec)
    elif ordered and watermark is None:
        watermark = _WATERMARK
    if not key:
        raise TrinityError("INVALID_ARGUMENTS", "Give key, the columns that tell rows apart; or a table with a key.")
    if row_kind is None and tombstone is None:
        row_kind = _ROW_KIND
    if preimages and tombstone is not None:
        message = "A tombstone column cannot tell an old row from a deleted one; give row_kind, or no preimages."
        raise TrinityError("INVALID_ARGUMENTS", message)
    return VersionColumns(tuple(key), watermark if ordered else None, row_kind, tombstone, preimages)


def row_columns(given: Rows, roles: VersionColumns, others: Sequence[str] = ()) -> list[Column]:
    """Return the columns that a row has in its message: those of a table, without the ones that the result adds.

    ``others`` are columns that the result adds besides the marks.

    Raises:
        TrinityError: as :meth:`VersionColumns.check`.
    """
    added = {name.lower() for name in (*roles.names, *others)}
    if isinstance(given, Table):
        found = [column for column in given.definition.visible if column.name.lower() not in added]
    else:
        found = columns_of(given)
    roles.check([*(column.name for column in found), *others])
    return found


def _ordering(definition: TableDefinition, spec: MergeSpec) -> str | None:
    """Return the table's one watermark column; None where only the arrival order decides."""
    if len(spec.ordering) == 1 and not spec.descending:
        return spec.ordering[0]
    if spec.ordering or spec.groups:
        message = (
            f"Table '{definition.full_name}' orders its rows by several columns, or downwards; give watermark, the "
            "name of the column that takes the position of a change."
        )
        raise TrinityError("INVALID_ARGUMENTS", message)
    return None


def _marks(definition: TableDefinition, spec: MergeSpec) -> tuple[str | None, str | None]:
    """Return the table's row kind column and its tombstone column, one of which is None."""
    if spec.row_kind is not None:
        return spec.row_kind, None
    if spec.tombstone is not None and definition.column(spec.tombstone).type == "boolean":
        return None, spec.tombstone
    message = (
        f"Table '{definition.full_name}' has no column that says by an upsert that a row is gone; it needs "
        "'rowkind.field', or a 'tombstone-key' of type BOOLEAN."
    )
    raise TrinityError("INVALID_ARGUMENTS", message)
