"""The place where Spark looks for ``format("trinity")``: it imports the modules ``pyspark_*`` that are installed."""

from trinity.datasource.source import TrinityDataSource as DefaultSource

__all__ = ["DefaultSource"]
