"""The kinds of row versions: as users write them, as a hidden column stores them, as folds use them; and tombstones."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from enum import IntEnum
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from trinity.merge.spec import MergeSpec
from trinity.spi import FLOATS, INTEGERS, ROW_KIND, TEXTS, TableDefinition, parse_type

ROW_KINDS: Final = ("+I", "-U", "+U", "-D")
"""The texts of a ``rowkind.field`` (U8): inserted, before an update, after it, deleted."""


class StoredKind(IntEnum):
    """A value of the hidden column :data:`~trinity.spi.ROW_KIND`; NULL means the same as ``ADDED`` (U6)."""

    ADDED = 0
    HIDDEN = 1
    """A row that is stored, but that no merged read shows."""
    DELETED = 3
    FOLDED = 4
    """The result of a compaction, in tables that fold by column."""


class FoldKind(IntEnum):
    """The effect of a row version in a fold by column."""

    ADD = 0
    RETRACT_UPDATE = 1
    """A ``-U``."""
    RETRACT_DELETE = 2
    """A ``-D`` that does not delete the row."""
    CUT = 3
    """A delete of the row: older row versions no longer count."""


def is_retract(kind: str) -> str:
    """Return Spark SQL: true if a :class:`FoldKind` is a retract (U8)."""
    return f"{kind} IN ({FoldKind.RETRACT_UPDATE}, {FoldKind.RETRACT_DELETE})"


def tombstone_marks(spec: MergeSpec, definition: TableDefinition) -> dict[str, Any]:
    """Return column -> value, for the columns whose values make a row a tombstone; other columns stay (U5)."""
    if spec.by_column:
        return {ROW_KIND: StoredKind.DELETED}
    if spec.tombstone:
        return {spec.tombstone: _tombstone_value(spec, definition)}
    if spec.hidden_row_kind:
        return {ROW_KIND: StoredKind.DELETED}
    assert spec.row_kind
    return {spec.row_kind: "-D"}


def _tombstone_value(spec: MergeSpec, definition: TableDefinition) -> Any:
    """Return the value of the tombstone column in a tombstone: TRUE, the property's text, or a value of the type."""
    assert spec.tombstone
    kind = parse_type(definition.column(spec.tombstone).type)
    if spec.tombstone_value is not None:
        return spec.tombstone_value
    if kind.name == "decimal":  # 1, unless the type has no digit before the point
        return Decimal(1) if kind.arguments[0] > kind.arguments[1] else Decimal(0)
    return _CANONICAL[kind.name]


_CANONICAL: Final[dict[str, Any]] = {
    "boolean": True,
    **dict.fromkeys((*INTEGERS, *FLOATS), 1),
    **dict.fromkeys(TEXTS, "D"),
    "binary": b"\x01",
    "date": dt.date(1970, 1, 1),
    "timestamp": dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
    "timestamp_ntz": dt.datetime(1970, 1, 1),
    "time": dt.time(0),
}


def retracts(kinds: pa.Array | pa.ChunkedArray) -> pa.BooleanArray | pa.ChunkedArray:
    """Return a mask: true, never NULL, where a row kind is a retract (U8)."""
    return pc.is_in(pc.utf8_rtrim(kinds, " "), value_set=pa.array(["-U", "-D"], kinds.type))
