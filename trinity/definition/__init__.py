"""Definitions of tables: how one is made, checked, and becomes the next one."""
