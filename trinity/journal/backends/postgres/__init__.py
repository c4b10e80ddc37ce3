"""Journals in PostgreSQL, through psycopg 3."""
