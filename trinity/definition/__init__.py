"""Definitions of tables: how one is made, checked and altered."""
