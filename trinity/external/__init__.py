"""External and federated tables: tables of other writers become Trinity tables when their keys are named (U7)."""

from trinity.external.tables import ExternalTables

__all__ = ["ExternalTables"]
