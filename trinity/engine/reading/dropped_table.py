"""A table that is dropped while a statement reads it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from trinity.errors import TrinityError
from trinity.spi import Connector, TableHandle


@contextmanager
def reporting_dropped_table(connector: Connector, pinned: TableHandle) -> Iterator[None]:
    """Replace any error by TABLE_NOT_FOUND when the table was dropped: its files are gone, too.

    Raises:
        TrinityError: TABLE_NOT_FOUND, or TRANSACTION_CONFLICT for a table made anew.
    """
    try:
        yield
    except TrinityError as error:
        if error.code != "COMMIT_STATE_UNKNOWN":  # the state of a commit stays unknown even if the table is gone
            _check_present(connector, pinned)
        raise


def _check_present(connector: Connector, pinned: TableHandle) -> None:
    """Raise TABLE_NOT_FOUND for a missing table, but not where it cannot be looked up, as in a store that is down."""
    try:
        connector.metadata.get_splits(replace(pinned, version=None))
    except TrinityError as error:
        if error.code in ("TABLE_NOT_FOUND", "SCHEMA_NOT_FOUND", "TRANSACTION_CONFLICT"):
            raise
