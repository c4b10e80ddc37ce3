"""The entry point: it makes catalogs of Acme tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from acme_trinity.metadata import AcmeMetadata
from trinity.errors import TrinityError
from trinity.spi import EVERYTHING, TRANSFORMS, Capability, Connector, ConnectorContext, Format
from trinity.storage import ParquetSinkProvider


class AcmeFormat(Format):
    """The format of Acme tables. It needs no Spark. Its one option is ``warehouse``, the folder of the catalog."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        return EVERYTHING - TRANSFORMS - {Capability.EXTERNAL_TABLES, Capability.RESOLVE}

    def create(self, catalog: str, options: Mapping[str, Any], context: ConnectorContext) -> Connector:
        if set(options) != {"warehouse"}:
            raise TrinityError(
                "CONFIGURATION_INVALID",
                f"Catalog '{catalog}' takes the option 'warehouse' and no other; it has {sorted(options)}.",
            )
        return Connector(AcmeMetadata(catalog, str(options["warehouse"])), ParquetSinkProvider())
