"""SQL text and its trees: parsing, names, types, literals; for the engine, SQL and the journal."""
