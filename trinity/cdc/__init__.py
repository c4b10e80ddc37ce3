"""Change messages of other tools as row versions that ``table.upsert`` takes: one function for each form.

Each takes a Spark DataFrame and gives a lazy one, all of one shape: the row's columns; a watermark column, in which the
fresher version has the larger value; and either a row kind column, STRING (``+I``, ``-U``, ``+U``, ``-D``), or a
tombstone column, BOOLEAN, TRUE for a deleted row. Rows stand in the order of their messages. Two parts write tables by
themselves: :class:`PostgresSlot` those that follow PostgreSQL, :func:`follow` those that follow other tables.
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
