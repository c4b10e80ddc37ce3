"""Appends: rows of any kind, checked, through sinks into one commit."""
