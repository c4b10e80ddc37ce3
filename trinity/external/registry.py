"""The registry: what external and federated tables are registered as, one JSON file for each.

A file is put if absent, so that two processes cannot take one name (:mod:`trinity.external.entries`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from trinity.errors import TrinityError
from trinity.external.entries import SUFFIX, entries_of
from trinity.merge.parse import merge_spec
from trinity.spi import TableDefinition
from trinity.storage import AlreadyExists, ObjectStore

if TYPE_CHECKING:
    from trinity.names import TableName

__all__ = ["Registration", "Registry"]

FOLDER: Final = "_trinity/external"
_ASIDE: Final = "_trinity/aside"
_BESIDE: Final = ("name", "id")
"""What a file may have beside the registration."""
_MOST: Final = 200
"""Letters of a file's or folder's name, so that a disk takes it with what is added to it."""
_DIGEST: Final = "%-"
"""The beginning of the digest of a longer name, and of no quoted text."""


@dataclass(frozen=True)
class Registration:
    """Entry of a table in a registry.

    Attributes:
        connector: name of the format: ``delta``.
        location: absolute folder or URI; None for a table of the catalog that its name says (a federated one).
        primary_key: key columns; empty for a plain table, or where the table's own properties name them.
        properties: table properties in canonical spelling.
    """

    connector: str
    location: str | None
    primary_key: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)

    def define(self, own: TableDefinition) -> TableDefinition:
        """The table's own definition with the registered key and properties.

        Raises:
            TrinityError: INVALID_TABLE_PROPERTY where the table's own properties say something else, and what a
                CREATE TABLE with this key and these options would raise.
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
    """The registrations in one warehouse.

    Args:
        warehouse: its folder.
    """

    def __init__(self, warehouse: str) -> None:
        self._store = ObjectStore(warehouse)
        self._entries = entries_of(self._store)

    def get(self, name: TableName) -> Registration | None:
        """The entry of a name. Raises BAD_DATA naming a damaged file."""
        try:
            said = json.loads(self._entries.get(_file(name)))
            data = {key: value for key, value in said.items() if key not in _BESIDE}
            return Registration(**{**data, "primary_key": tuple(data["primary_key"])})
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise TrinityError(
                "BAD_DATA",
                f"Registration '{self._store.path(_file(name))}' is corrupt ({error}); restore it from a copy, or "
                "delete it and register the table again.",
            ) from error

    def add(self, name: TableName, registration: Registration) -> None:
        """Registers a table. Raises TABLE_ALREADY_EXISTS."""
        try:
            self._entries.add(_file(name), _encode(name, registration))
        except AlreadyExists as taken:
            raise TrinityError(
                "TABLE_ALREADY_EXISTS", f"Table '{name}' is registered already; drop it first, which leaves its files."
            ) from taken

    def change(self, name: TableName, registration: Registration) -> None:
        """Replaces a registration, whole or not at all."""
        self._entries.replace(_file(name), _encode(name, registration))

    def remove(self, name: TableName) -> bool:
        """Forget a table, whose files stay; False where another one has forgotten it since."""
        return self._entries.remove(_file(name))

    def aside(self, name: TableName) -> str:
        """A folder of the warehouse for what is kept about a table, and must not lie among its files."""
        return self._store.path("/".join((_ASIDE, *map(_quoted, name.parts))))

    def tables(self, catalog: str, schema: str) -> list[str]:
        """Names that are registered in a schema, sorted."""
        folder = _folder(catalog, schema)
        return sorted(self._name(f"{folder}/{file}") for file in self._entries.names(folder))

    def _name(self, file: str) -> str:
        """The table's name, by its file."""
        stem = file.rpartition("/")[2].removesuffix(SUFFIX)
        if not stem.startswith(_DIGEST):
            return unquote(stem)
        try:
            return str(json.loads(self._entries.get(file))["name"])
        except (OSError, TrinityError, ValueError, KeyError, TypeError):  # damaged: its reader says so
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
