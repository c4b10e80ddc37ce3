"""Trinity tables of a warehouse: each statement is its own transaction, with the engine's conflict handling."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from trinity.connecting import connect
from trinity.engine.appending.append import arrow_reader
from trinity.engine.values.spark.check_constraints import check_expressions
from trinity.errors import TrinityError
from trinity.journal import tree_parts as trees
from trinity.journal.backends.base import IngestMode, Result, one_by_one
from trinity.journal.backends.warehouse.batches import append_rows, insert_journalled
from trinity.journal.backends.warehouse.fetched import fetch_result
from trinity.journal.backends.warehouse.rewriter import Merged, rewrite_merged
from trinity.journal.batches import Batch, batch_of, check_counts, refused_rows
from trinity.journal.model import LoadedModel
from trinity.journal.scopes import Scopes
from trinity.journal.tables import JournalColumn, JournalModel, JournalTable
from trinity.session import Session
from trinity.spi import TransactionId, type_text
from trinity.storage.parquet_files import rows_in
from trinity.syntax.parameters import number, with_literals
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from trinity.names import TableName
    from trinity.table import Table

_KINDS: Final = {"BIGINT": "bigint", "TIMESTAMP": "timestamp"}


class WarehouseBackend:
    """One session over a warehouse, with a model whose journals are Trinity tables of the catalog ``jdbcCatalog``.

    Raises:
        TrinityError: CONFIGURATION_INVALID when the model does not fit the tables.
    """

    name = "trinity"
    dialect = "spark"

    def __init__(self, warehouse: str | Path, loaded: LoadedModel | None, options: Mapping[str, Any]) -> None:
        self.session: Session = connect(warehouse, **options)
        self._view = f"_trinity_versions_{uuid.uuid4().hex}"  # connections of one process share Spark and its views
        self._declared = loaded.journal if loaded is not None else JournalModel(())
        self._model = self._model_with_columns()

    @property
    def autocommit(self) -> bool:
        """Always True."""
        return True

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        if not value:
            raise TrinityError("NOT_SUPPORTED", "On Trinity tables every statement is its own transaction.")

    # -- the model --------------------------------------------------------------------------------------

    def _model_with_columns(self) -> JournalModel:
        """Add the tables' columns to the model; names in lower case, since Spark ignores case (M10)."""
        return JournalModel(
            tuple(self._described_table(t) for t in self._declared.tables),
            self._declared.default_schema.lower(),
            {user.lower(): backend.lower() for user, backend in self._declared.schemas.items()},
            (self.session.current_schema,),
            catalogs=frozenset(c.lower() for c in self._declared.catalogs),
        )

    def _described_table(self, table: JournalTable) -> JournalTable:
        catalog = (table.catalog or self.session.current_catalog).lower()
        placed = replace(
            table,
            schema=table.schema.lower(),
            name=table.name.lower(),
            backend_schema=table.backend_schema.lower(),
            journal=table.journal.lower(),
            key=tuple(k.lower() for k in table.key),
            version=table.version.lower(),
            subsequent=table.subsequent.lower(),
            unique_keys=tuple(tuple(c.lower() for c in u) for u in table.unique_keys),
            catalog=catalog,
            merged=True,
            columns=(),
            versions_view=self._view,
        )
        stored = self._stored(placed)
        if stored is None:
            return placed
        definition = stored.definition
        types = {c.name.lower(): c.type for c in definition.visible}
        _check(placed, definition.properties, types, [k.lower() for k in definition.primary_key])
        columns = tuple(JournalColumn(c.name.lower(), c.type, c.type, c.default) for c in definition.visible)
        return replace(placed, columns=columns)

    def _stored(self, table: JournalTable) -> Table | None:
        if table.backend_schema not in self.session.connector(table.catalog).metadata.list_schemas():
            return None
        name = self.session.table_name([table.catalog, table.backend_schema, table.journal])
        return self.session.find_table(name)

    # -- statements -------------------------------------------------------------------------------------

    def execute(self, sql: str, parameters: Sequence[Any], txn: TransactionId | None = None) -> Result:
        """Run one statement; ``txn`` as for :meth:`trinity.Session.sql`. Raise TrinityError."""
        text = with_literals(sql, parameters)
        found = self._rewrite(text)
        if found.changes is not None:
            return self._change(found, found.changes, txn)
        result = fetch_result(self.session.sql(found.sql, txn=txn), self.session.timezone)
        if found.defines or text.lstrip()[:6].upper() in ("CREATE", "ALTER ", "DROP T", "DROP S") or found.sql == text:
            self._model = self._model_with_columns() if self._model.tables else self._model
        return result

    def execute_many(self, sql: str, rows: Sequence[Sequence[Any]], txn: TransactionId | None = None) -> int:
        """Run a statement with many lists of parameters; an INSERT of one row of VALUES stores them in one commit.

        Raises:
            RowError: a list fails. Such an INSERT then stores nothing; of other statements the lists before are stored.
            TrinityError: storing failed for another reason; INVALID_ARGUMENTS for a ``txn`` of several commits.
        """
        check_counts(rows, number(sql, self.dialect).count)
        batch = batch_of(sql, self.dialect) if len(rows) > 1 else None
        if batch is not None and (stored := self._insert_many(batch, rows, txn)) is not None:
            return stored
        if self._rewrite(with_literals(sql, rows[0])).returning is not None:
            raise refused_rows()
        if txn is not None and len(rows) > 1:
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"The {len(rows)} lists of parameters are a statement each, and txn={txn} is of one commit: the second "
                "would be taken for a repetition of the first. Give each execute() a txn of its own, or insert the "
                "rows by one row of VALUES.",
            )
        return one_by_one(self, sql, rows, txn)

    def _insert_many(self, batch: Batch, rows: Sequence[Sequence[Any]], txn: TransactionId | None) -> int | None:
        """Store the rows of an INSERT at once, and return their number; None if it has to be run row by row."""
        named = exp.to_table(batch.target, dialect=self.dialect)
        journalled = Scopes(self._model, self.dialect).find(named)
        if journalled is None:
            table = self.session.find_table(self.session.table_name([p.name for p in named.parts]))
            return append_rows(table, batch, rows, txn) if table is not None else None
        table = self._stored(journalled)
        if table is None:
            return None
        return insert_journalled(table, journalled, batch, rows, lambda sql: self.execute(sql, (), txn).rowcount)

    def ingest(self, table: Sequence[str], data: Any, mode: IngestMode) -> int:
        """Store the rows of a data frame. Raise as :meth:`trinity.dbapi.Cursor.adbc_ingest`."""
        named = exp.to_table(".".join(map(quoted, table)), dialect=self.dialect)
        if (journalled := Scopes(self._model, self.dialect).find(named)) is not None:
            raise TrinityError("NOT_SUPPORTED", f"Table {journalled} is journalled; store its rows by executemany().")
        return ingest(self.session, self.session.table_name(table), data, mode)

    def _rewrite(self, text: str) -> Merged:
        if not self._model.tables:
            return Merged(text)
        try:
            return rewrite_merged(text, self._model)
        except TrinityError as error:
            if error.code not in ("TABLE_NOT_FOUND", "COLUMN_NOT_FOUND"):
                raise
            self._model = self._model_with_columns()  # another connection may have created or changed the table
            return rewrite_merged(text, self._model)

    def _change(self, found: Merged, table: JournalTable, txn: TransactionId | None) -> Result:
        stored = self._stored(table)
        if stored is None:
            raise TrinityError("TABLE_NOT_FOUND", f"The journal of table {table} was dropped meanwhile.")
        check_expressions(stored.definition, lambda: self.session.spark)  # the statement contains the table's DEFAULTs
        from trinity.journal.backends.warehouse.changes import run_change  # imports pyspark: Spark runs changes

        return run_change(found, table, stored, txn)

    def explain(self, sql: str) -> list[str]:
        """Return the statement that would be sent."""
        return [self._rewrite(sql).sql]

    # -- the catalog ------------------------------------------------------------------------------------

    def tables(self) -> list[tuple[str, str, str]]:
        """Return (catalog.schema, name, kind) of all tables."""
        self._model = self._model_with_columns()
        found = [(t.schema, t.name, "JOURNALLED TABLE") for t in self._model.tables if t.columns]
        for catalog, connector in self.session.catalogs.items():
            for schema in connector.metadata.list_schemas():
                found += [(f"{catalog}.{schema}", t, "TABLE") for t in self.session.list_tables(catalog, schema)]
        return sorted(found)

    def columns(self, table: str) -> list[tuple[str, str]]:
        """Return (name, type) of a table's columns. Raise TABLE_NOT_FOUND."""
        found = self.session.sql(self._rewrite(f"SELECT * FROM {table}").sql)
        if found.frame is None:
            return [(field.name, type_text(field.type)) for field in found.schema]
        return [(f.name, f.dataType.simpleString()) for f in found.frame.schema.fields]

    # -- transactions -----------------------------------------------------------------------------------

    def commit(self) -> None:
        """Do nothing: statements commit themselves."""

    def rollback(self) -> None:
        """Raise NOT_SUPPORTED."""
        raise TrinityError("NOT_SUPPORTED", "On Trinity tables every statement is its own transaction; none is open.")

    def close(self) -> None:
        """Close the session."""
        self.session.close()

    def archive(self, table: str, retention: str | None) -> tuple[int, int]:
        """Drop all but the newest versions, now and in later compactions; keep deletions for the retention, a duration.

        Raises:
            TrinityError: TABLE_NOT_FOUND; INVALID_ARGUMENTS for a missing or invalid retention.
        """
        found = Scopes(self._model, self.dialect).find(trees.table_named(table, self.dialect))
        stored = self._stored(found) if found is not None else None
        if stored is None:
            raise TrinityError("TABLE_NOT_FOUND", f"There is no journalled table '{table}'.")
        if retention is None:
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"The journal of {table} is read merged, so it needs no subsequent versions. Give a retention for its "
                "deletions, such as '30 days'; older versions of rows are then dropped.",
            )
        stored.set_properties({"tombstone.retention": retention})
        before = _row_versions(stored)
        stored.compact(full=True)
        return 0, before - _row_versions(stored)


def _row_versions(table: Table) -> int:
    splits = table.splits()
    return sum(map(rows_in, (*splits.files, *splits.sidecar)))


def _check(table: JournalTable, properties: Mapping[str, str], types: Mapping[str, str], key: Sequence[str]) -> None:
    """Raise CONFIGURATION_INVALID for a table that is no journal of this model."""
    where = f"Model: schema '{table.schema}', table '{table.name}'"
    wanted = {"watermark-key": table.version, "tombstone-key": table.subsequent}
    for option, column in wanted.items():
        if properties.get(option, "").lower() != column:
            raise TrinityError(
                "CONFIGURATION_INVALID", f"{where}: {table.journal} needs the table property '{option}' = '{column}'."
            )
    for column in (c for u in table.unique_keys for c in u if c not in types):
        raise TrinityError("CONFIGURATION_INVALID", f"{where}, journalUniqueKeys: there is no column '{column}'.")
    if set(key) != set(table.key):
        raise TrinityError(
            "CONFIGURATION_INVALID",
            f"{where}: the key is ({', '.join(table.key)}), and that of {table.journal} ({', '.join(key)}).",
        )
    for column in (table.version, table.subsequent):
        if types[column] != _KINDS[table.version_type]:
            raise TrinityError(
                "CONFIGURATION_INVALID",
                f"{where}, journalVersionType: {table.version_type} does not fit column '{column}' of type "
                f"{types[column]}.",
            )


def ingest(session: Session, name: TableName, data: Any, mode: IngestMode) -> int:
    """Store the rows of a data frame by one commit, and return their number.

    ``append`` needs an existing table. ``create`` and ``replace`` create a plain table with the columns of the data;
    ``replace`` puts it in the place of an existing one (L13). ``create_append`` creates the table only if it does not
    exist.

    Raises:
        TrinityError: TABLE_NOT_FOUND; as :meth:`trinity.Table.upsert` and :meth:`trinity.Session.create_table`. The
            table is then as it was.
    """
    rows: Any = arrow_reader(data)
    found = session.find_table(name) if session.table_exists(name) else None
    if found is None and mode == "append":
        raise session.table_missing(name)
    if found is not None and mode in ("append", "create_append"):
        return (found.upsert(rows) if found.definition.keyed else found.append(rows)).rows
    return session.create_table(name, rows, replace=mode == "replace").count()
