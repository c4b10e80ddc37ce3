"""Storage schema: Parquet holds every type of Trinity unchanged."""

from __future__ import annotations

import pyarrow as pa

from trinity.spi import TableDefinition, stored_field


def storage_schema(definition: TableDefinition) -> pa.Schema:
    """Return the physical Arrow schema of a table's files. All fields are nullable: the engine checks NOT NULL."""
    return pa.schema([stored_field(c, c.to_arrow().type) for c in definition.columns])
