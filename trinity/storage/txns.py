"""Versions that applications record with their commits, so that retries do nothing (L4)."""

from __future__ import annotations

from collections.abc import Mapping

from trinity.spi import TransactionId

__all__ = ["is_recorded", "with_txn"]


def is_recorded(txns: Mapping[str, int], txn: TransactionId | None) -> bool:
    """Return whether this version of the application, or a later one, is recorded, so that nothing is left to do.

    Args:
        txns: application -> highest recorded version.
        txn: the statement's transaction id; None for a statement without one.
    """
    return txn is not None and txns.get(txn[0], -1) >= txn[1]


def with_txn(txns: Mapping[str, int], txn: TransactionId | None) -> dict[str, int]:
    """Return the recorded versions after a commit. Arguments as of :func:`is_recorded`."""
    return {**txns, **dict([txn] if txn else [])}
