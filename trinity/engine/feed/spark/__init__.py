"""The change feed by Spark."""
