"""The entry point: it makes catalogs of DuckLake tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ducklake_trinity.metadata import DuckLakeMetadata
from trinity.errors import TrinityError
from trinity.spi import EVERYTHING, TRANSFORMS, Capability, Connector, ConnectorContext, Format
from trinity.storage import ParquetSinkProvider

_LACKS = TRANSFORMS | {Capability.EXTERNAL_TABLES, Capability.RENAME_TABLE, Capability.COMMITS_IN_STORAGE}


class DuckLakeFormat(Format):
    """The format of DuckLake tables. It needs no Spark. Its one option is ``warehouse``, the folder of the catalog."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        return EVERYTHING - _LACKS

    def create(self, catalog: str, options: Mapping[str, Any], context: ConnectorContext) -> Connector:
        if set(options) != {"warehouse"}:
            raise TrinityError(
                "CONFIGURATION_INVALID",
                f"Catalog '{catalog}' takes the option 'warehouse' and no other; it has {sorted(options)}.",
            )
        return Connector(DuckLakeMetadata(catalog, str(options["warehouse"])), ParquetSinkProvider())
