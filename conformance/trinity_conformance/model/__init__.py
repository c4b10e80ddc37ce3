"""The meaning of a merged read in plain Python, written from the rules and not from an implementation."""
