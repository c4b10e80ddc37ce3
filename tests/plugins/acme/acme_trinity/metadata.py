"""Versions of Acme tables: each is one JSON object, ``<table>/_acme/<20 digits>.json``, put only if it is absent.

These objects are never deleted, so no version number is used twice. A vacuum deletes data files only.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from trinity.errors import TrinityError
from trinity.spi import DataFile, TableDefinition, TableHandle
from trinity.storage import (
    AlreadyExists,
    CommitRaced,
    FolderCatalog,
    FolderMetadata,
    ObjectStore,
    TableVersion,
    VersionedMetadata,
    identity_only,
    no_table,
)

LOG = "_acme"


class AcmeMetadata(FolderMetadata, VersionedMetadata):
    """The metadata of a catalog: a table is a folder below the warehouse, a version is an object below the table."""

    def __init__(self, catalog: str, warehouse: str) -> None:
        super().__init__(FolderCatalog(catalog, warehouse, lambda folder: ObjectStore(folder).exists(_object(0))))

    def create_table(self, definition: TableDefinition) -> TableHandle:
        identity_only(definition, "Acme")
        return self.make_table(self._folders.new_table(definition.schema, definition.name), definition)

    def newest_version(self, table: TableHandle) -> int:
        names = [Path(entry.path).stem for entry in ObjectStore(table.location).list(LOG)]
        numbers = [int(name) for name in names if name.isdecimal()]
        if not numbers:
            raise no_table(table.full_name)
        return max(numbers)

    def read_version(self, table: TableHandle, number: int) -> TableVersion:
        store = ObjectStore(table.location)
        try:
            return _decode(store, json.loads(store.get(_object(number))))
        except (FileNotFoundError, ValueError, KeyError, TypeError) as error:
            raise TrinityError(
                "BAD_DATA",
                f"'{store.path(_object(number))}' of table '{table.full_name}' is missing or corrupt ({error!r}); "
                "restore it from a copy.",
            ) from error

    def write_version(self, table: TableHandle, version: TableVersion) -> None:
        store = ObjectStore(table.location)
        try:
            store.put_if_absent(_object(version.number), json.dumps(_encode(store, version)).encode())
        except AlreadyExists as taken:
            raise CommitRaced(f"version {version.number} was taken") from taken


def _object(number: int) -> str:
    return f"{LOG}/{number:020d}.json"


def _encode(store: ObjectStore, version: TableVersion) -> dict[str, Any]:
    return {
        "number": version.number,
        "timestamp_ms": version.timestamp_ms,
        "operation": version.operation,
        "definition": version.definition.to_dict(),
        "files": [file.moved(store.relative(file.path)).to_dict() for file in version.files],
        "txns": dict(version.txns),
        "oldest": version.oldest,
        "commit": version.commit,
    }


def _decode(store: ObjectStore, data: dict[str, Any]) -> TableVersion:
    files = [DataFile.from_dict(file) for file in data["files"]]
    return TableVersion(
        data["number"],
        data["timestamp_ms"],
        data["operation"],
        TableDefinition.from_dict(data["definition"]),
        tuple(file.moved(store.path(file.path)) for file in files),
        data["txns"],
        data["oldest"],
        data["commit"],
    )
