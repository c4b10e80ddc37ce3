"""The versions of a table: each is a snapshot, with a tag that holds what DuckLake's tables cannot.

Data files and position delete files are DuckLake's own. Sidecar files are in the tag alone: their rows are no rows of
the table.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from ducklake_trinity.catalog import Catalog, Snapshot, expire, snapshot
from ducklake_trinity.columns import bounds_of, columns_of
from trinity.errors import TrinityError
from trinity.spi import DataFile, TableDefinition, TableHandle, Tier
from trinity.storage import CommitRaced, ObjectStore, PositionDeletes, TableVersion, commit_point

_TAG: Final = "trinity"
_LIVE: Final = "{0}.begin_snapshot <= :at AND ({0}.end_snapshot IS NULL OR {0}.end_snapshot > :at)"
_FILES: Final = f"""
SELECT f.path, o.content, d.path, d.delete_count FROM ducklake_data_file f JOIN trinity_file o USING (data_file_id)
LEFT JOIN ducklake_delete_file d ON d.data_file_id = f.data_file_id AND {_LIVE.format("d")}
WHERE f.table_id = :table AND {_LIVE.format("f")} ORDER BY f.path
"""


class Versions:
    """The versions of one table.

    Args:
        catalog: the table's catalog.
        table: the table, with its folder.
        number: DuckLake's id of the table.
    """

    def __init__(self, catalog: Catalog, table: TableHandle, number: int = 0) -> None:
        self._catalog = catalog
        self._name = table.full_name
        self._number = number
        self._store = ObjectStore(table.location)

    def newest(self) -> int | None:
        """Return the number of the newest version; None without the table."""
        with self._catalog.transaction() as running:
            found = self._newest(running)
            return None if found is None else found[0]

    def _newest(self, running: sqlite3.Connection) -> tuple[int, int] | None:
        """Return the number of the newest version, and its snapshot. Raises NOT_SUPPORTED for a later one of others."""
        query = (
            "SELECT json_extract(value, '$.number'), begin_snapshot FROM ducklake_tag WHERE object_id = ? AND key = ?"
        )
        found = running.execute(f"{query} AND end_snapshot IS NULL", (self._number, _TAG)).fetchone()
        if found is None:
            return None
        query = "SELECT changes_made FROM ducklake_snapshot_changes WHERE snapshot_id > ?"
        query = f"{query} AND ',' || changes_made || ',' LIKE ?"
        if other := running.execute(query, (found[1], f"%:{self._number},%")).fetchone():
            raise TrinityError(
                "NOT_SUPPORTED",
                f"Another engine has changed table '{self._name}' ({other[0]}), and this adapter does not read such "
                "changes; change the table by Trinity alone, or copy it to a new one.",
            )
        return int(found[0]), int(found[1])

    def read(self, number: int) -> TableVersion | None:
        """Return a version; None if it does not exist."""
        query = "SELECT value, begin_snapshot FROM ducklake_tag WHERE object_id = ? AND key = ?"
        with self._catalog.transaction() as running:
            of = (self._number, _TAG, number)
            found = running.execute(f"{query} AND json_extract(value, '$.number') = ?", of).fetchone()
            if found is None:
                return None
            data = json.loads(found[0])
            files = running.execute(_FILES, {"table": self._number, "at": found[1]}).fetchall()
        sidecar = [DataFile.from_dict(file) for file in data.pop("sidecar")]
        return TableVersion(
            **data | {"definition": TableDefinition.from_dict(data["definition"])},
            files=(*(self._file(*file) for file in files), *(f.moved(self._store.path(f.path)) for f in sidecar)),
        )

    def _file(self, path: str, content: str, deletes: str | None, gone: int | None) -> DataFile:
        file = DataFile.from_dict({**json.loads(content), "path": self._store.path(path)})
        return (
            file if deletes is None else replace(file, deletes=PositionDeletes(gone or 0, (self._store.path(deletes),)))
        )

    def create(self, first: TableVersion) -> bool:
        """Make the table with its version 0, and return whether its name was free."""
        named = first.definition
        with self._catalog.transaction(write=True) as running:
            made = self._catalog.add_table(running, named.schema, named.name, named.id)
            if made is None:
                return False
            self._number = made.catalog_id
            self._put_columns(running, made, first.definition)
            self._put_tag(running, made, first)
            return True

    def put(self, version: TableVersion) -> None:
        """Put the next version: the commit point.

        Raises:
            CommitRaced: another writer has put it, or the table is gone.
        """
        commit_point(f"version {version.number}", lambda: self._put(version))

    def _put(self, version: TableVersion) -> None:
        with self._catalog.transaction(write=True) as running:
            newest = self._newest(running)
            if newest is None or newest[0] != version.number - 1:
                raise CommitRaced(f"version {version.number} was taken")
            at = {"table": self._number, "at": newest[1]}
            live = {path: deletes for path, _, deletes, _ in running.execute(_FILES, at)}
            rows = {self._store.relative(f.path): f for f in version.files if f.tier is not Tier.SIDECAR}
            new = [path for path in rows if path not in live]
            marked = [path for path, file in rows.items() if self._marks(file) != live.get(path)]
            gone = [path for path in live if path not in rows]
            columns = self._columns(running) != columns_of(version.definition)
            changes = {
                "inserted_into": new,
                "deleted_from": gone or marked,
                "altered": columns or not (new or gone or marked),
            }
            words = ",".join(f"{what}_table:{self._number}" for what, found in changes.items() if found)
            made = snapshot(running, words, schema=columns, file_ids=len(new) + len(marked))
            if columns:
                self._put_columns(running, made, version.definition)
            self._end(running, made, gone, marked)
            self._add(running, made, version.definition, {path: rows[path] for path in new})
            self._mark(running, made.number, made.file_id + len(new), {path: rows[path] for path in marked})
            self._put_tag(running, made, version)
            self._forget(running, version.oldest)

    def _marks(self, file: DataFile) -> str | None:
        """Return the relative path of the file with the positions of a file's deleted rows."""
        return None if file.deletes is None else self._store.relative(file.deletes.paths[0])

    def _columns(self, running: sqlite3.Connection) -> dict[int, tuple[int, str, str, bool, int | None]]:
        facts = "column_id, column_order, column_name, column_type, nulls_allowed, parent_column"
        query = f"SELECT {facts} FROM ducklake_column WHERE table_id = ? AND end_snapshot IS NULL"
        rows = running.execute(query, (self._number,))
        return {number: (place, name, kind, bool(nulls), parent) for number, place, name, kind, nulls, parent in rows}

    def _put_columns(self, running: sqlite3.Connection, made: Snapshot, definition: TableDefinition) -> None:
        before, after = self._columns(running), columns_of(definition)
        ended = [(made.number, self._number, c) for c, facts in before.items() if after.get(c) != facts]
        new = [(c, made.number, self._number, *facts) for c, facts in after.items() if before.get(c) != facts]
        where = "WHERE table_id = ? AND column_id = ? AND end_snapshot IS NULL"
        running.executemany(f"UPDATE ducklake_column SET end_snapshot = ? {where}", ended)
        values = "(?, ?, NULL, ?, ?, ?, ?, NULL, 'NULL', ?, ?, 'literal', 'duckdb')"
        running.executemany(f"INSERT INTO ducklake_column VALUES {values}", new)
        versions = (made.number, made.schema_version, self._number)
        running.execute("INSERT INTO ducklake_schema_versions VALUES (?, ?, ?)", versions)

    def _put_tag(self, running: sqlite3.Connection, made: Snapshot, version: TableVersion) -> None:
        content = {
            "number": version.number,
            "timestamp_ms": version.timestamp_ms,
            "operation": version.operation,
            "definition": version.definition.to_dict(),
            "txns": dict(version.txns),
            "oldest": version.oldest,
            "commit": version.commit,
            "sidecar": [self._content(f) for f in version.files if f.tier is Tier.SIDECAR],
        }
        where = "WHERE object_id = ? AND key = ? AND end_snapshot IS NULL"
        running.execute(f"UPDATE ducklake_tag SET end_snapshot = ? {where}", (made.number, self._number, _TAG))
        row = (self._number, made.number, _TAG, json.dumps(content))
        running.execute("INSERT INTO ducklake_tag VALUES (?, ?, NULL, ?, ?)", row)

    def _content(self, file: DataFile) -> dict[str, object]:
        return file.moved(self._store.relative(file.path)).to_dict()

    def _end(self, running: sqlite3.Connection, made: Snapshot, gone: Iterable[str], marked: Iterable[str]) -> None:
        """End the entries of files that the version no longer has, and of outdated position delete files."""
        of = "(SELECT data_file_id FROM ducklake_data_file f WHERE table_id = ? AND path = ? AND end_snapshot IS NULL)"
        ended = "UPDATE ducklake_delete_file SET end_snapshot = ? WHERE end_snapshot IS NULL AND data_file_id IN"
        running.executemany(f"{ended} {of}", [(made.number, self._number, path) for path in (*gone, *marked)])
        ended = "UPDATE ducklake_data_file SET end_snapshot = ? WHERE data_file_id IN"
        running.executemany(f"{ended} {of}", [(made.number, self._number, path) for path in gone])

    def _add(
        self, running: sqlite3.Connection, made: Snapshot, definition: TableDefinition, new: dict[str, DataFile]
    ) -> None:
        (row_id,) = running.execute(
            "SELECT next_row_id FROM ducklake_table_stats WHERE table_id = ?", (self._number,)
        ).fetchone()
        for number, (path, file) in enumerate(new.items(), made.file_id):
            row = (number, self._number, made.number, path, file.rows, file.size, row_id)
            values = "(?, ?, ?, NULL, NULL, ?, 1, 'parquet', ?, ?, NULL, ?, NULL, NULL, NULL, NULL)"
            running.execute(f"INSERT INTO ducklake_data_file VALUES {values}", row)
            running.execute("INSERT INTO trinity_file VALUES (?, ?)", (number, json.dumps(self._content(file))))
            bounds = [(number, self._number, c, file.rows, *found) for c, *found in bounds_of(definition, file)]
            values = "(?, ?, ?, NULL, ?, ?, ?, ?, NULL, NULL)"
            running.executemany(f"INSERT INTO ducklake_file_column_stats VALUES {values}", bounds)
            row_id += file.rows
        added = (sum(f.rows for f in new.values()), row_id, sum(f.size for f in new.values()), self._number)
        values = "record_count = record_count + ?, next_row_id = ?, file_size_bytes = file_size_bytes + ?"
        running.execute(f"UPDATE ducklake_table_stats SET {values} WHERE table_id = ?", added)

    def _mark(self, running: sqlite3.Connection, at: int, first: int, marked: dict[str, DataFile]) -> None:
        """Add the position delete files of data files."""
        of = (
            "SELECT ?, table_id, ?, NULL, data_file_id, ?, 1, 'parquet', ?, ?, NULL, NULL, NULL FROM ducklake_data_file"
        )
        for number, (path, file) in enumerate(marked.items(), first):
            if file.deletes is not None and (deletes := self._marks(file)) is not None:
                size = self._store.stat(deletes)
                facts = (number, at, deletes, file.deletes.rows, size.size if size else 0, self._number, path)
                where = "WHERE table_id = ? AND path = ? AND end_snapshot IS NULL"
                running.execute(f"INSERT INTO ducklake_delete_file {of} {where}", facts)

    def _forget(self, running: sqlite3.Connection, oldest: int) -> None:
        """Remove the versions before one, and the snapshots that had them."""
        query = "SELECT min(begin_snapshot), max(end_snapshot) FROM ducklake_tag WHERE object_id = ? AND key = ?"
        of = (self._number, _TAG, oldest)
        first, end = running.execute(f"{query} AND json_extract(value, '$.number') < ?", of).fetchone()
        if first is None:
            return
        expire(running, first, end)
        running.execute("DELETE FROM ducklake_tag WHERE object_id = ? AND end_snapshot <= ?", (self._number, end))
        old = (self._number, end)
        for table in ("trinity_file", "ducklake_file_column_stats"):
            gone = "SELECT data_file_id FROM ducklake_data_file WHERE table_id = ? AND end_snapshot <= ?"
            running.execute(f"DELETE FROM {table} WHERE data_file_id IN ({gone})", old)
        for table in ("data_file", "delete_file", "column"):
            running.execute(f"DELETE FROM ducklake_{table} WHERE table_id = ? AND end_snapshot <= ?", old)
