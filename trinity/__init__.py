"""One merge semantics over Parquet, Delta and Iceberg tables, on Spark."""

from __future__ import annotations

import importlib
from types import ModuleType

from trinity.errors import TrinityError
from trinity.names import TableName
from trinity.session import Session, connect
from trinity.spi import Column, CommitResult

__all__ = ["Column", "CommitResult", "Session", "TableName", "TrinityError", "connect"]

__version__ = "0.1.0"


def __getattr__(name: str) -> ModuleType:
    """``trinity.dbapi`` is loaded when it is first named."""
    if name == "dbapi":
        return importlib.import_module("trinity.dbapi")
    raise AttributeError(f"module 'trinity' has no attribute '{name}'")
