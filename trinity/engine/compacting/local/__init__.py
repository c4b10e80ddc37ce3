"""Compaction in this process, without a JVM."""
