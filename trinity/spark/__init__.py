"""Spark as Trinity uses it: its start, settings and types, and the reach of SQL text."""
