"""The registry of external and federated tables: one JSON file for each.

A file is put if absent, so that two processes cannot register the same name (:mod:`trinity.external.entries`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from trinity.errors import TrinityError
from trinity.external.entries import SUFFIX, entries_of
from trinity.merge.spec import merge_spec
from trinity.spi import TableDefinition
from trinity.storage import AlreadyExists, ObjectStore

if TYPE_CHECKING:
    from trinity.names import TableName

FOLDER: Final = "_trinity/external"
_METADATA: Final = "_trinity/aside"
_NOT_OF_REGISTRATION: Final = ("name", "id")
"""Keys of a file that are no attributes of the registration."""
_MOST: Final = 200
"""Maximum characters of a file's or folder's name, so that file systems allow it with its suffixes."""
_DIGEST: Final = "%-"
"""Prefix of the digest of a longer name; no quoted text begins with it."""


@dataclass(frozen=True)
class Registration:
    """The entry of a table in a registry.

    Attributes:
        connector: name of the format: ``delta``.
        location: absolute folder or URI; None for a table of the catalog in its name (a federated one).
        primary_key: key columns; empty for a plain table, or when the table's own properties name them.
        properties: table properties in canonical spelling.
    """

    connector: str
    location: str | None
    primary_key: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)

    def define(self, own: TableDefinition) -> TableDefinition:
        """Return the table's own definition with the registered key and properties.

        Raises:
            TrinityError: INVALID_TABLE_PROPERTY if the table's own properties differ; errors of a CREATE TABLE with
                this key and these properties.
        """
        key = own.with_key(self.primary_key).primary_key
        given = self.properties
        if own.keyed and key not in ((), own.primary_key):
            raise _differs(own, "primary-key", ",".join(own.primary_key), ",".join(key))
        for option in given.keys() & own.properties.keys():
            if given[option] != own.properties[option]:
                raise _differs(own, option, own.properties[option], given[option])
        found = replace(own, primary_key=own.primary_key or key, properties={**given, **own.properties})
        merge_spec(found)
        return found


def _differs(own: TableDefinition, option: str, present: str, given: str) -> TrinityError:
    return TrinityError(
        "INVALID_TABLE_PROPERTY",
        f"Table '{own.full_name}' says of itself '{option}' = '{present}', and '{given}' is given; leave it out.",
    )


class Registry:
    """The registrations in one warehouse."""

    def __init__(self, warehouse: str) -> None:
        self._store = ObjectStore(warehouse)
        self._entries = entries_of(self._store)

    def get(self, name: TableName) -> Registration | None:
        """Return the registration of a name; None without one. Raises BAD_DATA naming a damaged file."""
        try:
            return self._decoded(name, self._entries.get(_file(name)))
        except FileNotFoundError:
            return None

    def _decoded(self, name: TableName, data: bytes) -> Registration:
        try:
            entry = {key: value for key, value in json.loads(data).items() if key not in _NOT_OF_REGISTRATION}
            return Registration(**{**entry, "primary_key": tuple(entry["primary_key"])})
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise TrinityError(
                "BAD_DATA",
                f"Registration '{self._store.path(_file(name))}' is corrupt ({error}); restore it from a copy, or "
                "delete it and register the table again.",
            ) from error

    def add(self, name: TableName, registration: Registration, check: Callable[[], object]) -> None:
        """Register a table, after ``check``, which raises an error if something else has the name.

        Whoever gives the name to something else does so within :meth:`excluding`.

        Raises:
            TrinityError: TABLE_ALREADY_EXISTS; errors of ``check``.
        """
        try:
            self._entries.add(_file(name), _encode(name, registration), check)
        except AlreadyExists as taken:
            raise TrinityError(
                "TABLE_ALREADY_EXISTS", f"Table '{name}' is registered already; drop it first, which leaves its files."
            ) from taken

    def change(self, name: TableName, changed: Callable[[Registration], Registration]) -> bool:
        """Change a registration atomically; return False if there is none, as after a concurrent removal."""
        return self._entries.change(_file(name), lambda data: _encode(name, changed(self._decoded(name, data))))

    def remove(self, name: TableName) -> bool:
        """Remove a table's registration; its files stay. Return False if a concurrent call has removed it."""
        return self._entries.remove(_file(name))

    def metadata_folder(self, name: TableName) -> str:
        """Return the folder of the warehouse for files about a table that must not be among its own files."""
        return self._store.path("/".join((_METADATA, *map(_quoted, name.parts))))

    def tables(self, catalog: str, schema: str) -> list[str]:
        """Return the names that are registered in a schema, sorted."""
        folder = _folder(catalog, schema)
        return self._names(folder, self._entries.names(folder))

    def excluding(
        self, catalog: str, schema: str, check: Callable[[list[str]], object], table: str | None = None
    ) -> AbstractContextManager[None]:
        """Run a block that makes a table or drops a schema, so that nothing is registered there meanwhile.

        Args:
            catalog: the catalog.
            schema: the schema.
            check: is given the registered names of the schema, and raises an error if the block must not run; called as
                by :meth:`trinity.external.entries.Entries.excluding`.
            table: the table that the block makes; None for a block that drops the schema.
        """
        folder = _folder(catalog, schema)
        name = table and f"{_quoted(table)}{SUFFIX}"
        return self._entries.excluding(folder, lambda files: check(self._names(folder, files)), name)

    def _names(self, folder: str, files: Iterable[str]) -> list[str]:
        return sorted(self._name(f"{folder}/{file}") for file in files)

    def _name(self, file: str) -> str:
        """Return the name of a table, by its file."""
        stem = file.rpartition("/")[2].removesuffix(SUFFIX)
        if not stem.startswith(_DIGEST):
            return unquote(stem)
        try:
            return str(json.loads(self._entries.get(file))["name"])
        except (OSError, TrinityError, ValueError, KeyError, TypeError):  # damaged: get() raises the error
            return stem


def _folder(catalog: str, schema: str) -> str:
    return "/".join((FOLDER, _quoted(catalog), _quoted(schema)))


def _file(name: TableName) -> str:
    return f"{_folder(name.catalog, name.schema)}/{_quoted(name.table)}{SUFFIX}"


def _quoted(part: str) -> str:
    text = quote(part, safe="").replace(".", "%2E")
    return text if len(text) <= _MOST else _DIGEST + hashlib.sha256(part.encode()).hexdigest()


def _encode(name: TableName, registration: Registration) -> bytes:
    return json.dumps({"name": name.table, **asdict(registration)}, indent=1).encode()
