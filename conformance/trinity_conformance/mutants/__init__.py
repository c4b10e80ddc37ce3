"""Proof that the suite finds faults: mutants of the model that generated histories must find."""
