"""Versions that applications have recorded with their commits, for retries that must do nothing (L4)."""

from __future__ import annotations

from collections.abc import Mapping

from trinity.spi import TransactionId

__all__ = ["is_recorded", "with_txn"]


def is_recorded(txns: Mapping[str, int], txn: TransactionId | None) -> bool:
    """True when a table has this version of the application, or a later one: nothing is left to do.

    Args:
        txns: application -> highest recorded version.
        txn: that of a statement; None for one that records nothing.
    """
    return txn is not None and txns.get(txn[0], -1) >= txn[1]


def with_txn(txns: Mapping[str, int], txn: TransactionId | None) -> dict[str, int]:
    """The versions that are on record after a commit. Arguments as of :func:`is_recorded`."""
    return {**txns, **dict([txn] if txn else [])}
