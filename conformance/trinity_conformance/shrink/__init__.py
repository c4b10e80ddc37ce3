"""Shrinks failing histories and programs."""
