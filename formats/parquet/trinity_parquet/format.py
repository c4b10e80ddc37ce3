"""The adapter's entry point, which makes catalogs of Parquet tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trinity.errors import TrinityError
from trinity.spi import (
    EVERYTHING,
    TRANSFORMS,
    Capability,
    Connector,
    ConnectorContext,
    ConnectorMetadata,
    Format,
    TableHandle,
)
from trinity.storage import ObjectStore
from trinity_parquet.external import FolderTable
from trinity_parquet.folder import foreign_format
from trinity_parquet.metadata import ParquetMetadata
from trinity_parquet.options import ParquetOptions
from trinity_parquet.sink import FolderSinkProvider
from trinity_parquet.snapshot import is_table


class ParquetConnector(Connector):
    """One catalog of Parquet tables."""

    def __init__(self, catalog: str, options: ParquetOptions) -> None:
        metadata = ParquetMetadata(catalog, options.warehouse, options.checkpoint_interval)
        super().__init__(metadata, FolderSinkProvider())
        self._external: dict[str, FolderTable] = {}

    def open_external(self, table: TableHandle) -> ConnectorMetadata:
        store = ObjectStore(table.location)
        if is_table(store.location):
            return self.metadata
        if not store.is_folder() or (other := foreign_format(store)):
            what = f"is a table of format {other}; name that connector" if store.is_folder() else "is no folder"
            raise TrinityError("INVALID_ARGUMENTS", f"Table '{table.full_name}': '{store.root}' {what}.")
        return self._external.setdefault(table.location, FolderTable(table.location))


class ParquetFormat(Format):
    """The format of Parquet tables. It needs no Spark."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        return EVERYTHING - TRANSFORMS

    @property
    def in_object_stores(self) -> bool:
        return True

    def create(self, catalog: str, options: Mapping[str, Any], context: ConnectorContext) -> Connector:
        return ParquetConnector(catalog, ParquetOptions.of(catalog, options))
