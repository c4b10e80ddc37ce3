"""Spark as Trinity uses it: start, settings and types, and what SQL text reaches beyond the rows of tables."""
