"""The change feed: what changed in a table between two of its versions (C1-C5)."""
