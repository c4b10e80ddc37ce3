"""An adapter that stores no version after the second one, and keeps later ones in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from acme_trinity import AcmeFormat
from acme_trinity.metadata import AcmeMetadata
from trinity.spi import Connector, ConnectorContext, TableHandle
from trinity.storage import ParquetSinkProvider, TableVersion

KEPT: Final[dict[tuple[str, int], TableVersion]] = {}


class ForgetfulMetadata(AcmeMetadata):
    """The metadata of the adapter Acme; versions after the second are kept in memory, and lost with the process."""

    def newest_version(self, table: TableHandle) -> int:
        return max([super().newest_version(table), *(n for place, n in KEPT if place == table.location)])

    def read_version(self, table: TableHandle, number: int) -> TableVersion:
        kept = KEPT.get((table.location, number))
        return super().read_version(table, number) if kept is None else kept

    def write_version(self, table: TableHandle, version: TableVersion) -> None:
        if version.number > 2:
            KEPT[table.location, version.number] = version
        else:
            super().write_version(table, version)


class Forgetful(AcmeFormat):
    """The adapter Acme with :class:`ForgetfulMetadata`."""

    def create(self, catalog: str, options: Mapping[str, Any], context: ConnectorContext) -> Connector:
        return Connector(ForgetfulMetadata(catalog, str(options["warehouse"])), ParquetSinkProvider())
