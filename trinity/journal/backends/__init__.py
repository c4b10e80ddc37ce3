"""Backends, on which rewritten statements run: PostgreSQL, or Trinity's own tables."""
