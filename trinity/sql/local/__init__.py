"""SQL queries in this process: expressions by Trinity over Arrow data; joins, groups and orders by DuckDB."""
