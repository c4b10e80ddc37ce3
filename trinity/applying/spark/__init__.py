"""Histories that Spark makes (SCD type 2)."""
