"""The change feed in this process, as Arrow data."""
