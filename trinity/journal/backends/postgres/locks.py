"""Locks on keys of journalled tables: PostgreSQL's advisory locks, held to the end of the transaction.

A statement that writes up to a thousand keys locks the table in shared mode, and each key. One that writes more locks
the table exclusively. A transaction whose snapshot is older than its locks must not overwrite versions that it cannot
see. So under REPEATABLE READ and SERIALIZABLE a second connection checks whether the locked keys have newer versions;
the statement then fails as PostgreSQL's own UPDATE does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

import psycopg

from trinity.journal import tree_parts as trees
from trinity.journal.locks import MAX_KEYS, key_hash
from trinity.journal.rewrite import KeyLock
from trinity.journal.tables import JournalTable

_CLASS: Final = int.from_bytes(b"trin", "big")
"""First half of the advisory lock of a whole table; the second is the journal's oid."""

_KEYS: Final = (
    "SELECT current_setting('transaction_isolation'), count(*) FROM (SELECT pg_advisory_xact_lock_shared($1, "
    "$2::regclass::oid::int) UNION ALL SELECT pg_advisory_xact_lock(h) FROM unnest($3::bigint[]) AS h) AS taken"
)
_TABLE: Final = (
    "SELECT current_setting('transaction_isolation'), count(*) "
    "FROM (SELECT pg_advisory_xact_lock($1, $2::regclass::oid::int)) AS taken"
)


class Locks:
    """The locks of one connection. A second one, made with ``options``, sees commits after the first one's snapshot."""

    def __init__(self, connection: psycopg.Connection[Any], options: Mapping[str, Any]) -> None:
        self._connection = connection
        self._options = options
        self._witness: psycopg.Connection[Any] | None = None

    def close(self) -> None:
        """Close the second connection."""
        if self._witness is not None:
            self._witness.close()

    def take(self, locks: Sequence[KeyLock], parameters: Sequence[Any]) -> list[int] | None:
        """Take all locks of a statement, tables and keys always in the same order.

        Returns:
            the hashes of the locked keys of the only table; None when whole tables are locked.
        """
        locked: list[int] | None = None
        for lock in sorted(locks, key=lambda lock: (lock.table.backend_schema, lock.table.journal)):
            hashes = self._hashes(lock, parameters) if len(locks) == 1 else None
            locked = hashes
            if hashes is None:
                self.take_table(lock.table)
            else:
                [(level, _)] = self._run(_KEYS, [_CLASS, _name(lock.table), hashes])
                self._check_snapshot(lock.table, hashes, level)
        return locked

    def take_table(self, table: JournalTable) -> None:
        """Lock a whole table."""
        [(level, _)] = self._run(_TABLE, [_CLASS, _name(table)])
        self._check_snapshot(table, None, level)

    def explain(self, lock: KeyLock) -> list[str]:
        """Return the statements that :meth:`take` sends."""
        return [_TABLE] if lock.keys is None else [lock.keys.sql, _KEYS]

    def _run(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        return self._connection.cursor().execute(sql, values or None).fetchall()

    def _hashes(self, lock: KeyLock, parameters: Sequence[Any]) -> list[int] | None:
        if lock.keys is None:
            return None
        found = self._run(lock.keys.sql, [parameters[i] for i in lock.keys.parameters])
        return sorted({h for (h,) in found}) if len(found) <= MAX_KEYS else None

    def _check_snapshot(self, table: JournalTable, hashes: list[int] | None, level: str) -> None:
        """Fail a transaction whose snapshot is older than a committed version of the locked rows."""
        if level in ("read committed", "read uncommitted"):
            return
        if self._witness is None:
            self._witness = psycopg.connect(**self._options, autocommit=True, cursor_factory=psycopg.RawCursor)
        text = _newest_versions(table, hashes is not None)
        values = [hashes] if hashes is not None else None
        seen = dict(self._connection.cursor().execute(text, values).fetchall())
        for key, version in self._witness.cursor().execute(text, values):
            if key not in seen or seen[key] < version:
                fail(self._connection, "40001", "could not serialize access due to concurrent update")


def fail(connection: psycopg.Connection[Any], state: str, message: str) -> NoReturn:
    """Let the server raise an error, so that the transaction fails as with the server's own error."""
    text = message.replace("'", "''").replace("$", "").replace("%", "%%")
    connection.cursor().execute(f"DO $fail$ BEGIN RAISE EXCEPTION '{text}' USING ERRCODE = '{state}'; END $fail$")
    raise AssertionError("the server raises")


def _name(table: JournalTable) -> str:
    return trees.journal(table).sql(dialect="postgres")


def _newest_versions(table: JournalTable, some: bool) -> str:
    key = key_hash(table, [trees.column(k) for k in table.key]).sql(dialect="postgres")
    version = trees.column(table.version).sql(dialect="postgres")
    where = f" WHERE {key} = ANY($1::bigint[])" if some else ""
    return f"SELECT {key}, max({version}) FROM {_name(table)}{where} GROUP BY 1"
