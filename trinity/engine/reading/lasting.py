"""A table that goes while a statement reads it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from trinity.errors import TrinityError
from trinity.spi import Connector, TableHandle

__all__ = ["lasting"]


@contextmanager
def lasting(connector: Connector, pinned: TableHandle) -> Iterator[None]:
    """Whatever fails once the table is gone fails for that: its files are missing then.

    Raises:
        TrinityError: TABLE_NOT_FOUND, or TRANSACTION_CONFLICT for a table made anew.
    """
    try:
        yield
    except TrinityError:
        connector.metadata.get_splits(replace(pinned, version=None))
        raise
