"""One merge semantics over Parquet, Delta and Iceberg tables, on Spark."""

from __future__ import annotations

from trinity.errors import TrinityError
from trinity.session import Session, TableName, connect
from trinity.spi import Column, CommitResult

__all__ = ["Column", "CommitResult", "Session", "TableName", "TrinityError", "connect"]

__version__ = "0.1.0"
