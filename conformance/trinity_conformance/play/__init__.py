"""Histories on an adapter and on the model, and how their reads differ."""
