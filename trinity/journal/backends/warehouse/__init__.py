"""Journals that Trinity stores."""
