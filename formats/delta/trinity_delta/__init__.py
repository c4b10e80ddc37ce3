"""Delta tables: commits go through Delta's own transaction log, data files through the shared sink."""

from trinity_delta.format import DeltaConnector, DeltaFormat
from trinity_delta.options import DeltaOptions

__all__ = ["DeltaConnector", "DeltaFormat", "DeltaOptions"]
