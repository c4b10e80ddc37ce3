"""Settings of a Delta catalog."""

from __future__ import annotations

from trinity.storage import CatalogOptions

__all__ = ["DeltaOptions"]


class DeltaOptions(CatalogOptions):
    """Settings of a catalog.

    Attributes:
        warehouse: folder of the catalog, a path or ``file:`` URI.
    """

    warehouse: str
