"""Compaction: fewer files that mean the same."""
