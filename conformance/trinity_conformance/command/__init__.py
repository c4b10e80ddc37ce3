"""The command ``trinity-conformance``."""
