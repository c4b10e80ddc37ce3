"""External and federated tables: tables that others wrote become Trinity tables by naming their keys (U7)."""

from trinity.external.tables import ExternalTables

__all__ = ["ExternalTables"]
