"""Compaction by Spark."""
