"""Parquet tables: a folder of files under numbered manifests."""

from trinity_parquet.format import ParquetFormat

__all__ = ["ParquetFormat"]
