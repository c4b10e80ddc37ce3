"""Histories that this process makes in Arrow (SCD type 2), without a JVM."""
