"""The database of a warehouse: names, versions, and in which versions each file is live.

Each call is one transaction. A version's definition is whole; files are rows with the first version in which they are
live, and the first one in which they are not any more. Paths are relative, so that a warehouse can be moved.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any, Final

from trinity.errors import TrinityError
from trinity.spi import KEEPS_ROWS, DataFile, HistoryEntry, TableDefinition
from trinity.storage import (
    CommitRaced,
    FileChange,
    Location,
    ObjectStore,
    PositionDeletes,
    TableVersion,
    commit_point,
)

_DEFAULT: Final = "default"
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS schemas (name TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS tables (
    id TEXT PRIMARY KEY, schema TEXT NOT NULL, name TEXT NOT NULL, UNIQUE (schema, name));
CREATE TABLE IF NOT EXISTS versions (
    of TEXT NOT NULL REFERENCES tables (id) ON DELETE CASCADE, number INTEGER NOT NULL, at_ms INTEGER NOT NULL,
    operation TEXT NOT NULL, definition TEXT NOT NULL, commit_id TEXT NOT NULL, PRIMARY KEY (of, number));
CREATE TABLE IF NOT EXISTS files (
    of TEXT NOT NULL REFERENCES tables (id) ON DELETE CASCADE, path TEXT NOT NULL, first INTEGER NOT NULL, gone INTEGER,
    content TEXT NOT NULL, PRIMARY KEY (of, path, first));
CREATE TABLE IF NOT EXISTS txns (
    of TEXT NOT NULL REFERENCES tables (id) ON DELETE CASCADE, application TEXT NOT NULL, version INTEGER NOT NULL,
    PRIMARY KEY (of, application));
"""
_LIVE: Final = "first <= ? AND (gone IS NULL OR gone > ?)"
_WAIT_S: Final = 60.0
"""Seconds that a transaction waits for another one."""


class Database:
    """The database of one warehouse.

    Args:
        warehouse: the warehouse's folder.
    """

    def __init__(self, warehouse: str) -> None:
        self._folder = Location.of(warehouse)
        ObjectStore(self._folder).make_folder()
        self._path = self._folder.join("ledger.db").for_arrow
        with self._transaction() as running:
            for statement in filter(str.strip, _TABLES.split(";")):
                running.execute(statement)

    def folder_of(self, table_id: str) -> str:
        """Return the folder of a table's files. It is named by the id, as a name may be reused."""
        return str(self._folder.join(table_id))

    # -- names ------------------------------------------------------------------------------------------

    def schemas(self) -> list[str]:
        """Return all schemas, sorted."""
        with self._transaction() as running:
            return sorted({_DEFAULT, *(name for (name,) in running.execute("SELECT name FROM schemas"))})

    def add_schema(self, name: str) -> bool:
        """Make a schema, and return whether it is new."""
        with self._transaction(write=True) as running:
            new = "INSERT OR IGNORE INTO schemas VALUES (?)"
            return name != _DEFAULT and running.execute(new, (name,)).rowcount == 1

    def remove_schema(self, name: str) -> list[str]:
        """Remove a schema if it is empty; return its tables, which prevent that."""
        with self._transaction(write=True) as running:
            names = _names(running, name)
            if not names:
                running.execute("DELETE FROM schemas WHERE name = ?", (name,))
            return names

    def tables(self, schema: str) -> list[str]:
        """Return the tables of a schema, sorted."""
        with self._transaction() as running:
            return _names(running, schema)

    def id_of(self, schema: str, name: str) -> str | None:
        """Return the id of the table that has a name now."""
        with self._transaction() as running:
            found = running.execute("SELECT id FROM tables WHERE schema = ? AND name = ?", (schema, name)).fetchone()
            return None if found is None else str(found[0])

    def add_table(self, version: TableVersion) -> bool:
        """Make a table from its version 0, and return whether the name was free."""
        made = version.definition
        with self._transaction(write=True) as running:
            named = (made.id, made.schema, made.name)
            if running.execute("INSERT OR IGNORE INTO tables VALUES (?, ?, ?)", named).rowcount == 0:
                return False
            _insert(running, made.id, version)
            return True

    def remove_table(self, table_id: str) -> bool:
        """Remove a table with all its entries; return whether it existed."""
        with self._transaction(write=True) as running:
            return running.execute("DELETE FROM tables WHERE id = ?", (table_id,)).rowcount == 1

    # -- versions ---------------------------------------------------------------------------------------

    def newest(self, table_id: str) -> int | None:
        """Return the number of a table's newest version; None without the table."""
        with self._transaction() as running:
            return _newest(running, table_id)

    def read(self, table_id: str, number: int) -> TableVersion | None:
        """Return a version; None if it was removed, or never existed."""
        store = self._store(table_id)
        with self._transaction() as running:
            facts = "SELECT at_ms, operation, definition, commit_id FROM versions WHERE of = ? AND number = ?"
            if (found := running.execute(facts, (table_id, number)).fetchone()) is None:
                return None
            at_ms, operation, definition, commit = found
            content = f"SELECT content FROM files WHERE of = ? AND {_LIVE} ORDER BY first, path"
            files = [_file(store, text) for (text,) in running.execute(content, (table_id, number, number))]
            txns = dict(running.execute("SELECT application, version FROM txns WHERE of = ?", (table_id,)))
            made = TableDefinition.from_dict(json.loads(definition))
            return TableVersion(number, at_ms, operation, made, tuple(files), txns, _oldest(running, table_id), commit)

    def history(self, table_id: str) -> list[HistoryEntry]:
        """Return the readable versions, oldest first."""
        with self._transaction() as running:
            facts = "SELECT number, at_ms, operation, commit_id FROM versions WHERE of = ? ORDER BY number"
            rows = running.execute(facts, (table_id,))
            return [HistoryEntry(number, at, what, {}, commit) for number, at, what, commit in rows]

    def put(self, table_id: str, before: TableVersion, made: TableVersion) -> None:
        """Put the version that follows ``before``: the commit point.

        Raises:
            CommitRaced: another version follows it already, or the table is gone.
        """
        commit_point(f"version {made.number}", lambda: self._put(table_id, before, made))

    def _put(self, table_id: str, before: TableVersion, made: TableVersion) -> None:
        store = self._store(table_id)
        added, removed = made.difference(before)
        new = [(table_id, store.relative(file.path), made.number, _content(store, file)) for file in added]
        gone = [(made.number, table_id, store.relative(path)) for path in removed]
        txns = [(table_id, *txn) for txn in made.txns.items()]
        with self._transaction(write=True) as running:
            if _newest(running, table_id) != before.number:
                raise CommitRaced(f"version {made.number} was taken")
            _insert(running, table_id, made)
            running.executemany("UPDATE files SET gone = ? WHERE of = ? AND path = ? AND gone IS NULL", gone)
            running.executemany("INSERT INTO files (of, path, first, content) VALUES (?, ?, ?, ?)", new)
            running.executemany("INSERT OR REPLACE INTO txns VALUES (?, ?, ?)", txns)

    def changes(self, table_id: str, since: int) -> list[FileChange] | None:
        """Return the changes of each commit after a version, without compactions; None if that version was removed."""
        with self._transaction() as running:
            if _oldest(running, table_id) > since:
                return None
            facts = "SELECT number, operation FROM versions WHERE of = ? AND number > ? ORDER BY number"
            commits = running.execute(facts, (table_id, since)).fetchall()
            return [self._change(running, table_id, n) for n, operation in commits if operation not in KEEPS_ROWS]

    def forget(self, table_id: str, oldest: int) -> bool:
        """Remove the versions before one, and return whether there was any."""
        with self._transaction(write=True) as running:
            running.execute("DELETE FROM files WHERE of = ? AND gone <= ?", (table_id, oldest))
            return running.execute("DELETE FROM versions WHERE of = ? AND number < ?", (table_id, oldest)).rowcount > 0

    def needed(self, table_id: str) -> set[str]:
        """Return the paths of all files that a readable version needs."""
        store = self._store(table_id)
        with self._transaction() as running:
            content = "SELECT content FROM files WHERE of = ? AND (gone IS NULL OR gone > ?)"
            rows = running.execute(content, (table_id, _oldest(running, table_id)))
            return {path for (text,) in rows for path in _file(store, text).needs}

    # -- helpers ----------------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self, *, write: bool = False) -> Iterator[sqlite3.Connection]:
        """Yield a connection within a transaction, which the end of the block commits."""
        try:
            with closing(sqlite3.connect(self._path, _WAIT_S, isolation_level=None)) as running:
                running.execute("PRAGMA foreign_keys = ON")
                running.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                yield running
                running.execute("COMMIT")
        except sqlite3.OperationalError as error:
            raise TrinityError("FILESYSTEM_ERROR", f"'{self._path}' cannot be read or written: {error}.") from error
        except sqlite3.DatabaseError as error:
            raise TrinityError("BAD_DATA", f"'{self._path}' is corrupt ({error}); restore it from a copy.") from error

    def _store(self, table_id: str) -> ObjectStore:
        return ObjectStore(self.folder_of(table_id))

    def _change(self, running: sqlite3.Connection, table_id: str, number: int) -> FileChange:
        new = running.execute("SELECT content FROM files WHERE of = ? AND first = ?", (table_id, number))
        added = [_file(self._store(table_id), text) for (text,) in new]
        removed = running.execute(
            "SELECT 1 FROM files WHERE of = ? AND gone = ? LIMIT 1", (table_id, number)
        ).fetchone()
        return FileChange(number, added, removed is not None)


def _names(running: sqlite3.Connection, schema: str) -> list[str]:
    return [name for (name,) in running.execute("SELECT name FROM tables WHERE schema = ? ORDER BY name", (schema,))]


def _newest(running: sqlite3.Connection, table_id: str) -> int | None:
    (found,) = running.execute("SELECT max(number) FROM versions WHERE of = ?", (table_id,)).fetchone()
    return None if found is None else int(found)


def _oldest(running: sqlite3.Connection, table_id: str) -> int:
    (found,) = running.execute("SELECT min(number) FROM versions WHERE of = ?", (table_id,)).fetchone()
    return int(found or 0)


def _content(store: ObjectStore, file: DataFile) -> str:
    """Return a file as JSON, with its position deletes, which the common form leaves out."""
    content = file.to_dict() | {"path": store.relative(file.path)}
    if isinstance(file.deletes, PositionDeletes):
        content["deletes"] = file.deletes.to_dict(store)
    return json.dumps(content)


def _file(store: ObjectStore, text: str) -> DataFile:
    content = json.loads(text)
    deletes = content.pop("deletes", None)
    file = DataFile.from_dict(content)
    return replace(file.moved(store.path(file.path)), deletes=deletes and PositionDeletes.from_dict(store, deletes))


def _insert(running: sqlite3.Connection, table_id: str, made: TableVersion) -> None:
    definition = json.dumps(made.definition.to_dict())
    row: Sequence[Any] = (table_id, made.number, made.timestamp_ms, made.operation, definition, made.commit)
    running.execute("INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?)", row)
