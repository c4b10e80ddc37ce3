"""The entry point: catalogs of Parquet tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trinity.errors import TrinityError
from trinity.spi import Connector, ConnectorContext, Format
from trinity.storage import ParquetSinkProvider
from trinity_parquet.metadata import ParquetMetadata

__all__ = ["ParquetConnector", "ParquetFormat", "ParquetOptions"]


class ParquetOptions(BaseModel):
    """Settings of a catalog.

    Attributes:
        warehouse: folder of the catalog, a path or ``file:`` URI.
        checkpoint_interval: a checkpoint is written every so many versions.
    """

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    warehouse: str
    checkpoint_interval: int = Field(default=10, ge=2, alias="checkpoint-interval")


class ParquetConnector(Connector):
    """One catalog of Parquet tables."""

    def __init__(self, catalog: str, options: ParquetOptions) -> None:
        metadata = ParquetMetadata(catalog, options.warehouse, options.checkpoint_interval)
        super().__init__(metadata, ParquetSinkProvider())


class ParquetFormat(Format):
    """Parquet files without a table format of their own; needs nothing of Spark."""

    def create(self, catalog: str, options: Mapping[str, Any], context: ConnectorContext) -> Connector:
        try:
            return ParquetConnector(catalog, ParquetOptions(**options))
        except ValidationError as error:
            raise TrinityError("CONFIGURATION_INVALID", f"Catalog '{catalog}': {error}") from error
