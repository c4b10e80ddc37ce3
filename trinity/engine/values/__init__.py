"""The values that columns take: assignment, DEFAULT, CHECK, and changes of a table that its rows must meet."""
