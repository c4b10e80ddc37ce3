"""Journals in Trinity tables."""
