"""Plays histories on an adapter and on the model, and compares their reads."""
