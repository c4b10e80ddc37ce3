"""A Trinity adapter for Ledger tables."""

from ledger_trinity.format import LedgerFormat

__all__ = ["LedgerFormat"]
