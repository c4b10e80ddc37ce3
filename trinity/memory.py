"""The in-memory adapter: the smallest complete example of the SPI, and a test double.

Names, versions and commits are in this process. Data files are in a temporary folder, so that Spark's workers can
write them. Closing the connector removes everything.
"""

from __future__ import annotations

import tempfile
import threading
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trinity.errors import TrinityError
from trinity.spi import (
    EVERYTHING,
    TRANSFORMS,
    Capability,
    Connector,
    ConnectorContext,
    Format,
    TableDefinition,
    TableHandle,
)
from trinity.storage import (
    CommitRaced,
    ObjectStore,
    ParquetSinkProvider,
    TableVersion,
    VersionedMetadata,
    identity_only,
    no_table,
    table_taken,
)


class MemoryMetadata(VersionedMetadata):
    """The metadata of an in-memory catalog: schemas and tables in dictionaries under one lock."""

    keeps_deletes = True

    def __init__(self, catalog: str, folder: str) -> None:
        self._catalog = catalog
        self._folder = folder
        self._schemas: dict[str, dict[str, TableHandle]] = {"default": {}}
        self._versions: dict[str, list[TableVersion]] = {}
        self._lock = threading.RLock()

    # -- schemas and tables -----------------------------------------------------------------------------

    def list_schemas(self) -> list[str]:
        return sorted(self._schemas)

    def create_schema(self, schema: str) -> None:
        with self._lock:
            if schema in self._schemas:
                raise TrinityError("SCHEMA_ALREADY_EXISTS", f"Schema '{schema}' exists already.")
            self._schemas[schema] = {}

    def drop_schema(self, schema: str) -> None:
        with self._lock:
            if schema == "default":
                raise TrinityError("NOT_SUPPORTED", "Schema 'default' always exists; drop its tables.")
            if self._tables(schema):
                raise TrinityError("SCHEMA_NOT_EMPTY", f"Schema '{schema}' still holds tables; drop them first.")
            del self._schemas[schema]

    def list_tables(self, schema: str) -> list[str]:
        return sorted(self._tables(schema))

    def get_table(self, schema: str, table: str) -> TableHandle | None:
        return self._schemas.get(schema, {}).get(table)

    def create_table(self, definition: TableDefinition) -> TableHandle:
        identity_only(definition, "the in-memory format")
        with self._lock:
            tables = self._tables(definition.schema)
            if definition.name in tables:
                raise table_taken(f"{self._catalog}.{definition.schema}.{definition.name}")
            location = f"{self._folder}/{uuid.uuid4().hex}"
            handle = TableHandle(self._catalog, definition.schema, definition.name, location)
            first = TableVersion.first(definition)
            self._versions[location] = [first]
            tables[definition.name] = handle
            return handle.pinned(None, first.definition.id)

    def drop_table(self, table: TableHandle) -> None:
        with self._lock:
            self._of(table)
            del self._tables(table.schema)[table.table], self._versions[table.location]
        ObjectStore(table.location).delete_below("")

    def rename_table(self, table: TableHandle, schema: str, name: str) -> TableHandle:
        with self._lock:
            self._of(table)
            if name in self._tables(schema):
                raise table_taken(f"{self._catalog}.{schema}.{name}")
            del self._tables(table.schema)[table.table]
            renamed = replace(table, schema=schema, table=name)
            self._tables(schema)[name] = renamed
            return renamed

    # -- versions ---------------------------------------------------------------------------------------

    def newest_version(self, table: TableHandle) -> int:
        return len(self._of(table)) - 1

    def read_version(self, table: TableHandle, number: int) -> TableVersion:
        return self._of(table)[number]

    def write_version(self, table: TableHandle, version: TableVersion) -> None:
        with self._lock:
            versions = self._of(table)
            if version.number != len(versions):
                raise CommitRaced(f"version {version.number} was taken")
            versions.append(version)

    def _of(self, table: TableHandle) -> list[TableVersion]:
        if (found := self.get_table(table.schema, table.table)) is None or found.location != table.location:
            raise no_table(table.full_name)
        return self._versions[table.location]

    def _tables(self, schema: str) -> dict[str, TableHandle]:
        if schema not in self._schemas:
            raise TrinityError("SCHEMA_NOT_FOUND", f"Catalog '{self._catalog}' has no schema '{schema}'.")
        return self._schemas[schema]


class MemoryConnector(Connector):
    """The connector of one in-memory catalog."""

    def __init__(self, catalog: str) -> None:
        self._folder = tempfile.mkdtemp(prefix="trinity-memory-")
        super().__init__(MemoryMetadata(catalog, self._folder), ParquetSinkProvider())

    def close(self) -> None:
        ObjectStore(self._folder).delete_below("")


class MemoryFormat(Format):
    """The in-memory format. Its tables last as long as their session; a catalog's ``warehouse`` is ignored."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        return EVERYTHING - TRANSFORMS - {Capability.EXTERNAL_TABLES, Capability.COMMITS_IN_STORAGE}

    def create(self, catalog: str, options: Mapping[str, Any], context: ConnectorContext) -> Connector:
        unknown = set(options) - {"warehouse"}
        if unknown:
            raise TrinityError("CONFIGURATION_INVALID", f"Catalog '{catalog}': unknown option '{min(unknown)}'.")
        return MemoryConnector(catalog)
