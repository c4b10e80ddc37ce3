"""The session: catalogs, names, Spark, and the entry to SQL."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from fnmatch import fnmatchcase
from html import escape
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

from trinity.calls import is_stopped, public
from trinity.catalogs import Catalogs, closed_session
from trinity.datasource.rendezvous import register_session, unregister_session
from trinity.definition.columns import Columns, columns_of
from trinity.engine.executes import NotLocal, asked_spark, default_local_bytes, refuse_alone, runs_alone
from trinity.errors import TrinityError, ignoring, nearest, not_pickled
from trinity.merge.properties import Properties, canonical_properties, duration_ms, is_own_property
from trinity.names import TableName, checked_name, split_name
from trinity.result import Result
from trinity.secrets import keep
from trinity.spark.running import running_session, spark_runs
from trinity.spi import (
    Capability,
    Column,
    CommitOperation,
    CommitResult,
    Connector,
    ConnectorContext,
    NewerMetadata,
    RepairResult,
    TableDefinition,
    TransactionId,
)
from trinity.storage import Location, ObjectStore, table_taken
from trinity.storage.commits import log_commit
from trinity.table import Table
from trinity.target import Engine
from trinity.zones import normal_zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from trinity.engine.compacting.upkeep import Upkeep


class Statements(Protocol):
    """The functions that run SQL on a session."""

    def run(
        self,
        session: Session,
        text: str,
        dialect: str = "spark",
        params: Any = None,
        txn: TransactionId | None = None,
    ) -> Any:
        """Run one statement; return its rows as :class:`~trinity.Result` takes them."""
        ...

    def split(self, text: str, dialect: str = "spark") -> list[str]:
        """Split a text into its statements."""
        ...


_of_statement: Final[ContextVar[tuple[Session, Engine] | None]] = ContextVar("engine of a statement", default=None)
"""The session whose statement is being executed, and the engine of that statement; None outside of statements."""


@public
class Session:
    """The entry to catalogs of tables, and to SQL on them. Threads may share a session, but none may call :meth:`use`.

    Attributes:
        current_catalog: the catalog of names without a catalog.
        current_schema: the schema of names without a schema.
        allow_code: whether SQL may run code and read files by path.
        engine: what executes statements, as for :func:`trinity.connect`.
        local_bytes: maximum bytes of files that a statement may read for this process to execute it.
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
        engine: Engine = "auto",
        local_bytes: int | None = None,
    ) -> None:
        self.allow_code = allow_code
        self._engine: Engine = engine
        self.local_bytes = default_local_bytes() if local_bytes is None else local_bytes
        self._statements = statements
        self._spark = spark
        self._spark_is_given = spark is not None
        self._settings = spark_settings
        keep(spark_settings)
        self._catalogs = Catalogs(catalogs, ConnectorContext(lambda: self.spark, spark_runs), storage_options)
        from trinity.external import ExternalTables  # imported with a session, so that ``import trinity`` is fast

        self.external = ExternalTables(self._catalogs, warehouse)
        if spark is not None:
            from trinity.spark.launch import check_spark

            check_spark(self._catalogs.prepare(spark), self._catalogs.requirements())
        self.current_catalog = self.current_schema = ""
        with self._catalogs.closed_by_error():
            self.use(catalog, schema)
        register_session(self)

    @property
    def engine(self) -> Engine:
        """What executes statements: the engine of the current statement, else that of :func:`trinity.connect`."""
        of_statement = _of_statement.get()
        return of_statement[1] if of_statement is not None and of_statement[0] is self else self._engine

    @engine.setter
    def engine(self, engine: Engine) -> None:
        self._engine = engine

    def __repr__(self) -> str:
        catalogs = ", ".join(self._catalogs)
        return f"Session({self.current_catalog}.{self.current_schema}; catalogs {catalogs}; engine {self.engine})"

    def _repr_html_(self) -> str:
        """Return the catalogs, and the tables of the current schema, for a notebook."""
        from trinity.descriptions import session_html

        current = f"{self.current_catalog}.{self.current_schema}"
        formats = {name: self._catalogs.format_name(name) for name in self._catalogs}
        try:
            return session_html(current, formats, self.tables())
        except TrinityError as error:  # the session is closed, or the schema was dropped
            return escape(f"{self!r}: {error.code}")

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise not_pickled("session", "call trinity.connect() with the same arguments")

    def close(self) -> None:
        """Release the catalogs: every later use of the session and its tables is refused (INVALID_ARGUMENTS).

        Spark serves the whole process and keeps running; ``session.spark.stop()`` ends it.
        """
        unregister_session(self)
        self._catalogs.close(for_good=True)

    def check_open(self) -> None:
        """Check that the session is not closed. Raises INVALID_ARGUMENTS.

        For Trinity's own modules.
        """
        if self._catalogs.is_closed:
            raise closed_session()

    @property
    def spark(self) -> SparkSession:
        """The session's Spark. The first use starts it; a later one starts it again if it was stopped.

        Raises:
            TrinityError: CONFIGURATION_INVALID when Spark cannot be started, or was given to :func:`trinity.connect`
                and was stopped since; NOT_SUPPORTED in a session with ``engine="local"``.
        """
        refuse_alone(self, "This", lambda: NotLocal("it is not yet done in this process alone"))
        found = self.running_spark
        if found is not None:
            return found
        if self._spark_is_given:
            raise TrinityError(
                "CONFIGURATION_INVALID",
                "The Spark session that was given to connect() was stopped; connect again, with one that runs.",
            )
        from trinity.spark.launch import local_spark

        self._spark = found = self._catalogs.prepare(local_spark(self._catalogs.requirements(), self._settings))
        register_session(self)
        return found

    @property
    def spark_is_given(self) -> bool:
        """Whether the caller gave the session its Spark.

        For Trinity's own modules.
        """
        return self._spark_is_given

    @property
    def running_spark(self) -> SparkSession | None:
        """The session's Spark; None when it does not run.

        For Trinity's own modules.
        """
        found = self._spark
        return None if found is None or is_stopped(found) else found

    def has_temp_view(self, name: str) -> bool:
        """Return whether Spark has a temporary view of a one-part name that is not a table of this session.

        A view that :meth:`publish` made of a table here does not count; a Spark that does not run has no views.
        For Trinity's own modules.
        """
        spark = asked_spark(self) or running_session()
        if spark is None or runs_alone(self):
            return False
        from trinity.spark.published import published_table
        from trinity.spark.remote import is_temp_view

        if not is_temp_view(spark, name):
            return False
        published = published_table(spark, name)
        return published is None or not self._is_at(published.name, published.location)

    def _is_at(self, name: TableName, location: str) -> bool:
        found = self.find_table(name) if name.catalog in self.catalogs else None
        return found is not None and found.handle.location == location

    @property
    def timezone(self) -> str:
        """The time zone in which a TIMESTAMP column takes timestamps without zone: Spark's session time zone.

        A session whose Spark does not run takes that of another Spark in this process, else its own setting, else UTC.
        With ``engine="local"`` its own setting comes first.
        """
        setting = "spark.sql.session.timeZone"
        if runs_alone(self) and setting in self._settings:
            return normal_zone(self._settings[setting])
        own = self._spark if self._spark_is_given else self.running_spark
        spark = own or running_session()  # Spark of another session may lack what tables need, but tells the zone
        return normal_zone((spark.conf if spark else self._settings).get(setting) or "UTC")

    @property
    def catalogs(self) -> Mapping[str, Connector]:
        """Catalog name -> connector, which the first look-up opens."""
        return self._catalogs

    def format_name(self, catalog: str) -> str:
        """Return the name of a catalog's connector, as in ``USING delta``. Raises CATALOG_NOT_FOUND."""
        return self._catalogs.format_name(catalog)

    def capabilities(self, catalog: str) -> frozenset[Capability]:
        """Return what the tables of a catalog's format can do. Raises CATALOG_NOT_FOUND."""
        return self._catalogs.capabilities(catalog)

    def connector(self, catalog: str) -> Connector:
        """Return a catalog's connector; its first use opens it. Raises CATALOG_NOT_FOUND, CONFIGURATION_INVALID."""
        self._catalogs.check(catalog)
        return self._catalogs[catalog]

    # -- names ------------------------------------------------------------------------------------------

    def use(self, catalog: str | None, schema: str) -> None:
        """Make a schema current. Raises CATALOG_NOT_FOUND, SCHEMA_NOT_FOUND."""
        catalog = (catalog or self.current_catalog).lower()
        if schema.lower() not in (schemas := self.connector(catalog).metadata.list_schemas()):
            raise _schema_missing(TableName(catalog, schema.lower(), ""), schemas)
        self.current_catalog, self.current_schema = catalog, schema.lower()

    def table_name(self, parts: Sequence[str], within: TableName | None = None) -> TableName:
        """Return the full name, in lower case, for one to three parts. For Trinity's own modules.

        Args:
            parts: the parts.
            within: a table whose catalog and schema complete a shorter name; by default the current ones do.

        Raises:
            TrinityError: INVALID_ARGUMENTS for another number of parts, or a part that is no name (N1);
                CATALOG_NOT_FOUND.
        """
        if not 1 <= len(parts) <= 3:
            given = ".".join(parts)
            raise TrinityError("INVALID_ARGUMENTS", f"'{given}' is no table name: write catalog.schema.table.")
        kinds = ("Catalog", "Schema", "Table")[3 - len(parts) :]
        lower = [checked_name(part.lower(), kind) for part, kind in zip(parts, kinds, strict=True)]
        outer = within.parts[:2] if within else (self.current_catalog, self.current_schema)
        name = TableName(*outer[: 3 - len(lower)], *lower)
        self.connector(name.catalog)
        return name

    def full_name(self, name: TableName | str) -> TableName:
        """Return the full name of a table, in lower case. Raises INVALID_ARGUMENTS, CATALOG_NOT_FOUND."""
        return self.table_name(name.parts if isinstance(name, TableName) else split_name(name))

    def find_table(self, name: TableName) -> Table[Session] | None:
        """Return the table of a full name; None if there is none."""
        registered = self.external.find(name)
        return Table(self, name, *registered) if registered else self._in_catalog(name)

    def _in_catalog(self, name: TableName) -> Table[Session] | None:
        connector = self.connector(name.catalog)
        handle = connector.metadata.get_table(name.schema, name.table)
        return Table(self, name, handle, connector) if handle else None

    def schemas(self, catalog: str | None = None) -> list[str]:
        """Return the names of a catalog's schemas, by default the current one's. Raises CATALOG_NOT_FOUND."""
        return self.connector((catalog or self.current_catalog).lower()).metadata.list_schemas()

    def tables(self, pattern: str = "*", *, schema: str | None = None, all_schemas: bool = False) -> list[str]:
        """Return the full names of a schema's tables, registered ones too, sorted.

        Args:
            pattern: which names, in any case: ``*`` stands for any characters, ``?`` for one.
            schema: ``catalog.schema``, or a schema of the current catalog; by default the current one.
            all_schemas: True for the tables of all schemas of all catalogs.

        Raises:
            TrinityError: CATALOG_NOT_FOUND, SCHEMA_NOT_FOUND; INVALID_ARGUMENTS for a schema and ``all_schemas``.
        """
        if all_schemas and schema is not None:
            raise TrinityError("INVALID_ARGUMENTS", f"tables() takes schema '{schema}' or all_schemas, not both.")
        schemas = self._catalogs.schemas(None if all_schemas else self._schema_of(schema))
        found = (TableName(*schema_name, name) for schema_name in schemas for name in self.list_tables(*schema_name))
        return [str(name) for name in found if fnmatchcase(name.table, pattern.lower())]

    def table_exists(self, name: TableName | str) -> bool:
        """Return whether a table exists. Raises INVALID_ARGUMENTS for a text that is no name, CATALOG_NOT_FOUND."""
        full = self.full_name(name)
        return full.schema in self.schemas(full.catalog) and self.find_table(full) is not None

    def publish(self, schema: str | None = None) -> list[str]:
        """Create a temporary view in the session's Spark for each table of a schema: its merged rows, under its name.

        A view shows the version that is the newest one at this call. The next call updates the views of the schema,
        and drops those of dropped tables. Statements of the session go on reading the tables themselves.

        Args:
            schema: ``catalog.schema``, or a schema of the current catalog; by default the current one.

        Returns:
            the names of the views.

        Raises:
            TrinityError: INVALID_ARGUMENTS where Spark has a temporary view of a table's name that shows something
                else, and the errors of reading a table: no view is created then; CATALOG_NOT_FOUND, SCHEMA_NOT_FOUND.
        """
        from trinity.spark.published import Published, drop_view, publish_view, published_table, published_tables
        from trinity.spark.remote import is_temp_view

        schema_name, spark = self._schema_of(schema), self.spark
        warehouse = self._catalogs.warehouse(schema_name.catalog)
        within = str(Location.of(warehouse)) if warehouse else ""
        names = self.list_tables(schema_name.catalog, schema_name.schema)
        named = [self.find_table(dataclasses.replace(schema_name, table=name)) for name in names]
        tables = [table for table in named if table is not None]  # others may have dropped some
        published = [Published(table.name, table.handle.location, within) for table in tables]
        for table, wanted in zip(tables, published, strict=True):
            view = table.name.table
            if is_temp_view(spark, view) and published_table(spark, view) != wanted:
                raise TrinityError(
                    "INVALID_ARGUMENTS",
                    f"Spark has a temporary view '{view}' already, which is not of table '{table.name}'; "
                    "drop or rename it.",
                )
        rows = [table.to_df() for table in tables]
        for frame, wanted in zip(rows, published, strict=True):
            publish_view(spark, frame, wanted)
        views = [table.name.table for table in tables]
        for view, found in published_tables(spark):
            here = found.warehouse == within and dataclasses.replace(found.name, table="_") == schema_name
            if here and found.name.table not in views:
                drop_view(spark, view)
        return views

    def create_schema(self, name: str, *, if_not_exists: bool = False) -> None:
        """Create a schema.

        Args:
            name: ``catalog.schema``, or a schema of the current catalog.
            if_not_exists: True to do nothing where the schema exists.

        Raises:
            TrinityError: SCHEMA_ALREADY_EXISTS, CATALOG_NOT_FOUND; NOT_SUPPORTED where a catalog makes no schemas.
        """
        schema_name = self._schema_of(name)
        with ignoring(*(("SCHEMA_ALREADY_EXISTS",) if if_not_exists else ())):
            self.connector(schema_name.catalog).metadata.create_schema(schema_name.schema)

    def drop_schema(self, name: str, *, if_exists: bool = False, cascade: bool = False) -> None:
        """Drop a schema.

        Args:
            name: ``catalog.schema``, or a schema of the current catalog.
            if_exists: True to do nothing where there is no such schema.
            cascade: True to drop its tables first; without it a schema with tables is refused.

        Raises:
            TrinityError: SCHEMA_NOT_FOUND, SCHEMA_NOT_EMPTY, CATALOG_NOT_FOUND; as :meth:`drop_table`.
        """
        from trinity.creation import create_exclusively

        schema_name = self._schema_of(name)
        metadata = self.connector(schema_name.catalog).metadata

        def make_again(_: object) -> None:
            with ignoring("SCHEMA_ALREADY_EXISTS"):  # a concurrent call has created it again
                metadata.create_schema(schema_name.schema)

        with ignoring(*(("SCHEMA_NOT_FOUND",) if if_exists else ())):
            if cascade and schema_name.schema in metadata.list_schemas():
                for table in self.list_tables(schema_name.catalog, schema_name.schema):
                    self.drop_table(dataclasses.replace(schema_name, table=table), if_exists=True)
            create_exclusively(
                self.external.excluding_all(schema_name.catalog, schema_name.schema),
                lambda: metadata.drop_schema(schema_name.schema),
                make_again,
                f"The removal of schema '{schema_name.catalog}.{schema_name.schema}'",
            )

    def schema_name(self, parts: Sequence[str]) -> tuple[str, str]:
        """Return catalog and schema, in lower case, for one or two parts; one part is a schema of the current catalog.

        For Trinity's own modules.

        Raises:
            TrinityError: INVALID_ARGUMENTS for another number of parts, or a part that is no name (N1);
                CATALOG_NOT_FOUND.
        """
        if not 1 <= len(parts) <= 2:
            raise TrinityError("INVALID_ARGUMENTS", f"'{'.'.join(parts)}' is no schema name: write catalog.schema.")
        catalog = parts[0].lower() if len(parts) == 2 else self.current_catalog
        self.connector(catalog)
        return catalog, checked_name(parts[-1].lower(), "Schema")

    def _schema_of(self, schema: str | None) -> TableName:
        """Return a schema, by default the current one, as the name of a table ``_`` in it. Errors as `schema_name`."""
        return TableName(*self.schema_name([self.current_schema] if schema is None else split_name(schema)), "_")

    def list_tables(self, catalog: str, schema: str) -> list[str]:
        """Return the names of a schema's tables, registered ones too, sorted. Raises SCHEMA_NOT_FOUND."""
        own = self.connector(catalog).metadata.list_tables(schema)
        return sorted({*own, *self.external.names(catalog, schema)})

    def table(self, name: TableName | str) -> Table[Session]:
        """Return the table of a name.

        Args:
            name: ``catalog.schema.table``, or relative to the current schema. Quote a part that contains a dot or a
                quote with backticks (or double quotes), and double the backticks in it.

        Raises:
            TrinityError: INVALID_ARGUMENTS for a text that is no name; CATALOG_NOT_FOUND, SCHEMA_NOT_FOUND or
                TABLE_NOT_FOUND, with the nearest name.
        """
        full = self.full_name(name)
        return self._present(full, self.find_table(full))

    def _present(self, name: TableName, found: Table[Session] | None) -> Table[Session]:
        if found is None:
            raise self.table_missing(name)
        return found

    def table_missing(self, name: TableName) -> TrinityError:
        """Return SCHEMA_NOT_FOUND or TABLE_NOT_FOUND for a table that does not exist, with the nearest name.

        For Trinity's own modules.
        """
        from trinity.external import registered_only

        metadata = self.connector(name.catalog).metadata
        schemas = metadata.list_schemas()
        if name.schema not in schemas:
            return _schema_missing(name, schemas)
        known = self.list_tables(name.catalog, name.schema)
        if name.table in self.external.names(name.catalog, name.schema):
            return registered_only(name)
        there = f"The schema has: {', '.join(known)}." if known else self._why_empty(name.catalog)
        return TrinityError("TABLE_NOT_FOUND", f"Table '{name}' does not exist.{nearest(name.table, known)} {there}")

    def _why_empty(self, catalog: str) -> str:
        folder = self._catalogs.warehouse(catalog)
        if folder is None or ObjectStore(folder).is_folder():
            return "The schema is empty."
        return f"There is no folder '{folder}' yet."

    # -- tables -----------------------------------------------------------------------------------------

    def create_table(
        self,
        name: TableName | str,
        columns: Columns | Any,
        *,
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        properties: Properties | None = None,
        if_not_exists: bool = False,
        checks: Mapping[str, str] | None = None,
        fill: Callable[[Table[Session]], object] | None = None,
        replace: bool = False,
    ) -> Table[Session]:
        """Create a table, empty or with rows, after checking its keys and properties (K1, U3, V1).

        If the rows are refused, no table is left; with ``replace`` the previous table stays as it was.

        Args:
            name: full or relative name.
            columns: its columns in order; or an Arrow or Spark schema, whose NOT NULL is kept; or rows: data as in
                :meth:`Table.upsert`, but not a single dict. The table then has the columns of the rows, all nullable
                except for the key.
            primary_key: key columns; empty for a plain table.
            partition_by: partition columns; on Iceberg also transforms, such as ``days(ts)`` or ``bucket(8, id)``.
            properties: table properties, in any spelling of docs/upsert.md and docs/merge-engines.md.
            if_not_exists: True to return the existing table as it is, if there is one.
            checks: name -> condition of CHECK constraints, Spark SQL over bare column names (M6).
            fill: a function that writes the first rows into its argument, the new table, even if another table takes
                the name meanwhile. If it fails, the new table is dropped, unless the rows may have been committed.
            replace: True to replace an existing table of the name in one commit; its earlier versions stay readable
                (L13). Cannot be combined with ``if_not_exists`` or ``fill``.

        Raises:
            TrinityError: TABLE_ALREADY_EXISTS, SCHEMA_NOT_FOUND, DUPLICATE_COLUMN_NAME, COLUMN_NOT_FOUND,
                INVALID_TABLE_PROPERTY, TYPE_MISMATCH, NOT_SUPPORTED, SYNTAX_ERROR; for rows also those of
                :meth:`Table.upsert`; as ``fill``; INVALID_ARGUMENTS for arguments that do not go together; with
                ``replace`` TRANSACTION_CONFLICT or TABLE_NOT_FOUND where others commit to the table, or drop it,
                meanwhile.
        """
        from trinity.creation import (
            check_owned,
            create_exclusively,
            create_or_replace,
            drop,
            get_or_create,
            insert_first_rows,
        )
        from trinity.engine.appending.append import append_rows
        from trinity.engine.appending.first_rows import columns_of_rows, first_rows
        from trinity.engine.changing.whole_table import replace_table
        from trinity.engine.values.check_types import check_types

        if replace and (if_not_exists or fill):
            raise TrinityError(
                "INVALID_ARGUMENTS", f"Table '{name}': replace goes with neither if_not_exists nor fill."
            )
        full, rows = self.full_name(name), first_rows(columns)
        write = fill if rows is None else lambda table: append_rows(table, rows, new=True)

        def define() -> TableDefinition:
            given = columns_of(columns) if rows is None else columns_of_rows(rows)
            return self.checked_definition(
                full, given, primary_key=primary_key, partition_by=partition_by, properties=properties, checks=checks
            )

        def make() -> Table[Session]:
            connector, definition = self.connector(full.catalog), define()
            check_types(definition, self)

            def create() -> Table[Session]:
                return Table(self, full, connector.metadata.create_table(definition), connector)

            made = create_exclusively(self.external.excluding(full), create, drop, f"Table '{full}'")
            log_commit(made.handle, CommitOperation.CREATE, CommitResult(0))
            if write:
                insert_first_rows(made, write)
            return Table(self, full, dataclasses.replace(made.handle, id=None), connector)

        def put_in_place_of(present: Table[Session]) -> Table[Session]:
            check_owned(lambda: present, "CREATE OR REPLACE")
            present.connector.metadata.begin_insert(present.handle)  # Delta first records what other engines altered
            replace_table(present, present.splits(), define(), rows)
            return present

        found = self._named(full)
        if replace:
            return create_or_replace(found, lambda: self.find_table(full), make, put_in_place_of, repeatable=False)
        return get_or_create(full, found, make, lambda: self.find_table(full), if_not_exists=if_not_exists)

    def create_like(
        self,
        name: TableName | str,
        definition: TableDefinition,
        *,
        if_not_exists: bool = False,
        fill: Callable[[Table[Session]], object] | None = None,
    ) -> Table[Session]:
        """Create a table with the columns, key, partitions, CHECKs and properties of another one.

        Properties of the other table's format are left out where the new table's format has none of that name.

        Args:
            name: full or relative name.
            definition: :attr:`Table.definition` of the other table.
            if_not_exists: as for :meth:`create_table`.
            fill: as for :meth:`create_table`; None for an empty table.

        Raises:
            TrinityError: as :meth:`create_table`.
        """
        like = self.definition_like(name, definition)
        return self.create_table(
            name,
            like.visible,
            primary_key=like.primary_key,
            partition_by=like.partition_by,
            properties=like.properties,
            if_not_exists=if_not_exists,
            checks={check.name: check.expression for check in like.checks},
            fill=fill,
        )

    def definition_like(self, name: TableName | str, definition: TableDefinition) -> TableDefinition:
        """Return the definition of the table that :meth:`create_like` would create from these arguments.

        For Trinity's own modules.
        """
        full = self.full_name(name)
        return self.checked_definition(
            full,
            [Column(c.name, c.type, c.nullable, c.default, c.comment) for c in definition.visible],
            primary_key=definition.primary_key,
            partition_by=definition.partition_by,
            properties={k: v for k, v in definition.properties.items() if self._has_option(full.catalog, k, v)},
            checks={check.name: check.expression for check in definition.checks},
        )

    def _has_option(self, catalog: str, key: str, value: str) -> bool:
        """Return whether users may set a property on tables of a catalog; False for Trinity's own marks."""
        if is_own_property(key):
            return False
        try:
            self.checked_properties(catalog, {key: value})
        except TrinityError:
            return False
        return True

    def register(
        self,
        name: TableName | str,
        connector: str,
        location: str | Path | None = None,
        properties: Properties | None = None,
        *,
        if_not_exists: bool = False,
        check: Callable[[TableDefinition], None] | None = None,
    ) -> Table[Session]:
        """Register an external or a federated table, and name its key (U7).

        All sessions of the same warehouse see the table under its name, until :meth:`drop_table` removes the
        registration. Its files stay as they are.

        Args:
            name: full or relative name, in any catalog.
            connector: the format: ``parquet``, ``delta``, ``iceberg`` or a third party's.
            location: the table's folder; None for a federated table, which is in the catalog already under this name.
            properties: ``primary-key`` = 'a[,b]', unless the table itself names its key or is a plain one; and any
                table property that CREATE TABLE takes.
            if_not_exists: True to return the existing table of that name, if there is one.
            check: gets the definition before the table is registered, and raises an error for one that is not wanted.

        Raises:
            TrinityError: TABLE_ALREADY_EXISTS, SCHEMA_NOT_FOUND, INVALID_ARGUMENTS (no such folder, or of another
                format), TABLE_NOT_FOUND (no such federated table), COLUMN_NOT_FOUND, INVALID_TABLE_PROPERTY,
                NOT_SUPPORTED (a feature, DEFAULT or CHECK of the table), CONFIGURATION_INVALID (no folder for the
                registration); as ``check``.
        """
        from trinity.creation import get_or_create
        from trinity.engine.values.spark.check_constraints import check_expressions

        full, folder = self.full_name(name), None if location is None else str(location)

        def judge(definition: TableDefinition) -> None:
            check_expressions(definition, spark=lambda: self.spark)
            if check is not None:
                check(definition)

        def make() -> Table[Session]:
            return Table(self, full, *self.external.register(full, connector, folder, properties or {}, judge))

        found = self._named(full)
        if folder is None and self.external.find(full) is None:
            found = None  # a federated table that is not registered: its catalog has it under this name
        return get_or_create(full, found, make, lambda: self.find_table(full), if_not_exists=if_not_exists)

    def _named(self, name: TableName) -> Table[Session] | None:
        if name.schema not in (schemas := self.connector(name.catalog).metadata.list_schemas()):
            raise _schema_missing(name, schemas)
        return self.find_table(name)

    def drop_table(self, name: TableName | str, *, if_exists: bool = False) -> None:
        """Remove a table and its files; of a registered table only the registration.

        Args:
            name: full or relative name.
            if_exists: True to do nothing where there is no such table.

        Raises:
            TrinityError: TABLE_NOT_FOUND, SCHEMA_NOT_FOUND; NOT_SUPPORTED for a table that Trinity did not make.
        """
        from trinity.creation import check_owned

        full = self.full_name(name)
        with ignoring(*(("TABLE_NOT_FOUND", "SCHEMA_NOT_FOUND") if if_exists else ())):
            if not self.external.forget(full):
                # in the catalog only: a table registered under the name meanwhile must not be dropped
                table = check_owned(lambda: self._present(full, self._in_catalog(full)), "DROP TABLE")
                table.connector.metadata.drop_table(table.handle)

    def rename_table(self, name: TableName | str, new: TableName | str) -> Table[Session]:
        """Give a table another name, and return it.

        Its versions, its recorded transactions and the streams into it go with it. Sessions that know it by its old
        name find no table there any more.

        Args:
            name: full or relative name.
            new: the new name, in the table's schema; or ``schema.name``, in its catalog.

        Raises:
            TrinityError: TABLE_NOT_FOUND, SCHEMA_NOT_FOUND, TABLE_ALREADY_EXISTS; INVALID_ARGUMENTS for a name in
                another catalog; NOT_SUPPORTED for a table that Trinity did not make, and in a bucket for formats
                without a catalog of their own.
        """
        from trinity.creation import check_owned, create_exclusively

        old = self.full_name(name)
        full = self.table_name(new.parts if isinstance(new, TableName) else split_name(new), within=old)
        if full.catalog != old.catalog:
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"Table '{old}' cannot leave its catalog as '{full}'; copy it by copy_to('{full}'), then drop it.",
            )
        if self.external.format_name(old):
            raise TrinityError(
                "NOT_SUPPORTED",
                f"Table '{old}' is registered, and keeps its name; DROP TABLE forgets the registration and leaves the "
                "files, register() then gives them another name.",
            )
        table = check_owned(lambda: self._present(old, self._in_catalog(old)), "RENAME")
        if self._named(full) is not None:
            raise table_taken(str(full))
        metadata = table.connector.metadata
        handle = create_exclusively(
            self.external.excluding(full),
            lambda: metadata.rename_table(table.handle, full.schema, full.table),
            lambda renamed: metadata.rename_table(renamed, old.schema, old.table),
            f"The name '{full}'",
        )
        return Table(self, full, handle, table.connector)

    def repair(self, name: TableName | str, *, version: int | None = None, dry_run: bool = False) -> RepairResult:
        """Go back to the newest readable version of a table whose newest metadata is damaged.

        Later commits are lost, so let nobody write meanwhile. What others removed from a Delta log, and the
        definition that they unset or changed on Iceberg, is put back.

        Args:
            name: the table.
            version: the version to go back to, as a confirmation; required if lost commits may be intact.
            dry_run: True to change nothing, and only return what would be lost.

        Raises:
            TrinityError: TABLE_NOT_FOUND, BAD_DATA (nothing is left), INVALID_ARGUMENTS (unconfirmed), NOT_SUPPORTED.
        """
        from trinity.creation import check_owned

        table = check_owned(lambda: self.table(name), "repair")
        try:
            _ = table.definition
        except NewerMetadata:  # written by a newer release, and not damaged as far as this release can tell (L12)
            raise
        except TrinityError:
            pass  # a repair is for what cannot be read
        done = table.connector.metadata.repair(table.handle, version=version, dry_run=dry_run)
        if not (dry_run or done.skipped):
            log_commit(table.handle, CommitOperation.REPAIR, done)
        return done

    def maintain(self, schema: str | None = None, *, vacuum: str | None = None) -> list[Upkeep]:
        """Compact each table as its :meth:`Table.health` recommends. Meant for a scheduler.

        External tables are skipped. If the work on a table fails, its entry says why, and the other tables follow.

        Args:
            schema: ``catalog.schema``, or a schema of the current catalog; by default all schemas of all catalogs.
            vacuum: a duration as in :meth:`Table.vacuum`: also vacuums each table, and removes dropped tables.

        Returns:
            an entry for each table, in the order of their names, and for each schema that had dropped tables.

        Raises:
            TrinityError: CATALOG_NOT_FOUND, SCHEMA_NOT_FOUND; INVALID_ARGUMENTS for a text that is no duration.
        """
        from trinity.engine.compacting.upkeep import maintain_table, sweep_dropped_tables

        if vacuum is not None:
            duration_ms(vacuum, "maintain(vacuum)")
        schema_name = self._schema_of(schema) if schema is not None else None
        done = [
            maintain_table(t, vacuum) for t in map(self.find_table, self._catalogs.tables(schema_name)) if t is not None
        ]
        return [*done, *sweep_dropped_tables(self._catalogs, schema_name, vacuum)]

    def checked_definition(
        self,
        name: TableName,
        columns: Sequence[Column],
        *,
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        properties: Properties | None = None,
        checks: Mapping[str, str] | None = None,
    ) -> TableDefinition:
        """Return the definition of the table that :meth:`create_table` would create from these arguments.

        For Trinity's own modules.
        """
        from trinity.definition.define import define_table  # imports SQL's parser, which a read may not need

        prefixes = self._catalogs.property_prefixes(name.catalog)
        return define_table(name, columns, primary_key, partition_by, properties or {}, prefixes, checks or {})

    def checked_properties(self, catalog: str, properties: Properties) -> dict[str, str]:
        """Return properties in canonical spelling. Raises INVALID_TABLE_PROPERTY.

        For Trinity's own modules.
        """
        return canonical_properties(properties, self._catalogs.property_prefixes(catalog))

    # -- SQL --------------------------------------------------------------------------------------------

    def sql(
        self,
        text: str,
        params: Sequence[Any] | Mapping[str, Any] | None = None,
        *,
        dialect: str = "spark",
        txn: TransactionId | None = None,
        engine: Engine | None = None,
    ) -> Result:
        """Run one statement.

        Args:
            text: the statement; it may end with ``;`` or a comment.
            params: a value for each ``?`` of the text, or a mapping with a value for each ``:name``. A list that stands
                alone after IN is the list of values; elsewhere it is an ARRAY.
            dialect: ``spark`` or ``trino``; ``postgres`` and ``duckdb`` as far as types are known.
            txn: (application, version) of an INSERT, MERGE, UPDATE, DELETE or TRUNCATE; a retry with the same or a
                lower version does nothing (L4).
            engine: what executes the statement, as for :func:`trinity.connect`; None for the session's engine.

        Returns:
            for a query merged rows, which are computed when they are asked for; for DML one row of counts
            ``num_affected_rows``, ``num_updated_rows``, ``num_deleted_rows``, ``num_inserted_rows``; for SHOW and
            DESCRIBE their rows.

        Raises:
            TrinityError: SYNTAX_ERROR, PERMISSION_DENIED (without ``allow_code``), INVALID_ARGUMENTS (another engine in
                a session with ``engine="local"``), and the errors of the statement.
        """
        self.check_open()
        if runs_alone(self) and engine not in (None, "local"):
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"sql(engine='{engine}'): the session has engine='local', and never starts Spark; connect with "
                f"engine='{engine}'.",
            )
        token = _of_statement.set((self, engine or self.engine))
        try:
            return Result(self, self._statements().run(self, text, dialect, params, txn))
        finally:
            _of_statement.reset(token)

    def script(self, text: str, *, dialect: str = "spark") -> list[Result]:
        """Run several statements in order; stop at the first error."""
        return [self.sql(statement, dialect=dialect) for statement in self._statements().split(text, dialect)]


def _schema_missing(name: TableName, schemas: list[str]) -> TrinityError:
    return TrinityError(
        "SCHEMA_NOT_FOUND",
        f"Catalog '{name.catalog}' has no schema '{name.schema}'.{nearest(name.schema, schemas)} "
        f"It has: {', '.join(schemas)}.",
    )
