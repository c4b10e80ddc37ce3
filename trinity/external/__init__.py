"""External and federated tables: tables of other writers, for which a key can be registered (U7)."""

from trinity.external.tables import ExternalTables, registered_only

__all__ = ["ExternalTables", "registered_only"]
