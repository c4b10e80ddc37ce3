"""The session: catalogs, names, Spark, and the entry to SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from trinity.calls import is_stopped, public
from trinity.catalogs import Catalogs
from trinity.datasource.rendezvous import offer, withdraw
from trinity.definition.columns import Columns, columns_of
from trinity.definition.define import define_table
from trinity.engine.spark.running import running_session, spark_runs
from trinity.engine.values.check_types import check_types
from trinity.errors import TrinityError, nearest
from trinity.merge.options import Properties, canonical_properties, duration_ms
from trinity.names import TableName, checked_name, split_name
from trinity.secrets import keep
from trinity.spi import Connector, ConnectorContext, RepairResult, TransactionId
from trinity.zones import normal_zone

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from trinity.engine.compacting.upkeep import Upkeep
    from trinity.table import Table

__all__ = ["Session", "Statements"]


class Statements(Protocol):
    """Runs SQL on a session."""

    def run(
        self,
        session: Session,
        text: str,
        dialect: str = "spark",
        params: Any = None,
        txn: TransactionId | None = None,
    ) -> DataFrame:
        """Runs one statement."""
        ...

    def split(self, text: str, dialect: str = "spark") -> list[str]:
        """The statements of a text."""
        ...


@public
class Session:
    """Catalogs of tables over one Spark. Safe to use from several threads, but for :meth:`use`.

    Attributes:
        external: the tables that are registered beside those of the catalogs.
        allow_code: whether SQL may reach code and files.
    """

    def __init__(
        self,
        catalogs: Mapping[str, dict[str, Any]],
        catalog: str,
        schema: str,
        spark: SparkSession | None,
        spark_settings: dict[str, str],
        warehouse: str | None = None,
        allow_code: bool = False,
        storage_options: Mapping[str, Any] | None = None,
        *,
        statements: Callable[[], Statements],
    ) -> None:
        self.allow_code = allow_code
        self._statements = statements
        self._spark = spark
        self._spark_is_given = spark is not None
        self._settings = spark_settings
        keep(spark_settings)
        self._catalogs = Catalogs(catalogs, ConnectorContext(lambda: self.spark, spark_runs), storage_options)
        from trinity.external import ExternalTables  # not before a session is made: importing trinity is light

        self.external = ExternalTables(self._catalogs, warehouse)
        if spark is not None:
            from trinity.engine.spark.local import check_spark

            check_spark(self._catalogs.prepare(spark), self._catalogs.requirements())
        self.current_catalog = self.current_schema = ""
        with self._catalogs.closed_by_error():
            self.use(catalog, schema)
        offer(self)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Releases the catalogs. Spark goes on: it serves the whole process, ``session.spark.stop()`` ends it."""
        withdraw(self)
        self._catalogs.close()

    @property
    def spark(self) -> SparkSession:
        """The session's Spark; started by the first use, and again where it was stopped since.

        Raises:
            TrinityError: CONFIGURATION_INVALID for one that was given to :func:`trinity.connect` and was stopped; and
                where it cannot be started.
        """
        found = self._running
        if found is not None:
            return found
        if self._spark_is_given:
            raise TrinityError(
                "CONFIGURATION_INVALID",
                "The Spark session that was given to connect() was stopped; connect again, with one that runs.",
            )
        from trinity.engine.spark.local import local_spark

        self._spark = found = self._catalogs.prepare(local_spark(self._catalogs.requirements(), self._settings))
        offer(self)
        return found

    @property
    def _running(self) -> SparkSession | None:
        """The session's Spark, unless it was stopped."""
        found = self._spark
        return None if found is None or is_stopped(found) else found

    @property
    def timezone(self) -> str:
        """Spark's session time zone, by which a TIMESTAMP column takes a timestamp without zone."""
        own = self._spark if self._spark_is_given else self._running
        spark = own or running_session()  # that one may lack what tables here need: it is asked for no more
        settings = spark.conf if spark else self._settings
        return normal_zone(settings.get("spark.sql.session.timeZone") or "UTC")

    @property
    def catalogs(self) -> Mapping[str, Connector]:
        """Catalog name -> connector, opened when it is first looked up."""
        return self._catalogs

    def format_name(self, catalog: str) -> str:
        """The connector's name, as in ``USING delta``. Raises CATALOG_NOT_FOUND."""
        return self._catalogs.format_name(catalog)

    def connector(self, catalog: str) -> Connector:
        """The connector of a catalog, opened by its first use. Raises CATALOG_NOT_FOUND, CONFIGURATION_INVALID."""
        self._catalogs.check(catalog)
        return self._catalogs[catalog]

    # -- names ------------------------------------------------------------------------------------------

    def use(self, catalog: str | None, schema: str) -> None:
        """Makes a schema current. Raises CATALOG_NOT_FOUND, SCHEMA_NOT_FOUND."""
        catalog = (catalog or self.current_catalog).lower()
        if schema.lower() not in (schemas := self.connector(catalog).metadata.list_schemas()):
            raise _schema_missing(TableName(catalog, schema.lower(), ""), schemas)
        self.current_catalog, self.current_schema = catalog, schema.lower()

    def table_name(self, parts: Sequence[str]) -> TableName:
        """The full name for one to three parts, relative to the current catalog and schema; lower case.

        Raises:
            TrinityError: INVALID_ARGUMENTS for more parts, or what cannot name anything (N1); CATALOG_NOT_FOUND.
        """
        if not 1 <= len(parts) <= 3:
            given = ".".join(parts)
            raise TrinityError("INVALID_ARGUMENTS", f"'{given}' is no table name: write catalog.schema.table.")
        kinds = ("Catalog", "Schema", "Table")[3 - len(parts) :]
        lower = [checked_name(part.lower(), kind) for part, kind in zip(parts, kinds, strict=True)]
        name = TableName(*[self.current_catalog, self.current_schema][: 3 - len(lower)], *lower)
        self.connector(name.catalog)
        return name

    def _full(self, name: TableName | str) -> TableName:
        return self.table_name(name.parts if isinstance(name, TableName) else split_name(name))

    def find_table(self, name: TableName) -> Table | None:
        """The table, or None."""
        from trinity.table import Table

        registered = self.external.find(name)
        return Table(self, name, *registered) if registered else self._in_catalog(name)

    def _in_catalog(self, name: TableName) -> Table | None:
        from trinity.table import Table

        connector = self.connector(name.catalog)
        handle = connector.metadata.get_table(name.schema, name.table)
        return Table(self, name, handle, connector) if handle else None

    def list_tables(self, catalog: str, schema: str) -> list[str]:
        """Names of the tables of a schema, registered ones too, sorted. Raises SCHEMA_NOT_FOUND."""
        own = self.connector(catalog).metadata.list_tables(schema)
        return sorted({*own, *self.external.names(catalog, schema)})

    def table(self, name: TableName | str) -> Table:
        """The table of that name.

        Args:
            name: ``catalog.schema.table``, or relative to the current schema; a part with a dot or a quote in it stands
                in backticks (or double quotes), its own backticks doubled.

        Raises:
            TrinityError: INVALID_ARGUMENTS for a text that is no name; CATALOG_NOT_FOUND, SCHEMA_NOT_FOUND or
                TABLE_NOT_FOUND, with the nearest name.
        """
        full = self._full(name)
        return self._present(full, self.find_table(full))

    def _present(self, name: TableName, found: Table | None) -> Table:
        if found is None:
            raise self.table_missing(name)
        return found

    def table_missing(self, name: TableName) -> TrinityError:
        """SCHEMA_NOT_FOUND or TABLE_NOT_FOUND for a name that is not there, with the nearest one that is."""
        metadata = self.connector(name.catalog).metadata
        schemas = metadata.list_schemas()
        if name.schema not in schemas:
            return _schema_missing(name, schemas)
        known = self.list_tables(name.catalog, name.schema)
        there = f"The schema has: {', '.join(known)}." if known else "The schema is empty."
        return TrinityError("TABLE_NOT_FOUND", f"Table '{name}' does not exist.{nearest(name.table, known)} {there}")

    # -- tables -----------------------------------------------------------------------------------------

    def create_table(
        self,
        name: TableName | str,
        columns: Columns,
        *,
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        properties: Properties | None = None,
        if_not_exists: bool = False,
        checks: Mapping[str, str] | None = None,
    ) -> Table:
        """Makes an empty table, after checking its keys and options (K1, U3, V1).

        Args:
            name: full or relative name.
            columns: its columns in order; or a schema of Arrow's or of Spark's, whose NOT NULL holds.
            primary_key: key columns; empty for a plain table.
            partition_by: partition columns; on Iceberg transforms too, as ``days(ts)`` or ``bucket(8, id)``.
            properties: table properties, any spelling of docs/upsert.md and docs/merge-engines.md.
            if_not_exists: return the table that is there, if one is.
            checks: name -> condition of CHECK constraints, Spark SQL over bare column names (M6).

        Raises:
            TrinityError: TABLE_ALREADY_EXISTS, SCHEMA_NOT_FOUND, DUPLICATE_COLUMN_NAME, COLUMN_NOT_FOUND,
                INVALID_TABLE_PROPERTY, TYPE_MISMATCH, NOT_SUPPORTED, SYNTAX_ERROR.
        """
        from trinity.making import made_alone, made_or_found
        from trinity.table import Table

        full = self._full(name)

        def make() -> Table:
            connector, prefixes = self.connector(full.catalog), self._catalogs.property_prefixes(full.catalog)
            given, options = columns_of(columns), properties or {}
            definition = define_table(full, given, primary_key, partition_by, options, prefixes, checks or {})
            check_types(definition, lambda: self.spark)
            made = Table(self, full, connector.metadata.create_table(definition), connector)
            return made_alone(made, lambda: self.external.format_name(full))

        found = self._named(full)
        return made_or_found(full, found, make, lambda: self.find_table(full), if_not_exists=if_not_exists)

    def register(
        self,
        name: TableName | str,
        connector: str,
        location: str | Path | None = None,
        properties: Properties | None = None,
        *,
        if_not_exists: bool = False,
    ) -> Table:
        """Makes a table of Trinity's out of one that others wrote, by naming its key (U7).

        The table is known under the name until :meth:`drop_table` forgets it, in this session and in others of the
        same warehouse. Its files stay where and as they are.

        Args:
            name: full or relative name, in any catalog.
            connector: the format: ``parquet``, ``delta``, ``iceberg`` or a third party's.
            location: the table's folder; None for a table that the catalog of the name has already (a federated one).
            properties: ``primary-key`` = 'a[,b]', unless the table itself names its key or is a plain one, and every
                table property that a CREATE TABLE takes.
            if_not_exists: return the table that has the name, if one has.

        Raises:
            TrinityError: TABLE_ALREADY_EXISTS, SCHEMA_NOT_FOUND, INVALID_ARGUMENTS (no such folder, or of another
                format), TABLE_NOT_FOUND (no such federated table), COLUMN_NOT_FOUND, INVALID_TABLE_PROPERTY,
                NOT_SUPPORTED (a feature, DEFAULT or CHECK of the table), CONFIGURATION_INVALID (no folder to keep it).
        """
        from trinity.engine.values.check_constraints import check_expressions
        from trinity.making import made_or_found
        from trinity.table import Table

        full, place = self._full(name), None if location is None else str(location)
        judge = partial(check_expressions, spark=lambda: self.spark)

        def make() -> Table:
            return Table(self, full, *self.external.register(full, connector, place, properties or {}, judge))

        found = self._named(full)
        if place is None and self.external.find(full) is None:
            found = None  # a federated one: its catalog has it under the name
        return made_or_found(full, found, make, lambda: self.find_table(full), if_not_exists=if_not_exists)

    def _named(self, name: TableName) -> Table | None:
        if name.schema not in (schemas := self.connector(name.catalog).metadata.list_schemas()):
            raise _schema_missing(name, schemas)
        return self.find_table(name)

    def drop_table(self, name: TableName | str) -> None:
        """Removes a table and its files; of a registered one only the registration.

        Raises:
            TrinityError: TABLE_NOT_FOUND; NOT_SUPPORTED for a table that Trinity did not make.
        """
        full = self._full(name)
        if not self.external.forget(full):
            from trinity.making import owned

            # (one that another one registers meanwhile is not meant)
            table = owned(lambda: self._present(full, self._in_catalog(full)), "DROP TABLE")
            table.connector.metadata.drop_table(table.handle)

    def repair(self, name: TableName | str, *, version: int | None = None, dry_run: bool = False) -> RepairResult:
        """Go back to the newest version that can be read, of a table whose newest metadata is damaged.

        What was committed behind it is lost: let nobody write meanwhile. What others took from a Delta log is put back.

        Args:
            name: the table.
            version: confirms the one to go back to; needed where commits that may be whole are lost.
            dry_run: True to tell what would be lost, and change nothing.

        Raises:
            TrinityError: TABLE_NOT_FOUND, BAD_DATA (nothing is left), INVALID_ARGUMENTS (unconfirmed), NOT_SUPPORTED.
        """
        from trinity.making import owned

        table = owned(lambda: self.table(name), "repair")
        return table.connector.metadata.repair(table.handle, version=version, dry_run=dry_run)

    def maintain(self, schema: str | None = None, *, vacuum: str | None = None) -> list[Upkeep]:
        """Gives each table the compaction that its :meth:`Table.health` asks for; for a scheduler to call.

        External tables are left alone. What fails for one table is told in its entry, and the others go on.

        Args:
            schema: ``catalog.schema``, or a schema of the current catalog; all schemas of all catalogs without it.
            vacuum: a duration, as of :meth:`Table.vacuum`, which each table gets, and what has no name in a bucket.

        Returns:
            an entry for each table, in the order of their names, and for each schema where something had none.

        Raises:
            TrinityError: CATALOG_NOT_FOUND, SCHEMA_NOT_FOUND; INVALID_ARGUMENTS for a text that is no duration.
        """
        from trinity.engine.compacting.upkeep import keep_up, swept

        if vacuum is not None:
            duration_ms(vacuum, "maintain(vacuum)")
        place = self.table_name([*split_name(schema), "_"]) if schema is not None else None
        done = [keep_up(t, vacuum) for t in map(self.find_table, self._catalogs.tables(place)) if t is not None]
        return [*done, *swept(self._catalogs, place, vacuum)]

    def checked_properties(self, catalog: str, properties: Properties) -> dict[str, str]:
        """Properties in canonical spelling. Raises INVALID_TABLE_PROPERTY."""
        return canonical_properties(properties, self._catalogs.property_prefixes(catalog))

    # -- SQL --------------------------------------------------------------------------------------------

    def sql(
        self,
        text: str,
        params: Sequence[Any] | Mapping[str, Any] | None = None,
        *,
        dialect: str = "spark",
        txn: TransactionId | None = None,
    ) -> DataFrame:
        """Runs one statement.

        Args:
            text: the statement; a trailing ``;`` or comment is fine.
            params: a value for each ``?`` of the text, or a mapping with those of its ``:name``.
            dialect: ``spark`` or ``trino``; ``postgres`` and ``duckdb`` as far as types are known.
            txn: of an INSERT, MERGE, UPDATE, DELETE or TRUNCATE: (application, version); a retry with the same or a
                lower version does nothing (L4).

        Returns:
            for a query a lazy DataFrame of merged rows; for DML one row of counts ``num_affected_rows``,
            ``num_updated_rows``, ``num_deleted_rows``, ``num_inserted_rows``; for SHOW and DESCRIBE their rows.

        Raises:
            TrinityError: SYNTAX_ERROR, PERMISSION_DENIED (without ``allow_code``), and what the statement may raise.
        """
        return self._statements().run(self, text, dialect, params, txn)

    def script(self, text: str, *, dialect: str = "spark") -> list[DataFrame]:
        """Runs several statements in order; stops at the first error."""
        return [self.sql(statement, dialect=dialect) for statement in self._statements().split(text, dialect)]


def _schema_missing(name: TableName, schemas: list[str]) -> TrinityError:
    return TrinityError(
        "SCHEMA_NOT_FOUND",
        f"Catalog '{name.catalog}' has no schema '{name.schema}'.{nearest(name.schema, schemas)} "
        f"It has: {', '.join(schemas)}.",
    )
