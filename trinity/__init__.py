"""One merge semantics over Parquet, Delta and Iceberg tables, in one process and on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from trinity import cdc, dbapi
    from trinity.applying import apply_changes, create_changes_target
    from trinity.builder import MergeBuilder
    from trinity.connecting import connect
    from trinity.engine.compacting.health import Health, TierSize
    from trinity.engine.compacting.upkeep import Upkeep
    from trinity.engine.program import Counts, Expression
    from trinity.errors import ErrorCode, TrinityError
    from trinity.names import TableName
    from trinity.result import Result
    from trinity.session import Session
    from trinity.spi import Check, Column, CommitResult, LostCommit, RepairResult, TransactionId, VacuumResult
    from trinity.table import Table

__all__ = [
    "connect", "apply_changes", "create_changes_target",
    "Session", "Table", "MergeBuilder", "Result", "TableName",
    "Check", "Column",
    "CommitResult", "Counts", "Health", "LostCommit", "RepairResult", "TierSize", "Upkeep", "VacuumResult",
    "ErrorCode", "Expression", "TransactionId", "TrinityError",
    "cdc", "dbapi",
]  # fmt: skip

__version__ = "0.1.0"

_PLACES: Final = {
    "applying": ("apply_changes", "create_changes_target"),
    "builder": ("MergeBuilder",),
    "connecting": ("connect",),
    "engine.program": ("Counts", "Expression"),
    "engine.compacting.health": ("Health", "TierSize"),
    "engine.compacting.upkeep": ("Upkeep",),
    "errors": ("ErrorCode", "TrinityError"),
    "names": ("TableName",),
    "result": ("Result",),
    "session": ("Session",),
    "spi": ("Check", "Column", "CommitResult", "LostCommit", "RepairResult", "TransactionId", "VacuumResult"),
    "table": ("Table",),
}
"""Module -> the exported names that it defines."""
_PACKAGES: Final = ("cdc", "dbapi", "errors", "journal", "spi", "storage")

if not TYPE_CHECKING:  # with this function mypy would accept any name of the module

    def __getattr__(name: str) -> object:
        """Load a name, or a package, when it is first used.

        Every import of a module below waits for this one. If this module loaded these names, two threads could wait for
        each other: one that imports this module, and one that imports a module below.
        """
        from importlib import import_module

        if name in _PACKAGES:
            return import_module(f"trinity.{name}")
        for module, names in _PLACES.items():
            if name in names:
                globals()[name] = found = getattr(import_module(f"trinity.{module}"), name)
                return found
        raise AttributeError(f"module 'trinity' has no attribute '{name}'")

    def __dir__() -> list[str]:
        return sorted([*__all__, "__version__"])
