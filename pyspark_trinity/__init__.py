"""The data source of ``format("trinity")``: Spark imports all installed modules ``pyspark_*`` to find it."""

from trinity.datasource.source import TrinityDataSource as DefaultSource

__all__ = ["DefaultSource"]
