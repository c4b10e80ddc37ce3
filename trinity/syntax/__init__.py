"""SQL text and its trees: parsing, names, types and literals, for the packages engine, sql and journal."""
