"""INSERT, MERGE, UPDATE and DELETE: names resolved, then to the engine."""
