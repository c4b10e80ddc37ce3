"""The SQL database of a DuckLake catalog, as its specification 1.0 has it: snapshots, schemas and tables, by name.

A row holds from the snapshot ``begin_snapshot`` until before ``end_snapshot``. Each change is one snapshot of the whole
catalog, in one transaction of SQLite.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from trinity.errors import TrinityError
from trinity.storage import Location, ObjectStore

_DEFAULT: Final = "default"
_RANGE: Final = "begin_snapshot BIGINT, end_snapshot BIGINT"
_PLACE: Final = "path VARCHAR, path_is_relative BIGINT"
_BYTES: Final = "file_size_bytes BIGINT, footer_size BIGINT"
_COUNTS: Final = "column_size_bytes BIGINT, value_count BIGINT, null_count BIGINT"
_BOUNDS: Final = "min_value VARCHAR, max_value VARCHAR"
_NAMED: Final = "key VARCHAR, value VARCHAR"
_TABLES: Final[Mapping[str, str]] = {
    "metadata": "key VARCHAR NOT NULL, value VARCHAR NOT NULL, scope VARCHAR, scope_id BIGINT",
    "snapshot": "snapshot_id BIGINT PRIMARY KEY, snapshot_time VARCHAR, schema_version BIGINT, next_catalog_id BIGINT, "
    "next_file_id BIGINT",
    "snapshot_changes": "snapshot_id BIGINT PRIMARY KEY, changes_made VARCHAR, author VARCHAR, commit_message VARCHAR, "
    "commit_extra_info VARCHAR",
    "schema": f"schema_id BIGINT PRIMARY KEY, schema_uuid VARCHAR, {_RANGE}, schema_name VARCHAR, {_PLACE}",
    "schema_versions": "begin_snapshot BIGINT, schema_version BIGINT, table_id BIGINT",
    "table": f"table_id BIGINT, table_uuid VARCHAR, {_RANGE}, schema_id BIGINT, table_name VARCHAR, {_PLACE}",
    "column": f"column_id BIGINT, {_RANGE}, table_id BIGINT, column_order BIGINT, column_name VARCHAR, "
    "column_type VARCHAR, initial_default VARCHAR, default_value VARCHAR, nulls_allowed BIGINT, parent_column BIGINT, "
    "default_value_type VARCHAR, default_value_dialect VARCHAR",
    "tag": f"object_id BIGINT, {_RANGE}, {_NAMED}",
    "column_tag": f"table_id BIGINT, column_id BIGINT, {_RANGE}, {_NAMED}",
    "data_file": f"data_file_id BIGINT PRIMARY KEY, table_id BIGINT, {_RANGE}, file_order BIGINT, {_PLACE}, "
    f"file_format VARCHAR, record_count BIGINT, {_BYTES}, row_id_start BIGINT, partition_id BIGINT, "
    "encryption_key VARCHAR, mapping_id BIGINT, partial_max BIGINT",
    "delete_file": f"delete_file_id BIGINT PRIMARY KEY, table_id BIGINT, {_RANGE}, data_file_id BIGINT, {_PLACE}, "
    f"format VARCHAR, delete_count BIGINT, {_BYTES}, encryption_key VARCHAR, partial_max BIGINT",
    "table_stats": "table_id BIGINT, record_count BIGINT, next_row_id BIGINT, file_size_bytes BIGINT",
    "table_column_stats": "table_id BIGINT, column_id BIGINT, contains_null BIGINT, contains_nan BIGINT, "
    f"{_BOUNDS}, extra_stats VARCHAR",
    "file_column_stats": f"data_file_id BIGINT, table_id BIGINT, column_id BIGINT, {_COUNTS}, {_BOUNDS}, "
    "contains_nan BIGINT, extra_stats VARCHAR",
    "file_variant_stats": "data_file_id BIGINT, table_id BIGINT, column_id BIGINT, variant_path VARCHAR, "
    f"shredded_type VARCHAR, {_COUNTS}, {_BOUNDS}, contains_nan BIGINT, extra_stats VARCHAR",
    "files_scheduled_for_deletion": f"data_file_id BIGINT, {_PLACE}, schedule_start VARCHAR",
    "inlined_data_tables": "table_id BIGINT, table_name VARCHAR, schema_version BIGINT",
    "column_mapping": "mapping_id BIGINT, table_id BIGINT, type VARCHAR",
    "name_mapping": "mapping_id BIGINT, column_id BIGINT, source_name VARCHAR, target_field_id BIGINT, "
    "parent_column BIGINT, is_partition BIGINT",
    "partition_info": f"partition_id BIGINT, table_id BIGINT, {_RANGE}",
    "partition_column": "partition_id BIGINT, table_id BIGINT, partition_key_index BIGINT, column_id BIGINT, "
    "transform VARCHAR",
    "file_partition_value": "data_file_id BIGINT, table_id BIGINT, partition_key_index BIGINT, partition_value VARCHAR",
    "sort_info": f"sort_id BIGINT, table_id BIGINT, {_RANGE}",
    "sort_expression": "sort_id BIGINT, table_id BIGINT, sort_key_index BIGINT, expression VARCHAR, dialect VARCHAR, "
    "sort_direction VARCHAR, null_order VARCHAR",
    "view": f"view_id BIGINT, view_uuid VARCHAR, {_RANGE}, schema_id BIGINT, view_name VARCHAR, dialect VARCHAR, "
    "sql VARCHAR, column_aliases VARCHAR",
    "macro": f"schema_id BIGINT, macro_id BIGINT, macro_name VARCHAR, {_RANGE}",
    "macro_impl": "macro_id BIGINT, impl_id BIGINT, dialect VARCHAR, sql VARCHAR, type VARCHAR",
    "macro_parameters": "macro_id BIGINT, impl_id BIGINT, column_id BIGINT, parameter_name VARCHAR, "
    "parameter_type VARCHAR, default_value VARCHAR, default_value_type VARCHAR",
}
"""The tables of the specification, without ``ducklake_``, in SQLite's types."""
_OWN: Final = "CREATE TABLE IF NOT EXISTS trinity_file (data_file_id BIGINT PRIMARY KEY, content VARCHAR NOT NULL)"
"""Facts of a data file that DuckLake lacks: its tier, commit number and bucket, and bounds of all types."""
_WAIT_S: Final = 60.0
"""Seconds that a transaction waits for another one."""


@dataclass(frozen=True)
class Snapshot:
    """A snapshot that a transaction makes.

    Attributes:
        number: its id.
        schema_version: the version of the schema.
        catalog_id: the first new id for schemas and tables.
        file_id: the first new id for files.
    """

    number: int
    schema_version: int
    catalog_id: int
    file_id: int


class Catalog:
    """The database of one warehouse.

    Args:
        warehouse: the warehouse's folder.
    """

    def __init__(self, warehouse: str) -> None:
        self._folder = Location.of(warehouse)
        ObjectStore(self._folder).make_folder()
        self.path = self._folder.join("ducklake.sqlite").for_arrow
        with self.transaction(write=True) as running:
            for name, columns in _TABLES.items():
                running.execute(f"CREATE TABLE IF NOT EXISTS ducklake_{name} ({columns})")
            running.execute(_OWN)
            if running.execute("SELECT 1 FROM ducklake_metadata").fetchone() is None:
                facts = {"version": "1.0", "created_by": "Trinity", "encrypted": "false"}
                facts["data_path"] = f"{self._folder.for_arrow}/"
                running.executemany("INSERT INTO ducklake_metadata VALUES (?, ?, NULL, NULL)", facts.items())
                _new_schema(running, _DEFAULT)

    def folder_of(self, table_id: str) -> str:
        """Return the folder of a table's files. It is named by Trinity's id, as a name may be reused."""
        return str(self._folder.join(table_id))

    @contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[sqlite3.Connection]:
        """Yield a connection within a transaction, which the end of the block commits."""
        try:
            with closing(sqlite3.connect(self.path, _WAIT_S, isolation_level=None)) as running:
                running.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                yield running
                running.execute("COMMIT")
        except sqlite3.OperationalError as error:
            raise TrinityError("FILESYSTEM_ERROR", f"'{self.path}' cannot be read or written: {error}.") from error
        except sqlite3.DatabaseError as error:
            raise TrinityError("BAD_DATA", f"'{self.path}' is corrupt ({error}); restore it from a copy.") from error

    # -- names ------------------------------------------------------------------------------------------

    def schemas(self) -> list[str]:
        """Return all schemas, sorted."""
        with self.transaction() as running:
            return sorted(_schemas(running))

    def add_schema(self, name: str) -> bool:
        """Make a schema, and return whether it is new."""
        with self.transaction(write=True) as running:
            new = name not in _schemas(running)
            if new:
                _new_schema(running, name)
            return new

    def remove_schema(self, name: str) -> list[str]:
        """Remove a schema if it is empty; return its tables, which prevent that."""
        with self.transaction(write=True) as running:
            names = sorted(_tables(running, name))
            if not names:
                number = _schemas(running)[name]
                made = snapshot(running, f"dropped_schema:{number}", schema=True)
                running.execute(
                    "UPDATE ducklake_schema SET end_snapshot = ? WHERE schema_id = ?", (made.number, number)
                )
            return names

    def tables(self, schema: str) -> list[str]:
        """Return the tables of a schema, sorted."""
        with self.transaction() as running:
            return sorted(_tables(running, schema))

    def find(self, schema: str, name: str) -> tuple[int, str] | None:
        """Return DuckLake's and Trinity's id of the table that has a name now."""
        with self.transaction() as running:
            return _tables(running, schema).get(name)

    def add_table(self, running: sqlite3.Connection, schema: str, name: str, table_id: str) -> Snapshot | None:
        """Make a table within a transaction, and return its snapshot; None when the name is taken."""
        if name in _tables(running, schema):
            return None
        made = snapshot(running, f"created_table:{_quoted(schema)}.{_quoted(name)}", schema=True, catalog_ids=1)
        row = (made.catalog_id, str(uuid.UUID(table_id)), made.number, _schemas(running)[schema], name, f"{table_id}/")
        running.execute("INSERT INTO ducklake_table VALUES (?, ?, ?, NULL, ?, ?, ?, 1)", row)
        running.execute("INSERT INTO ducklake_table_stats VALUES (?, 0, 0, 0)", (made.catalog_id,))
        return made

    def remove_table(self, number: int) -> bool:
        """Remove a table with all its entries, and the snapshots that had it; return whether it existed."""
        with self.transaction(write=True) as running:
            begun = running.execute(
                "SELECT begin_snapshot FROM ducklake_table WHERE table_id = ?", (number,)
            ).fetchone()
            if begun is None:
                return False
            made = snapshot(running, f"dropped_table:{number}", schema=True)
            running.execute(
                "DELETE FROM trinity_file WHERE data_file_id IN (SELECT data_file_id FROM ducklake_data_file "
                "WHERE table_id = ?)",
                (number,),
            )
            for table in ("table", "column", "data_file", "delete_file", "table_stats", "file_column_stats"):
                running.execute(f"DELETE FROM ducklake_{table} WHERE table_id = ?", (number,))
            running.execute("DELETE FROM ducklake_tag WHERE object_id = ?", (number,))
            expire(running, begun[0], made.number)
            return True


def snapshot(
    running: sqlite3.Connection, changes: str, *, schema: bool = False, catalog_ids: int = 0, file_ids: int = 0
) -> Snapshot:
    """Make the next snapshot, within a transaction that writes.

    Args:
        running: the transaction.
        changes: the changes in DuckLake's notation.
        schema: whether schemas, tables or columns change.
        catalog_ids: the number of new schemas and tables.
        file_ids: the number of new files.
    """
    last = "SELECT snapshot_id, schema_version, next_catalog_id, next_file_id FROM ducklake_snapshot"
    found = running.execute(f"{last} ORDER BY snapshot_id DESC LIMIT 1").fetchone() or (-1, -1, 0, 0)
    made = Snapshot(found[0] + 1, found[1] + schema, found[2], found[3])
    now = datetime.now(UTC).isoformat(sep=" ", timespec="microseconds").replace("+00:00", "+00")
    following = (made.catalog_id + catalog_ids, made.file_id + file_ids)
    running.execute(
        "INSERT INTO ducklake_snapshot VALUES (?, ?, ?, ?, ?)", (made.number, now, made.schema_version, *following)
    )
    running.execute("INSERT INTO ducklake_snapshot_changes VALUES (?, ?, NULL, NULL, NULL)", (made.number, changes))
    return made


def expire(running: sqlite3.Connection, first: int, end: int) -> None:
    """Remove the snapshots from ``first`` up to, but not including, ``end``: what they had of a table is gone."""
    for table in ("snapshot", "snapshot_changes"):
        running.execute(f"DELETE FROM ducklake_{table} WHERE snapshot_id >= ? AND snapshot_id < ?", (first, end))


def _new_schema(running: sqlite3.Connection, name: str) -> None:
    made = snapshot(running, f"created_schema:{_quoted(name)}", schema=True, catalog_ids=1)
    row = (made.catalog_id, str(uuid.uuid4()), made.number, name, "")
    running.execute("INSERT INTO ducklake_schema VALUES (?, ?, ?, NULL, ?, ?, 1)", row)


def _schemas(running: sqlite3.Connection) -> dict[str, int]:
    rows = running.execute("SELECT schema_name, schema_id FROM ducklake_schema WHERE end_snapshot IS NULL")
    return dict(rows.fetchall())


def _tables(running: sqlite3.Connection, schema: str) -> dict[str, tuple[int, str]]:
    """Return the tables of a schema: name -> DuckLake's and Trinity's id."""
    query = (
        "SELECT t.table_name, t.table_id, t.path FROM ducklake_table t JOIN ducklake_schema s USING (schema_id) "
        "WHERE s.schema_name = ? AND s.end_snapshot IS NULL AND t.end_snapshot IS NULL"
    )
    return {name: (number, path.rstrip("/")) for name, number, path in running.execute(query, (schema,))}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
