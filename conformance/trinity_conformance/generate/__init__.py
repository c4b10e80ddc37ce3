"""Hypothesis strategies: tables, histories and programs of statements."""
