"""SQL queries in this process: Trinity evaluates expressions over Arrow data; DuckDB joins, groups and sorts."""
