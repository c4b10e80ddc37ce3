"""The entry point: it makes catalogs of Ledger tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledger_trinity.metadata import LedgerMetadata
from trinity.errors import TrinityError
from trinity.spi import EVERYTHING, TRANSFORMS, Capability, Connector, ConnectorContext, Format
from trinity.storage import ParquetSinkProvider


class LedgerFormat(Format):
    """The format of Ledger tables. It needs no Spark. Its one option is ``warehouse``, the folder of the catalog."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        lacks = {Capability.EXTERNAL_TABLES, Capability.RENAME_TABLE, Capability.REPAIR, Capability.COMMITS_IN_STORAGE}
        return EVERYTHING - TRANSFORMS - lacks

    def create(self, catalog: str, options: Mapping[str, Any], context: ConnectorContext) -> Connector:
        if set(options) != {"warehouse"}:
            raise TrinityError(
                "CONFIGURATION_INVALID",
                f"Catalog '{catalog}' takes the option 'warehouse' and no other; it has {sorted(options)}.",
            )
        return Connector(LedgerMetadata(catalog, str(options["warehouse"])), ParquetSinkProvider())
