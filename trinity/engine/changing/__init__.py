"""Row changes: MERGE, UPDATE and DELETE, planned, run through merge sinks, committed or run again."""
