"""A PostgreSQL server with a logical replication slot: its messages, its snapshot, its catalog."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trinity.cdc.pgoutput import Field, Relation
from trinity.errors import TrinityError

if TYPE_CHECKING:
    from psycopg import Connection

_SETTINGS: Final = {
    "timezone": "UTC",
    "datestyle": "ISO",
    "intervalstyle": "iso_8601",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "statement_timeout": "0",
}
"""Settings of a connection: they fix the text form of values."""


@dataclass(frozen=True)
class Snapshot:
    """The snapshot of the rows at the position in the log where a new slot's changes begin.

    Attributes:
        lsn: every later commit ends after this LSN.
        first: no change of the slot is before this LSN. Changes of transactions that were open may be before ``lsn``.
        name: PostgreSQL's name of the snapshot.
    """

    lsn: int
    first: int
    name: str


class Server:
    """A PostgreSQL server with a slot. It is connected at the first call, and again after the connection was lost."""

    def __init__(self, conninfo: str, slot: str, publications: Sequence[str]) -> None:
        if not re.fullmatch(r"[a-z0-9_]{1,63}", slot):
            message = f"'{slot}' is no name of a replication slot: lower case letters, digits and _ make one."
            raise TrinityError("INVALID_ARGUMENTS", message)
        self.slot = slot
        self._conninfo = conninfo
        self._publications = ",".join(_quoted(name) for name in publications)
        self._names = list(publications)
        self._connection: Connection[Any] | None = None
        self.type_name = functools.cache(self._type_name)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    @functools.cached_property
    def identifier(self) -> str:
        """The database cluster's own identifier, which a copy of its files shares and another cluster does not."""
        return str(self._row_of_slot("SELECT system_identifier FROM pg_control_system()")[0])

    # -- the slot ---------------------------------------------------------------------------------------

    def flushed(self) -> int:
        """Return the LSN up to which the log is on disk: a slot has all changes that were committed before it."""
        return int(self._row_of_slot("SELECT pg_current_wal_flush_lsn() - '0/0'::pg_lsn")[0])

    def messages(self, limit: int) -> list[tuple[int, bytes]]:
        """Read messages, (LSN, message), of whole transactions until there are ``limit`` or more."""
        options = "'proto_version', '1', 'publication_names', %s"
        with self._connected().cursor(binary=True) as cursor:
            cursor.execute(
                f"SELECT lsn, data FROM pg_logical_slot_peek_binary_changes(%s, NULL, %s, {options})",
                (self.slot, limit, self._publications),
            )
            return [(int.from_bytes(lsn), data) for lsn, data in cursor]

    def confirm(self, lsn: int) -> None:
        """Let the slot forget what was committed up to an LSN; do nothing where it is further already."""
        self._row_of_slot(
            "SELECT pg_replication_slot_advance(slot_name, '0/0'::pg_lsn + %s) FROM (SELECT slot_name FROM "
            "pg_replication_slots WHERE slot_name = %s AND confirmed_flush_lsn < '0/0'::pg_lsn + %s OFFSET 0) s "
            "UNION ALL SELECT NULL LIMIT 1",
            (lsn, self.slot, lsn),
        )

    def drop(self) -> None:
        """Drop the slot, if it exists."""
        self._row_of_slot(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s "
            "UNION ALL SELECT NULL LIMIT 1",
            (self.slot,),
        )

    @contextlib.contextmanager
    def created(self) -> Iterator[Snapshot]:
        """Create the slot; within the context :meth:`rows` reads the rows as they were at that moment."""
        import psycopg

        with psycopg.connect(self._conninfo, autocommit=True, replication="database") as maker:
            # a connection for replication knows only the simple query protocol
            made = maker.pgconn.exec_(
                f'CREATE_REPLICATION_SLOT "{self.slot}" LOGICAL pgoutput EXPORT_SNAPSHOT'.encode()
            )
            if made.status != psycopg.pq.ExecStatus.TUPLES_OK:
                raise psycopg.errors.error_from_result(made)
            lsn, name = ((made.get_value(0, n) or b"").decode() for n in (1, 2))
            numbers = "SELECT %s::pg_lsn - '0/0'::pg_lsn, restart_lsn - '0/0'::pg_lsn FROM pg_replication_slots"
            found = self._row_of_slot(f"{numbers} WHERE slot_name = %s", (lsn, self.slot))
            yield Snapshot(int(found[0]), int(found[1]), name)

    # -- tables -----------------------------------------------------------------------------------------

    def published(self) -> list[tuple[Relation, str | None]]:
        """Return the tables of the publications with their published columns, and the filter of their rows."""
        found = self._connected().execute(
            "SELECT p.schemaname, p.tablename, a.attname, a.atttypid::oid, p.rowfilter FROM pg_publication_tables p "
            "JOIN pg_attribute a ON a.attrelid = format('%%I.%%I', p.schemaname, p.tablename)::regclass "
            "AND a.attname = ANY(p.attnames) AND a.attgenerated = '' WHERE p.pubname = ANY(%s) "
            "ORDER BY 1, 2, p.pubname, a.attnum",
            (self._names,),
        )
        columns: dict[tuple[str, str], dict[str, Field]] = {}
        filters: dict[tuple[str, str], set[str | None]] = {}
        for schema, table, column, kind, rowfilter in found:
            columns.setdefault((schema, table), {})[column] = Field(column, kind, True)
            filters.setdefault((schema, table), set()).add(rowfilter)
        return [
            (Relation(*name, tuple(fields.values())), _any_filter(filters[name]))
            for name, fields in sorted(columns.items())
        ]

    def rows(self, snapshot: Snapshot, relation: Relation, where: str | None) -> Iterator[Sequence[str | None]]:
        """Yield the rows of a table at a snapshot, values in PostgreSQL's text form."""
        names = ", ".join(_quoted(field.name) for field in relation.fields)
        table = f"{_quoted(relation.schema)}.{_quoted(relation.name)}"
        connection = self._connected()
        kind = connection.execute("SELECT relkind::text FROM pg_class WHERE oid = %s::regclass", (table,)).fetchone()
        # tables that inherit from it are followed on their own; a partitioned table has only the rows of its partitions
        source = f"{'ONLY ' if kind == ('r',) else ''}{table}{f' WHERE {where}' if where else ''}"
        with connection.transaction(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            cursor.execute(f"SET TRANSACTION SNAPSHOT '{snapshot.name}'".encode())
            with cursor.copy(f"COPY (SELECT {names} FROM {source}) TO STDOUT".encode()) as copy:
                yield from copy.rows()

    def _type_name(self, oid: int) -> tuple[str, bool]:
        """Return the base type's name (of an array: of the elements'), and True for an array.

        A type that is dropped is text, and so is an array without commas between its items, such as one of boxes.
        """
        found = self._connected().execute(
            "SELECT typname, typtype, typbasetype::int8, typelem::int8, typinput = 'array_in'::regproc, typdelim = ',' "
            "FROM pg_type WHERE oid = %s",
            (oid,),
        ).fetchone()  # fmt: skip
        if found is None or (found[4] and not found[5]):
            return "text", False
        name, kind, base, item, array, _ = found
        if kind == "d":
            return self._type_name(base)
        return (self._type_name(item)[0], True) if array else (name, False)

    # -- the connection ---------------------------------------------------------------------------------

    def _row_of_slot(self, text: str, parameters: Iterable[Any] = ()) -> Any:
        found = self._connected().execute(text.encode(), tuple(parameters) or None).fetchone()
        if found is None:
            message = f"PostgreSQL has no replication slot '{self.slot}', or another session is about to drop it."
            raise TrinityError("CONFIGURATION_INVALID", message)
        return found

    def _connected(self) -> Connection[Any]:
        if self._connection is None or self._connection.closed:
            try:
                import psycopg
            except ModuleNotFoundError as error:
                message = "PostgreSQL needs psycopg: pip install 'trinity-merge[postgres]'."
                raise TrinityError("CONFIGURATION_INVALID", message) from error
            connection = psycopg.connect(self._conninfo, autocommit=True, client_encoding="utf8")
            calls = ", ".join("set_config(%s, %s, false)" for _ in _SETTINGS)
            connection.execute(f"SELECT {calls}".encode(), [text for pair in _SETTINGS.items() for text in pair])
            self._connection = connection
        return self._connection


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _any_filter(filters: set[str | None]) -> str | None:
    """Return the filter of the rows of a table in several publications."""
    texts = [f"({text})" for text in filters if text]
    return " OR ".join(sorted(texts)) if len(texts) == len(filters) else None
