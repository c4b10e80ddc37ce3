"""Queries: references to Trinity's tables become merged reads."""
