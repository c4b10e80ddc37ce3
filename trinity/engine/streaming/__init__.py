"""Streams into a table: a micro-batch is one commit, exactly once."""
