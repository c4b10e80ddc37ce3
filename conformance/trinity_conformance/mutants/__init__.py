"""Proof that the suite bites: faults that generated histories must find."""
