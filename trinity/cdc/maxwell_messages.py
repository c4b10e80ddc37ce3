"""Maxwell's messages: changes of MySQL rows as JSON. Source: maxwells-daemon.io/dataformat and /bootstrapping."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

from trinity.calls import public
from trinity.cdc.messages import Invalid, Reading
from trinity.cdc.values import Encoding, fields_of
from trinity.cdc.version_columns import Rows, row_columns, version_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@public
def maxwell(
    messages: DataFrame,
    rows: Rows,
    key: Sequence[str] | None = None,
    *,
    column: str = "value",
    position: Literal["ts", "xid"] | None = "ts",
    watermark: str | None = None,
    row_kind: str | None = None,
    tombstone: str | None = None,
    preimages: bool = False,
    invalid: Invalid = "refuse",
) -> DataFrame:
    """Read Maxwell's messages as row versions; lazy.

    ``insert`` and ``bootstrap-insert`` become ``+I``, ``update`` ``+U``, ``delete`` ``-D``. An update that changes the
    key becomes a ``-D`` of the old key and a ``+I`` of the new one. Maxwell's other types of messages (DDL,
    ``bootstrap-start``, ``bootstrap-complete``, ``heartbeat``) are left out.

    Args:
        messages: the messages, in the order of their topic: ``ts`` counts seconds, and the later of equal ones wins.
        rows: columns of the rows, or the table that they are for. A column that a message lacks is NULL. A time
            without zone in a TIMESTAMP column is in the session's zone.
        key: key columns; by default the table's.
        column: the column with the messages, STRING or BINARY.
        position: the watermark's value, BIGINT: ``ts``, or ``xid``, which bootstrapped rows lack; None for rows
            with a watermark among their own columns.
        watermark: name of the watermark column; by default the table's, else ``_watermark``.
        row_kind: name of the row kind column; by default the table's, else ``_row_kind``.
        tombstone: name of a tombstone column, instead of a row kind column.
        preimages: True for the old row of each update before the new one, as ``-U``.
        invalid: ``refuse`` or ``drop`` messages that are no change of a row.

    Raises:
        TrinityError: COLUMN_NOT_FOUND, TYPE_MISMATCH, DUPLICATE_COLUMN_NAME, INVALID_ARGUMENTS. As the rows are
            written: BAD_DATA with the message's beginning; TYPE_MISMATCH naming column and value.
    """
    roles = version_columns(rows, key, position, watermark, row_kind, tombstone, preimages)
    columns = row_columns(rows, roles)
    reading = Reading(messages, column, columns, roles, position, invalid)
    fields = f"type: STRING, ts: STRING, xid: STRING, data: STRUCT<{fields_of(columns)}>, old: MAP<STRING, STRING>"
    changes = reading.of_rows(reading.parsed(fields), "Maxwell", _CASES)
    return reading.by_old_values(changes, "m.old", "m.data", Encoding())


_OTHERS: Final = (
    *("bootstrap-start", "bootstrap-complete", "heartbeat", "table-create", "table-alter", "table-drop"),
    *("database-create", "database-alter", "database-drop"),
)
"""Types of valid messages that change no row."""
_CASES: Final = (
    ("m.type IN ('insert', 'bootstrap-insert')", "+I"),
    ("m.type = 'update'", "+U"),
    ("m.type = 'delete'", "-D"),
    (f"m.type IN {_OTHERS}", None),
)
