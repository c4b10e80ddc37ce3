"""Backends that run rewritten statements: PostgreSQL, or Trinity's own tables."""
