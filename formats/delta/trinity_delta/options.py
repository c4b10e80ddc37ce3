"""Settings of a Delta catalog."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from trinity.options import CatalogOptions


class DeltaOptions(CatalogOptions):
    """Settings of a catalog: exactly one of the two is given.

    Attributes:
        warehouse: folder of the catalog, a path or ``file:`` URI, or ``s3://bucket/path``.
        spark_catalog: name of a Spark catalog, whose Delta tables this catalog has under their names there.
    """

    warehouse: str | None = None
    spark_catalog: str | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.warehouse is None) == (self.spark_catalog is None):
            raise ValueError("give 'warehouse', a folder, or 'spark_catalog', the name of a catalog of Spark's")
        return self
