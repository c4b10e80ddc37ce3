"""The registered tables of a session, and their connectors: registering, finding and forgetting tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from trinity.calls import public
from trinity.catalogs import Catalogs
from trinity.errors import TrinityError, nearest
from trinity.external.registry import Registration, Registry
from trinity.merge.properties import Properties, canonical_properties, property_text
from trinity.names import TableName
from trinity.spi import (
    CommitResult,
    Connector,
    ConnectorMetadata,
    DataFile,
    HistoryEntry,
    InsertTableHandle,
    MergeTableHandle,
    RewriteTableHandle,
    SplitSource,
    TableDefinition,
    TableHandle,
    TransactionId,
)
from trinity.storage import Location, no_table, table_taken
from trinity.storage.folder_names import no_schema, schema_in_use
from trinity.storage.foreign import SingleTable, not_ours, split_key


@public
class ExternalTables:
    """The external and federated tables of a session.

    Args:
        catalogs: the session's catalogs.
        warehouse: the session's warehouse, which has the registry; if None, each catalog's own warehouse has one.
    """

    def __init__(self, catalogs: Catalogs, warehouse: str | None) -> None:
        self._catalogs = catalogs
        self._warehouse = warehouse

    def find(self, name: TableName) -> tuple[TableHandle, Connector] | None:
        """Return the handle and connector of a registered table.

        Return None for a name that is not registered, and for a federated table that another engine has dropped.
        """
        found = self._registration(name)
        return self._open(name, found) if found else None

    def names(self, catalog: str, schema: str) -> list[str]:
        """Return the names that are registered in a schema, sorted."""
        registry = self._registry(catalog)
        return registry.tables(catalog, schema) if registry else []

    def excluding(self, name: TableName) -> AbstractContextManager[None]:
        """Run a block that makes a table with a name, unless the name is registered.

        Raises:
            TrinityError: TABLE_ALREADY_EXISTS; TABLE_NOT_FOUND for a federated table that another engine has dropped.
        """

        def check(registered: list[str]) -> None:
            if name.table not in registered:
                return
            registration = self._registration(name)  # None if it was forgotten since
            if registration is not None and self._open(name, registration) is None:
                raise registered_only(name)
            raise table_taken(str(name))

        registry = self._registry(name.catalog)
        return registry.excluding(*name.parts[:2], check, name.table) if registry else nullcontext()

    def excluding_all(self, catalog: str, schema: str) -> AbstractContextManager[None]:
        """Run a block that drops a schema, unless tables are registered in it. Raises SCHEMA_NOT_EMPTY."""

        def check(registered: list[str]) -> None:
            if registered:
                raise schema_in_use(catalog, schema, registered)

        registry = self._registry(catalog)
        return registry.excluding(catalog, schema, check) if registry else nullcontext()

    def format_name(self, name: TableName) -> str | None:
        """Return the format of a registered table; None for a name that is not registered."""
        found = self._registration(name)
        return found.connector if found else None

    def register(
        self,
        name: TableName,
        connector: str,
        location: str | None,
        properties: Properties,
        judge: Callable[[TableDefinition], None],
    ) -> tuple[TableHandle, Connector]:
        """Read a table's definition and register the table, unless ``judge`` raises an error for the definition.

        The other arguments, and the errors, are those of ``Session.register``.
        """
        registry = self._registry(name.catalog)
        if registry is None:
            raise TrinityError(
                "CONFIGURATION_INVALID",
                f"Table '{name}' cannot be registered: neither the session nor catalog '{name.catalog}' has a "
                "warehouse in a folder or a bucket to keep the registration in. Give connect(warehouse=...).",
            )
        key, options = split_key({name: property_text(value) for name, value in properties.items()})
        options = canonical_properties(options, self._catalogs.property_prefixes(self._catalog_of(name, connector)))
        where = str(Location.of(location)) if location is not None else None
        registration = Registration(connector, where, key, options)
        found = self._open(name, registration)
        if found is None:
            raise TrinityError("TABLE_NOT_FOUND", f"Catalog '{name.catalog}' has no table '{name}' to be registered.")
        handle, made = found
        splits = made.metadata.get_splits(handle)  # the properties fit the columns, and the files can be read
        judge(splits.definition)
        registry.add(name, registration, lambda: self._check_free(name, federated=location is None))
        return handle, made

    def _check_free(self, name: TableName, *, federated: bool) -> None:
        """Check that a name can be registered: its schema exists, and has a table of it only for a federated table."""
        metadata = self._catalogs[name.catalog].metadata
        if name.schema not in (schemas := metadata.list_schemas()):
            raise no_schema(name.catalog, name.schema, schemas)
        if not federated and metadata.get_table(name.schema, name.table):
            raise table_taken(str(name))

    def change_properties(self, name: TableName, properties: Mapping[str, str | None]) -> None:
        """Set properties of a registered table; the value None unsets a property.

        Raises:
            TrinityError: NOT_SUPPORTED for a table that is not registered; TABLE_NOT_FOUND without such a table.
        """

        def changed(found: Registration) -> Registration:
            given = {**found.properties, **properties}
            return replace(found, properties={key: value for key, value in given.items() if value is not None})

        registry = self._registry(name.catalog)
        if registry is None or not registry.change(name, changed):
            if self._catalogs[name.catalog].metadata.get_table(name.schema, name.table) is None:
                raise no_table(str(name))  # a concurrent call has dropped it
            raise not_ours(str(name), "its properties; to give it some of Trinity's, register it. ALTER TABLE is left")

    def forget(self, name: TableName) -> bool:
        """Remove a table's registration; its files stay. Return False if it is not registered."""
        registry = self._registry(name.catalog)
        return registry is not None and registry.get(name) is not None and registry.remove(name)

    def metadata_folder(self, name: TableName) -> str | None:
        """Return the folder for files about an external table that are not its own; None without a warehouse."""
        registry = self._registry(name.catalog)
        return registry.metadata_folder(name) if registry else None

    def _open(self, name: TableName, registration: Registration) -> tuple[TableHandle, Connector] | None:
        """Return a table's handle and connector; None for a federated table that its catalog does not have."""
        inner = self._catalogs[self._catalog_of(name, registration.connector)]
        handle = TableHandle(name.catalog, name.schema, name.table, registration.location or "")
        if registration.location is None:
            found = inner.metadata.get_table(name.schema, name.table)
            if found is None:
                return None
            handle = found
        return handle, ExternalConnector(inner, handle, registration)

    def _catalog_of(self, name: TableName, connector: str) -> str:
        """Return the catalog whose connector reads the table: the one in its name, or another of the same format."""
        formats = {catalog: self._catalogs.format_name(catalog) for catalog in self._catalogs}
        for catalog in (name.catalog, *formats):
            if formats[catalog] == connector:
                return catalog
        known = sorted(set(formats.values()))
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"Table '{name}': the session has no catalog of connector '{connector}'.{nearest(connector, known)} "
            f"It has: {', '.join(known)}.",
        )

    def _registration(self, name: TableName) -> Registration | None:
        registry = self._registry(name.catalog)
        return registry.get(name) if registry else None

    def _registry(self, catalog: str) -> Registry | None:
        warehouse = self._warehouse or self._catalogs.warehouse(catalog)
        return Registry(warehouse) if warehouse else None


def registered_only(name: TableName) -> TrinityError:
    """Return the error for a registered table that another engine has dropped."""
    return TrinityError(
        "TABLE_NOT_FOUND",
        f"Table '{name}' is registered, and catalog '{name.catalog}' has it no longer. DROP TABLE forgets the "
        "registration; then the name is free.",
    )


class _Metadata(SingleTable):
    """The adapter's metadata of a registered table, with the registered key and properties."""

    def __init__(self, inner: ConnectorMetadata, registration: Registration) -> None:
        self._inner = inner
        self._registration = registration

    def get_table_definition(self, table: TableHandle) -> TableDefinition:
        return self._registration.define(self._inner.get_table_definition(table))

    def get_splits(self, table: TableHandle) -> SplitSource:
        splits = self._inner.get_splits(table)
        return replace(splits, definition=self._registration.define(splits.definition))

    def history(self, table: TableHandle) -> list[HistoryEntry]:
        return self._inner.history(table)

    def since_checkpoint(self, table: TableHandle) -> int | None:
        return self._inner.since_checkpoint(table)

    def begin_insert(self, table: TableHandle) -> InsertTableHandle:
        insert = self._inner.begin_insert(table)
        return replace(insert, definition=self._registration.define(insert.definition))

    def finish_insert(
        self, insert: InsertTableHandle, fragments: Sequence[bytes], txn: TransactionId | None = None
    ) -> CommitResult:
        return self._inner.finish_insert(insert, fragments, txn)

    def recorded_txn(self, table: TableHandle, application: str) -> int | None:
        return self._inner.recorded_txn(table, application)

    def finish_merge(
        self, merge: MergeTableHandle, fragments: Sequence[bytes], txn: TransactionId | None = None
    ) -> CommitResult:
        return self._inner.finish_merge(merge, fragments, txn)

    def begin_rewrite(self, table: TableHandle, replaced: Sequence[DataFile]) -> RewriteTableHandle:
        return self._inner.begin_rewrite(table, replaced)

    def finish_rewrite(
        self, rewrite: RewriteTableHandle, fragments: Sequence[bytes], *, replace_sidecar: bool
    ) -> CommitResult:
        return self._inner.finish_rewrite(rewrite, fragments, replace_sidecar=replace_sidecar)


class ExternalConnector(Connector):
    """The connector of one registered table."""

    def __init__(self, inner: Connector, table: TableHandle, registration: Registration) -> None:
        opened = inner.open_external(table) if registration.location is not None else inner.metadata
        super().__init__(_Metadata(opened, registration), inner.sinks)
