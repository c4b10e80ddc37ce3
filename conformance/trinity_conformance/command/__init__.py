"""The checks, the suite that runs them, and ``trinity-conformance``."""
