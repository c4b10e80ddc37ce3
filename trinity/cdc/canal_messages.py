"""Canal's messages: changes of MySQL rows as JSON, several rows in one.

Source: github.com/alibaba/canal, its FlatMessage; Flink's format canal-json.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

from trinity.calls import public
from trinity.cdc.messages import Invalid, Reading
from trinity.cdc.values import Encoding, fields_of
from trinity.cdc.version_columns import Rows, row_columns, version_columns
from trinity.spark.settings import pinned

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@public
def canal(
    messages: DataFrame,
    rows: Rows,
    key: Sequence[str] | None = None,
    *,
    column: str = "value",
    position: Literal["es", "ts"] | None = "es",
    watermark: str | None = None,
    row_kind: str | None = None,
    tombstone: str | None = None,
    preimages: bool = False,
    invalid: Invalid = "refuse",
) -> DataFrame:
    """Read Canal's flat messages as row versions; lazy. The rows of a message keep their order.

    ``INSERT`` becomes ``+I``, ``UPDATE`` ``+U``, ``DELETE`` ``-D``. An update that changes the key becomes a ``-D`` of
    the old key and a ``+I`` of the new one. DDL statements (``isDdl``), TRUNCATE among them, are left out.

    Args:
        messages: the messages, in the order of their topic: of equal positions the later row wins.
        rows: columns of the rows, or the table that they are for. A column that a message lacks is NULL. A time
            without zone in a TIMESTAMP column is in the session's zone.
        key: key columns; by default the table's.
        column: the column with the messages, STRING or BINARY.
        position: the watermark's value, BIGINT, milliseconds: ``es``, the time in MySQL's log, or ``ts``, that of the
            message; None for rows with a watermark among their own columns.
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
    fields = f"type: STRING, isDdl: BOOLEAN, es: STRING, ts: STRING, data: ARRAY<STRUCT<{fields_of(columns)}>>"
    with pinned(messages.sparkSession):
        changes = reading.of_rows(reading.parsed(f"{fields}, old: ARRAY<MAP<STRING, STRING>>"), "Canal", _CASES)
        each = changes.selectExpr("text", "kind", "m", "posexplode(coalesce(m.data, array(NULL))) AS (n, data)")
        each = each.selectExpr("text", "kind", "m", "data", "get(m.old, n) AS old")
    return reading.by_old_values(each, "old", "data", Encoding(latin1=True))


_OTHERS: Final = ("CREATE", "ALTER", "ERASE", "QUERY", "TRUNCATE", "RENAME", "CINDEX", "DINDEX")
"""Types of valid messages that change no row."""
_CASES: Final = (
    ("m.isDdl", None),
    ("m.type = 'INSERT'", "+I"),
    ("m.type = 'UPDATE'", "+U"),
    ("m.type = 'DELETE'", "-D"),
    (f"m.type IN {_OTHERS}", None),
)
