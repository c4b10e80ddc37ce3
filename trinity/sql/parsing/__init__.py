"""Statements parsed as they are written; tables are not looked up."""
