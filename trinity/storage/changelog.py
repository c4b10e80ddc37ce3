"""The changelog of a table: files with the changes of versions, and for each version an object that lists its files.

The object is put last and never changed, so its list is complete, also after a crash. Files that no object lists are
orphans. The changes of a version can be computed again, so it does no harm if a part of the changelog is lost.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from trinity.loggers import logger
from trinity.spi import Column, DataFile
from trinity.storage.entries import Entry
from trinity.storage.errors import AlreadyExists
from trinity.storage.location import Location
from trinity.storage.orphans import CHANGELOG as CHANGELOG
from trinity.storage.parquet_sink import is_parquet
from trinity.storage.store import ObjectStore

_ENDING: Final = ".json"

_log = logger("trinity.storage")


@dataclass(frozen=True)
class StoredChanges:
    """The stored changes of one version.

    Attributes:
        version: the version.
        files: absolute paths of the Parquet files; empty when nothing changed.
        rows: number of rows in them.
        bytes: their size.
        columns: the table's columns that the files have; in the files the columns of the change feed follow.
    """

    version: int
    files: tuple[str, ...] = ()
    rows: int = 0
    bytes: int = 0
    columns: tuple[Column, ...] = ()


class Changelog:
    """The changelog in one folder.

    Args:
        folder: the folder, absolute; it need not exist.
    """

    def __init__(self, folder: str | Location) -> None:
        self.store = ObjectStore(folder)

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(self.store.names())

    def find(self, version: int, tag: str) -> StoredChanges | None:
        """Return the changes of a version; None if they are not listed, or one of their files is missing.

        Args:
            version: the version.
            tag: tells it from versions of the same number, since a table may be made anew.
        """
        return self._read(version, tag) if _name(version, tag) in self._names else None

    def put(self, version: int, tag: str, columns: Sequence[Column], files: Sequence[DataFile]) -> StoredChanges:
        """List the files of a version. If another writer listed its files, delete these and return the listed ones."""
        named = [(self.store.relative(f.path), f.rows, f.size) for f in files]
        known = [
            {"name": c.name, "type": c.type, "field_id": c.field_id, **({"within": c.within} if c.within else {})}
            for c in columns
        ]
        data = json.dumps({"version": version, "files": named, "columns": known}).encode()
        try:
            self.store.put_if_absent(_name(version, tag), data, commits=False)
        except AlreadyExists:
            if (first := self._read(version, tag)) is not None:
                self.store.delete(f.path for f in files)
                return first
            self.store.put(_name(version, tag), data)
        return self._stored(json.loads(data))

    def prune(self, wanted: Iterable[tuple[int, str]], older_than_ms: int) -> list[Entry]:
        """Delete all but the changes of some versions, and return the deleted Parquet files.

        Args:
            wanted: (version, tag) of the versions that stay.
            older_than_ms: milliseconds since the epoch; younger files that nothing lists stay, as they may be listed
                soon.
        """
        names = {_name(version, tag) for version, tag in wanted}
        self.store.delete(n for n in self.store.names() if n.endswith(_ENDING) and n not in names)
        listed = {path for name in names for path in self._listed(name)}
        gone = [
            entry
            for entry in self.store.list()
            if is_parquet(entry.path)
            and self.store.path(entry.path) not in listed
            and entry.modified_ms <= older_than_ms
        ]
        self.store.delete(entry.path for entry in gone)
        return gone

    def _listed(self, name: str) -> Collection[str]:
        found = self._load(name)
        return found.files if found else ()

    def _read(self, version: int, tag: str) -> StoredChanges | None:
        found = self._load(_name(version, tag))
        return found if found and all(map(self.store.exists, found.files)) else None

    def _load(self, name: str) -> StoredChanges | None:
        try:
            return self._stored(json.loads(self.store.get(name)))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            _log.warning("'%s' is damaged, what it lists is computed again: %s", self.store.path(name), error)
            return None

    def _stored(self, data: dict[str, Any]) -> StoredChanges:
        files: list[tuple[str, int, int]] = data["files"]
        return StoredChanges(
            data["version"],
            tuple(self.store.path(name) for name, _, _ in files),
            sum(rows for _, rows, _ in files),
            sum(size for _, _, size in files),
            tuple(Column(**{**column, "within": tuple(column.get("within", ()))}) for column in data["columns"]),
        )


def _name(version: int, tag: str) -> str:
    return f"{version:020d}-{tag}{_ENDING}"
