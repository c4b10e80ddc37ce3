"""A table that is dropped while a statement reads it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from trinity.errors import TrinityError
from trinity.spi import Connector, TableHandle

__all__ = ["reporting_dropped_table"]


@contextmanager
def reporting_dropped_table(connector: Connector, pinned: TableHandle) -> Iterator[None]:
    """Raise the error of a missing table in place of any other once the table is gone: its files are missing then.

    Raises:
        TrinityError: TABLE_NOT_FOUND, or TRANSACTION_CONFLICT for a table made anew.
    """
    try:
        yield
    except TrinityError:
        connector.metadata.get_splits(replace(pinned, version=None))
        raise
