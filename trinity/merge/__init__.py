"""Merge engines: the :class:`~trinity.merge.spec.MergeSpec` of table properties, and its fold, in SQL and in Arrow."""
