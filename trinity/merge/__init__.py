"""Merge engines: options to :class:`~trinity.merge.spec.MergeSpec`, and its fold as Spark columns."""
