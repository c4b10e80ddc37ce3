"""The Iceberg adapter: Trinity tables as Iceberg v2 tables, committed by PyIceberg without a JVM."""

from trinity_iceberg.format import IcebergConnector, IcebergFormat
from trinity_iceberg.options import IcebergOptions

__all__ = ["IcebergConnector", "IcebergFormat", "IcebergOptions"]
