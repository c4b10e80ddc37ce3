"""The parsing of statements, without looking up tables."""
