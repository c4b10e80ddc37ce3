"""A writer's delete: what marks a row version as the tombstone of its key (U3, U5, U6)."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from trinity.merge.row_kinds import StoredKind
from trinity.merge.spec import MergeSpec
from trinity.spi import ROW_KIND, TableDefinition, parse_type

__all__ = ["retracts", "tombstone_marks"]


def tombstone_marks(spec: MergeSpec, definition: TableDefinition) -> dict[str, Any]:
    """Return column -> the value that a tombstone has there; the other columns stay as they were (U5)."""
    if spec.by_column:
        return {ROW_KIND: StoredKind.DELETED}
    if spec.tombstone:
        return {spec.tombstone: _tombstone_value(spec, definition)}
    if spec.hidden_row_kind:
        return {ROW_KIND: StoredKind.DELETED}
    assert spec.row_kind
    return {spec.row_kind: "-D"}


def _tombstone_value(spec: MergeSpec, definition: TableDefinition) -> Any:
    """Return TRUE, the defined string, or a canonical value of the type."""
    assert spec.tombstone
    kind = parse_type(definition.column(spec.tombstone).type)
    if spec.tombstone_value is not None:
        return spec.tombstone_value
    if kind.name == "decimal":  # 1, unless the type has no digit before the point
        return Decimal(1) if kind.arguments[0] > kind.arguments[1] else Decimal(0)
    return _CANONICAL[kind.name]


_CANONICAL: Final[dict[str, Any]] = {
    "boolean": True,
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "float", "double"), 1),
    **dict.fromkeys(("string", "char", "varchar"), "D"),
    "binary": b"\x01",
    "date": dt.date(1970, 1, 1),
    "timestamp": dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
    "timestamp_ntz": dt.datetime(1970, 1, 1),
    "time": dt.time(0),
}


def retracts(kinds: pa.Array | pa.ChunkedArray) -> pa.BooleanArray | pa.ChunkedArray:
    """Return a mask: true, never NULL, where a row kind is a retract (U8)."""
    return pc.is_in(pc.utf8_rtrim(kinds, " "), value_set=pa.array(["-U", "-D"], kinds.type))
