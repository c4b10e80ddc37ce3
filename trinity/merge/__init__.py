"""Merge engines: table properties to :class:`~trinity.merge.spec.MergeSpec`, and its fold as Spark columns."""
