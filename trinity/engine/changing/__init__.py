"""Row changes: MERGE, UPDATE and DELETE are planned, run through merge sinks, and committed or run again."""
