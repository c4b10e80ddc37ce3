"""PostgreSQL's logical replication, without Kafka: a slot's changes as Debezium's envelopes, and tables that follow."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from trinity.calls import public
from trinity.cdc.debezium_events import debezium
from trinity.cdc.pgoutput import Relation, RelationChange, Transaction, transactions
from trinity.cdc.postgres_events import Envelopes
from trinity.cdc.postgres_server import Server
from trinity.engine.changing.whole_table import truncate
from trinity.errors import TrinityError, nearest
from trinity.merge.spec import merge_spec
from trinity.spark.types import arrow_frame
from trinity.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Read = Callable[["DataFrame", Table], "DataFrame"]
"""A function as :func:`~trinity.cdc.debezium`: (envelopes, the table that they are for) -> row versions."""

_SCHEMA: Final = pa.schema([
    ("table", pa.string()), ("op", pa.string()), ("lsn", pa.int64()), ("commit_lsn", pa.int64()), ("value", pa.string())
])  # fmt: skip
_LIMIT: Final = 50_000


@public
@dataclass(frozen=True)
class PostgresChanges:
    """Changes of whole transactions, in the order of their commits.

    Attributes:
        events: ``table`` STRING (``schema.table``), ``op`` STRING (``c``, ``u``, ``d``, or ``t`` for TRUNCATE),
            ``lsn`` BIGINT, ``commit_lsn`` BIGINT (the end of the transaction), ``value`` STRING, the envelope.
        lsn: the LSN up to which these are all changes, for :meth:`PostgresSlot.confirm`.
        last: True when the server had no more changes.
    """

    events: pa.Table
    lsn: int
    last: bool


@public
class PostgresSlot:
    """A logical replication slot of PostgreSQL 15 or newer, read by ``pgoutput``; needs the extra ``postgres``.

    The server needs ``wal_level`` = ``logical``, and a role with REPLICATION and SELECT on the tables. A slot keeps its
    changes until they are confirmed, and PostgreSQL keeps its log until then. Connections are made as needed.

    Args:
        conninfo: libpq's connection string, as ``host=db dbname=shop user=follower``.
        slot: name of the slot.
        publications: names of publications, which choose tables, columns, rows and operations.

    Raises:
        TrinityError: INVALID_ARGUMENTS for an invalid name of a slot, and for no publication.
    """

    def __init__(self, conninfo: str, slot: str, publications: Sequence[str]) -> None:
        if not publications:
            raise TrinityError("INVALID_ARGUMENTS", "Give publications, the names of one or more.")
        self._server = Server(conninfo, slot, publications)

    def __enter__(self) -> PostgresSlot:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the slot stays."""
        self._server.close()

    @property
    def application(self) -> str:
        """The application in the ``txn`` of :meth:`follow`'s commits; a slot of another server has another one."""
        return f"postgres/{self._server.identifier}/{self._server.slot}"

    def create(self, tables: Mapping[str, Table | None] | None = None, *, read: Read = debezium) -> int:
        """Create the slot, and fill tables with the rows as they are where its changes begin.

        Each table is emptied first. An interrupted call leaves the slot behind: :meth:`drop` it, and call again.

        Args:
            tables: as for :meth:`follow`; None for no initial rows.
            read: as for :meth:`follow`. Rows have ``op`` = ``r``, and an LSN below those of all changes to come.

        Returns:
            the LSN at which the changes begin.

        Raises:
            TrinityError: as :meth:`follow`; INVALID_ARGUMENTS when the slot exists already.
        """
        envelopes = Envelopes(self._server.type_name)
        published = self._server.published() if tables is not None else []
        wanted = [(relation, where, _target(tables or {}, relation)) for relation, where in published]
        for _, _, table in wanted:
            if table is not None:
                self._check_not_ahead(table, self._recorded(table, self.application))
                _rows(table, (), envelopes, read)  # a table that cannot take the rows is not emptied
        with self._server.created() as snapshot:
            for relation, where, table in wanted:
                if table is not None:
                    truncate(table, (self._copy, snapshot.lsn))
                    found = Transaction(0, 0, snapshot.lsn)
                    envelopes.prepare(relation)  # asks the server for types, which is impossible during COPY
                    rows = self._server.rows(snapshot, relation, where)
                    changes = ((RelationChange(relation, "r", snapshot.first, None, row), found) for row in rows)
                    self._fill(table, changes, snapshot.lsn, envelopes, read)
        return snapshot.lsn

    def _fill(
        self, table: Table, changes: Iterator[_TransactionChange], lsn: int, envelopes: Envelopes, read: Read
    ) -> None:
        """Commit rows in several steps; the last one records that the table is complete."""
        while len(some := list(itertools.islice(changes, _LIMIT))) == _LIMIT:
            table.upsert(_rows(table, some, envelopes, read))
        table.upsert(_rows(table, some, envelopes, read), txn=(self.application, lsn))

    def drop(self) -> None:
        """Drop the slot, if it exists, with the changes that it keeps."""
        self._server.drop()

    def changes(self, limit: int = _LIMIT) -> PostgresChanges:
        """Read changes that are not confirmed yet, from the first one on; the slot stays as it is.

        Args:
            limit: whole transactions are read until they have this many changes.

        Raises:
            TrinityError: CONFIGURATION_INVALID for a slot, publication or server that is missing or set up wrongly;
                PERMISSION_DENIED; TRANSACTION_CONFLICT while another process reads the slot.
        """
        batch = self._read(_at_least_one(limit))
        return PostgresChanges(_events(batch.changes, Envelopes(self._server.type_name)), batch.lsn, batch.last)

    def _read(self, limit: int) -> _Batch:
        flushed = self._server.flushed()
        messages = self._server.messages(limit)
        found = list(transactions(messages))
        changes = [(change, transaction) for transaction in found for change in transaction.changes]
        last = len(messages) < limit
        # with the last messages, all transactions that ended before ``flushed`` have been read
        return _Batch(changes, max([t.end for t in found] + [flushed] * last), last)

    def confirm(self, lsn: int) -> None:
        """Let the slot forget the changes up to an LSN, once they are stored elsewhere.

        Args:
            lsn: ``lsn`` of :class:`PostgresChanges`.

        Raises:
            TrinityError: as :meth:`changes`.
        """
        self._server.confirm(lsn)

    def follow(self, tables: Mapping[str, Table | None], *, read: Read = debezium, limit: int = _LIMIT) -> int:
        """Bring tables up to date with PostgreSQL's commits, each change once, and confirm the changes.

        A table's commits record their position in PostgreSQL's log (L4), and the slot is confirmed after them. So an
        interrupted call can be repeated, also after a restart of either side. A TRUNCATE empties the table in a commit
        of its own.

        Args:
            tables: ``schema.table`` of PostgreSQL -> the keyed table that follows it; None for one to be left out.
            read: makes row versions of envelopes: ``cdc.debezium``, or a function that calls it with more arguments.
            limit: as for :meth:`changes`; a table gets one commit for each such batch.

        Returns:
            the LSN that the tables have reached.

        Raises:
            TrinityError: as :meth:`changes`, and as ``read`` and ``table.upsert``; INVALID_ARGUMENTS for changes of a
                table that ``tables`` lacks, and where PostgreSQL's REPLICA IDENTITY lacks a column of the table's key;
                CONFIGURATION_INVALID for a table that is ahead of the server, or was not filled completely.
        """
        envelopes = Envelopes(self._server.type_name)
        followed = {name: table for name, table in tables.items() if table is not None}
        reached = {name: self._reached_lsn(table) for name, table in followed.items()}
        while True:
            batch = self._read(_at_least_one(limit))
            _check(batch.changes, tables)
            for name, table in followed.items():
                own = [c for c in batch.changes if c[0].relation.full_name == name and c[1].end > reached[name]]
                if own:
                    self._apply(table, own, batch.lsn, envelopes, read)
                    reached[name] = batch.lsn
            self._server.confirm(batch.lsn)
            if batch.last:
                return batch.lsn

    def _apply(
        self, table: Table, changes: list[_TransactionChange], lsn: int, envelopes: Envelopes, read: Read
    ) -> None:
        """Commit the changes of a table; those before its last truncation are skipped."""
        truncations = [n for n, (change, _) in enumerate(changes) if change.op == "t"]
        after = truncations[-1] + 1 if truncations else 0
        rows = _rows(table, changes[after:], envelopes, read)
        if truncations:
            # records less than its transaction's end, since rows of the transaction are still to come
            truncate(table, (self.application, changes[after - 1][1].end - 1))
        table.upsert(rows, txn=(self.application, lsn))

    @property
    def _copy(self) -> str:
        """The application in the ``txn`` by which :meth:`create` marks that it begins to fill a table."""
        return f"{self.application}/copy"

    def _reached_lsn(self, table: Table) -> int:
        """Return the LSN that a table has reached; 0 for a new one. Raise CONFIGURATION_INVALID as :meth:`follow`."""
        reached, begun = (self._recorded(table, name) for name in (self.application, self._copy))
        if reached < begun:
            message = f"Table '{table.name}' was not filled whole: drop the slot, and create it again."
            raise TrinityError("CONFIGURATION_INVALID", message)
        self._check_not_ahead(table, reached)
        return reached

    def _recorded(self, table: Table, application: str) -> int:
        return table.connector.metadata.recorded_txn(table.handle, application) or 0

    def _check_not_ahead(self, table: Table, reached: int) -> None:
        """Refuse a table that would take the server's changes, or rows, for ones that it has already."""
        if reached > self._server.flushed():
            raise TrinityError(
                "CONFIGURATION_INVALID",
                f"Table '{table.name}' is ahead of the server's log: the server may be an older copy of the one that "
                "it followed. Drop the slot, and create one of another name.",
            )


_TransactionChange = tuple[RelationChange, Transaction]
"""A change and its transaction."""


@dataclass(frozen=True)
class _Batch:
    """Changes of whole transactions; ``lsn`` and ``last`` as for :class:`PostgresChanges`."""

    changes: list[_TransactionChange]
    lsn: int
    last: bool


def _events(changes: Iterable[_TransactionChange], envelopes: Envelopes) -> pa.Table:
    """Return changes as :attr:`PostgresChanges.events`."""
    rows = [(c.relation.full_name, c.op, c.lsn, t.end, envelopes.text(c, t)) for c, t in changes]
    columns = zip(*rows, strict=True) if rows else [()] * len(_SCHEMA)
    return pa.table([pa.array(values, f.type) for values, f in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA)


def _rows(table: Table, changes: Iterable[_TransactionChange], envelopes: Envelopes, read: Read) -> DataFrame:
    """Return changes of rows as row versions, in one partition: it keeps their order, and a commit has one file."""
    texts = pa.array([envelopes.text(*change) for change in changes], pa.string())
    return read(arrow_frame(table.session.spark, pa.table({"value": texts})).coalesce(1), table)


def _at_least_one(limit: int) -> int:
    if limit < 1:
        raise TrinityError("INVALID_ARGUMENTS", f"limit={limit}: give 1 or more.")
    return limit


def _target(tables: Mapping[str, Table | None], relation: Relation) -> Table | None:
    """Return the table that follows a relation. Raise INVALID_ARGUMENTS when ``tables`` lacks the relation."""
    if relation.full_name not in tables:
        hint = nearest(relation.full_name, [*tables])
        message = (
            f"tables lacks '{relation.full_name}', which the slot publishes.{hint} Give its table, or None to skip it."
        )
        raise TrinityError("INVALID_ARGUMENTS", message)
    return tables[relation.full_name]


def _check(changes: Iterable[_TransactionChange], tables: Mapping[str, Table | None]) -> None:
    """Check that the old rows of updates and deletes have the key of the table that follows."""
    found = {(change.relation, change.op in ("u", "d")): None for change, _ in changes}
    for relation, has_old_row in found:
        table = _target(tables, relation)
        spec = merge_spec(table.definition) if table is not None and table.definition.keyed else None
        if not has_old_row or spec is None:
            continue
        identity = {field.name for field in relation.fields if field.identity}
        missing = [name for name in spec.key if name not in identity]
        if missing:
            message = (
                f"The REPLICA IDENTITY of '{relation.full_name}' in PostgreSQL lacks '{missing[0]}', a key column of "
                f"table '{table and table.name}': its updates and deletes do not tell which row they change. Let it be "
                "FULL, or an index with the key."
            )
            raise TrinityError("INVALID_ARGUMENTS", message)
