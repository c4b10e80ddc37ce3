"""Definitions of tables: making, checking and altering them."""
