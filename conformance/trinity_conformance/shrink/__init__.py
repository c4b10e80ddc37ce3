"""Failing histories and programs made small."""
