"""INSERT, MERGE, UPDATE and DELETE: their names are resolved here, and the engine runs them."""
