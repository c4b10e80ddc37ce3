"""One merge semantics over Parquet, Delta and Iceberg tables, on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trinity.builder import MergeBuilder
from trinity.connecting import connect
from trinity.engine.changing.program import Counts, Expression
from trinity.engine.compacting.health import Health, TierSize
from trinity.engine.compacting.upkeep import Upkeep
from trinity.errors import ErrorCode, TrinityError
from trinity.names import TableName
from trinity.session import Session
from trinity.spi import Check, Column, CommitResult, LostCommit, RepairResult, TransactionId, VacuumResult
from trinity.table import Table

if TYPE_CHECKING:
    from trinity import cdc, dbapi
    from trinity.applying import apply_changes, create_changes_target

__all__ = [
    "connect", "apply_changes", "create_changes_target",
    "Session", "Table", "MergeBuilder", "TableName",
    "Check", "Column",
    "CommitResult", "Counts", "Health", "LostCommit", "RepairResult", "TierSize", "Upkeep", "VacuumResult",
    "ErrorCode", "Expression", "TransactionId", "TrinityError",
    "cdc", "dbapi",
]  # fmt: skip

__version__ = "0.1.0"

if not TYPE_CHECKING:  # mypy would take any name for one of the module

    def __getattr__(name: str) -> object:
        """Names that need more than the others are loaded when they are first named."""
        import importlib

        if name in ("cdc", "dbapi"):
            return importlib.import_module(f"trinity.{name}")
        if name in ("apply_changes", "create_changes_target"):
            return getattr(importlib.import_module("trinity.applying"), name)
        raise AttributeError(f"module 'trinity' has no attribute '{name}'")
