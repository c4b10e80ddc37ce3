"""Rows into sinks, by Spark."""
