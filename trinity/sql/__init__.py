"""SQL statements: parsed with sqlglot; DDL is interpreted from its tree, queries go to Spark as written."""
