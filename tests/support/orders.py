"""The keyed table of most examples."""

from __future__ import annotations

from trinity import Column, Session, Table


def make_orders(session: Session, catalog: str) -> Table:
    """Make an empty keyed table with the columns order_id, ts, deleted, and an amount."""
    return session.create_table(
        f"{catalog}.default.orders",
        [
            Column("order_id", "string"),
            Column("ts", "bigint"),
            Column("deleted", "boolean"),
            Column("amount", "double"),
        ],
        primary_key=["order_id"],
        properties={"watermark-key": "ts", "tombstone-key": "deleted"},
    )
