"""Change messages of other tools as row versions that ``table.upsert`` takes: one function for each form.

Each function takes a Spark DataFrame and returns a lazy one. All results have the same shape: the row's columns; a
watermark column, in which the fresher version has the larger value; and either a row kind column, STRING (``+I``,
``-U``, ``+U``, ``-D``), or a tombstone column, BOOLEAN, TRUE for a deleted row. Rows keep the order of their messages.

:class:`PostgresSlot` and :func:`follow` write tables themselves: tables that follow PostgreSQL, or other tables.
"""

from __future__ import annotations

from trinity.cdc.canal_messages import canal
from trinity.cdc.debezium_events import debezium, debezium_flat
from trinity.cdc.delta import delta_changes
from trinity.cdc.flink import flink_rows
from trinity.cdc.following import follow
from trinity.cdc.iceberg import iceberg_changes
from trinity.cdc.maxwell_messages import maxwell
from trinity.cdc.postgres_slot import PostgresChanges, PostgresSlot

__all__ = [
    "PostgresChanges",
    "PostgresSlot",
    "canal",
    "debezium",
    "debezium_flat",
    "delta_changes",
    "flink_rows",
    "follow",
    "iceberg_changes",
    "maxwell",
]
