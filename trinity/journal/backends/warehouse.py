"""Trinity tables of a warehouse: each statement its own transaction, with the engine's conflict handling."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trinity.errors import TrinityError
from trinity.journal.backends.base import Described, Result
from trinity.journal.backends.literals import with_literals
from trinity.journal.merged import Merged, rewrite_merged
from trinity.journal.model import LoadedModel
from trinity.journal.tables import JournalColumn, JournalModel, JournalTable
from trinity.merge.literal import quoted
from trinity.session import Session, connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trinity.table import Table

__all__ = ["WarehouseBackend"]

_COUNT: Final = "num_affected_rows"
_KINDS: Final = {"BIGINT": "bigint", "TIMESTAMP": "timestamp"}


class WarehouseBackend:
    """One session over a warehouse.

    Args:
        warehouse: its folder.
        loaded: a model of journalled tables that are Trinity tables: ``jdbcCatalog`` is their catalog.
        options: further arguments of :func:`trinity.connect`.

    Raises:
        TrinityError: CONFIGURATION_INVALID when the model does not fit the tables.
    """

    name = "trinity"
    dialect = "spark"

    def __init__(self, warehouse: str | Path, loaded: LoadedModel | None, options: Mapping[str, Any]) -> None:
        self.session: Session = connect(warehouse, **options)
        self._view = f"_trinity_versions_{uuid.uuid4().hex}"  # connections of one process share Spark and its views
        self._given = loaded.journal if loaded is not None else JournalModel(())
        self._model = self._described()

    @property
    def autocommit(self) -> bool:
        """Always."""
        return True

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        if not value:
            raise TrinityError("NOT_SUPPORTED", "On Trinity tables every statement is its own transaction.")

    # -- the model --------------------------------------------------------------------------------------

    def _described(self) -> JournalModel:
        found = tuple(self._described_table(t) for t in self._given.tables)
        return replace(self._given, tables=found, search_path=(self.session.current_schema,))

    def _described_table(self, table: JournalTable) -> JournalTable:
        catalog = table.catalog or self.session.current_catalog
        placed = replace(table, catalog=catalog, merged=True, columns=(), versions_view=self._view)
        stored = self._stored(placed)
        if stored is None:
            return placed
        definition = stored.definition
        _check(placed, definition.properties, {c.name: c.type for c in definition.columns}, definition.primary_key)
        return replace(placed, columns=tuple(JournalColumn(c.name, c.type, c.type) for c in definition.columns))

    def _stored(self, table: JournalTable) -> Table | None:
        if table.backend_schema.lower() not in self.session.connector(table.catalog).metadata.list_schemas():
            return None
        name = self.session.table_name([table.catalog, table.backend_schema, table.journal])
        return self.session.find_table(name)

    # -- statements -------------------------------------------------------------------------------------

    def execute(self, sql: str, parameters: Sequence[Any]) -> Result:
        """Runs one statement. Raises TrinityError."""
        text = with_literals(sql, parameters)
        found = self._rewrite(text)
        if found.versions_of is None:
            result = _result(self.session.sql(found.sql))
        else:
            result = self._fill_keys(found, found.versions_of)
        if found.defines or text.lstrip()[:6].upper() in ("CREATE", "ALTER ", "DROP T", "DROP S") or found.sql == text:
            self._model = self._described() if self._model.tables else self._model
        return result

    def _rewrite(self, text: str) -> Merged:
        return rewrite_merged(text, self._model) if self._model.tables else Merged(text)

    def _fill_keys(self, found: Merged, table: JournalTable) -> Result:
        """Runs a statement that brings keys to life: their versions continue those of deleted rows.

        Raises:
            TrinityError: TRANSACTION_CONFLICT when others wrote newer versions of these keys meanwhile.
        """
        stored = self._stored(table)
        assert stored is not None
        before = stored.splits().version
        try:
            stored.log(before).createOrReplaceTempView(table.versions_view)
            result = _result(self.session.sql(found.sql))
            if stored.splits().version > before + 1:  # others committed after the versions were looked up
                stored.log().createOrReplaceTempView(table.versions_view)
                self._check_visible(table, before)
            return result
        finally:
            self.session.spark.catalog.dropTempView(table.versions_view)

    def _check_visible(self, table: JournalTable, since: int) -> None:
        if self.session.spark.sql(_hidden_by_others(table, since)).count():
            raise TrinityError(
                "TRANSACTION_CONFLICT",
                f"Table {table}: another writer changed the same keys meanwhile, and its versions are newer; look "
                "whether the rows are there, and run the statement again.",
            )

    def explain(self, sql: str) -> list[str]:
        """The statement that would be sent."""
        return [self._rewrite(sql).sql]

    # -- the catalog ------------------------------------------------------------------------------------

    def tables(self) -> list[tuple[str, str, str]]:
        """(catalog.schema, name, kind)."""
        self._model = self._described()
        found = [(t.schema, t.name, "JOURNALLED TABLE") for t in self._model.tables if t.columns]
        for catalog, connector in self.session.catalogs.items():
            for schema in connector.metadata.list_schemas():
                found += [(f"{catalog}.{schema}", t, "TABLE") for t in self.session.list_tables(catalog, schema)]
        return sorted(found)

    def columns(self, table: str) -> list[tuple[str, str]]:
        """(name, type) of a table's columns. Raises TABLE_NOT_FOUND."""
        found = self.session.sql(self._rewrite(f"SELECT * FROM {table}").sql)
        return [(f.name, f.dataType.simpleString()) for f in found.schema.fields]

    # -- transactions -----------------------------------------------------------------------------------

    def commit(self) -> None:
        """Nothing to do: statements commit themselves."""

    def rollback(self) -> None:
        """Raises NOT_SUPPORTED."""
        raise TrinityError("NOT_SUPPORTED", "On Trinity tables every statement is its own transaction; none is open.")

    def close(self) -> None:
        """Releases the session."""
        self.session.close()

    def archive(self, table: str, retention: str | None) -> tuple[int, int]:
        """Raises NOT_SUPPORTED: Trinity's compaction does it."""
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Set 'tombstone.retention' of {table}'s journal and compact it: Session.table(...).compact().",
        )


def _result(rows: DataFrame) -> Result:
    if not rows.columns:
        return Result(None, iter(()), -1)
    if rows.columns[0] == _COUNT:
        return Result(None, iter(()), rows.collect()[0][0])
    found = [tuple(r) for r in rows.collect()]
    description: list[Described] = [
        (f.name, f.dataType.simpleString(), None, None, None, None, f.nullable) for f in rows.schema.fields
    ]
    return Result(description, iter(found), len(found))


def _hidden_by_others(table: JournalTable, since: int) -> str:
    """A query for versions that were committed after a newer one of their key."""
    key, version = ", ".join(quoted(k) for k in table.key), quoted(table.version)
    return (
        f"SELECT 1 FROM (SELECT _commit_version, {version} AS v, max({version}) OVER (PARTITION BY {key} "
        f"ORDER BY _commit_version RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS earlier "
        f"FROM {table.versions_view}) WHERE _commit_version > {since} AND v < earlier"
    )


def _check(table: JournalTable, properties: Mapping[str, str], types: Mapping[str, str], key: Sequence[str]) -> None:
    """Raises CONFIGURATION_INVALID for a table that is no journal of this model."""
    where = f"Model: schema '{table.schema}', table '{table.name}'"
    wanted = {"watermark-key": table.version, "tombstone-key": table.subsequent}
    for option, column in wanted.items():
        if properties.get(option) != column:
            raise TrinityError(
                "CONFIGURATION_INVALID", f"{where}: {table.journal} needs the table property '{option}' = '{column}'."
            )
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
