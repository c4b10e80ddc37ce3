"""Settings of a catalog of Parquet tables."""

from __future__ import annotations

from pydantic import Field

from trinity.options import CatalogOptions


class ParquetOptions(CatalogOptions):
    """Settings of a catalog.

    Attributes:
        warehouse: folder of the catalog, a path or ``file:`` URI.
        checkpoint_interval: number of versions from one checkpoint to the next.
    """

    warehouse: str
    checkpoint_interval: int = Field(default=10, ge=2, alias="checkpoint-interval")
