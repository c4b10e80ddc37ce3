"""Queries: Trinity's tables in them become merged reads."""
