"""A Trinity adapter for DuckLake tables."""

from ducklake_trinity.format import DuckLakeFormat

__all__ = ["DuckLakeFormat"]
