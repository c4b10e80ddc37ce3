"""ALTER TABLE through the SPI alone, for the adapters' own tests."""

from __future__ import annotations

from collections.abc import Mapping

from trinity.definition import evolve
from trinity.spi import Column, Connector, TableHandle


def set_properties(lake: Connector, table: TableHandle, properties: Mapping[str, str]) -> None:
    """Set table properties without checks; properties that are not named stay as they are."""
    lake.metadata.alter_table(table, lambda d: d.with_properties({**d.properties, **properties}))


def add_column(lake: Connector, table: TableHandle, column: Column) -> None:
    lake.metadata.alter_table(table, lambda d: evolve.added(d, column))
