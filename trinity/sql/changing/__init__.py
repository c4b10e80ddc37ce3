"""INSERT, MERGE, UPDATE and DELETE: names are resolved, and the engine runs them."""
