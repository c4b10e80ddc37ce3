"""Spark as Trinity uses it: starting it, its settings, types and errors, and what a text of SQL reaches."""
