"""Columns that a row change adds to its table: stored rows lack them, whatever else files hold under their names."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from trinity.spi import STAMP, STORED_NAME, InsertTableHandle, SplitSource

__all__ = ["with_new_columns"]


def with_new_columns(splits: SplitSource, insert: InsertTableHandle) -> SplitSource:
    """Return a version as a table that has the columns of a row change, which are NULL in all its rows."""
    stored = {c.identity: f for c, f in zip(splits.definition.columns, splits.storage, strict=True)}
    stamped = splits.definition.stamped
    columns = [c for c in insert.definition.columns if stamped or c.name != STAMP]
    kinds = insert.target.storage
    fields = [
        stored.get(c.identity) or pa.field(c.name, kinds.field(c.name).type, metadata={STORED_NAME: _nowhere(c.name)})
        for c in columns
    ]
    storage = pa.schema(fields, splits.storage.metadata)
    return replace(splits, definition=insert.definition.with_columns(columns), storage=storage)


def _nowhere(name: str) -> bytes:
    """Return a name that no file has for a column; files may have ``name`` for one that was dropped."""
    return f"_trinity_added_{name}".encode()
