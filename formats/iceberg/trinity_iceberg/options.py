"""Settings of an Iceberg catalog, and what Trinity sets of it."""

from __future__ import annotations

from typing import Any, Final

from pydantic import ConfigDict, Field

from trinity.storage import CatalogOptions, Location

__all__ = ["CATALOG_FILE", "DEFAULT_SCHEMA", "FILE_IO", "IcebergOptions"]

DEFAULT_SCHEMA: Final = "default"
CATALOG_FILE: Final = "catalog.db"
FILE_IO: Final = {"py-io-impl": "trinity_iceberg.io.SyncedFileIO"}
"""The way in which PyIceberg writes files, unless a catalog's options say otherwise."""
BUSY_TIMEOUT_S: Final = 60
"""Seconds that a connection waits for SQLite's lock; writers hold it for a millisecond."""


class IcebergOptions(CatalogOptions):
    """Settings of an Iceberg catalog. Keys that are not listed here go to PyIceberg's catalog as they are.

    Attributes:
        warehouse: folder of the catalog; needed by the SQLite catalog, and the default place of its file.
        type: PyIceberg's catalog type: ``sql`` (default), ``rest``, ``glue``, ``hive``, ...
        uri: address of the catalog; for ``sql`` SQLite's ``<warehouse>/catalog.db`` when left out.
        catalog_name: ``catalog-name``, by which the catalog's tables are registered; the Trinity catalog's name
            when left out. Spark's JDBC catalog finds the tables only under the same name.
    """

    model_config = ConfigDict(extra="allow")

    warehouse: str | None = None
    type: str = "sql"
    uri: str | None = None
    catalog_name: str | None = Field(None, alias="catalog-name")

    @property
    def folder(self) -> Location | None:
        """The warehouse, when it has a local one."""
        return Location.of(self.warehouse) if self.warehouse and self.type == "sql" else None

    def properties(self) -> dict[str, str]:
        """The properties of PyIceberg's catalog."""
        found = {"type": self.type, **FILE_IO, **{k: _text(v) for k, v in (self.model_extra or {}).items()}}
        folder = self.folder
        if self.warehouse:
            found["warehouse"] = folder.format_uri if folder else self.warehouse
        if self.uri:
            found["uri"] = self.uri
        elif folder:
            found["uri"] = f"sqlite:///{folder.join(CATALOG_FILE)}?timeout={BUSY_TIMEOUT_S}"
        return found


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
