"""The engine: ingest, sinks, scans, the merged read, compaction."""
