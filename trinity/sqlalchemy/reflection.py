"""The reflection of schemas and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from sqlalchemy import exc
from sqlalchemy.engine import Connection, reflection

from trinity.errors import TrinityError
from trinity.merge.properties import shown_properties
from trinity.names import TableName, split_name
from trinity.spi import TableDefinition, parse_type
from trinity.sqlalchemy.types import type_of

if TYPE_CHECKING:
    from trinity.session import Session


class Reflection:
    """The part of the dialect that inspects schemas and tables. A schema of another catalog is ``catalog.schema``."""

    def _session(self, connection: Connection) -> Session:
        opened: Any = connection.connection.dbapi_connection
        found: Session = opened.backend.session
        return found

    def _schema_of(self, session: Session, schema: str | None) -> tuple[str, str]:
        return session.schema_name(split_name(schema) if schema else [session.current_schema])

    def _definition(self, connection: Connection, table: str, schema: str | None) -> TableDefinition:
        session = self._session(connection)
        try:
            return session.table(TableName(*self._schema_of(session, schema), table)).definition
        except TrinityError as error:
            if error.code not in ("TABLE_NOT_FOUND", "SCHEMA_NOT_FOUND"):
                raise
            raise exc.NoSuchTableError(table if schema is None else f"{schema}.{table}") from error

    # -- names ------------------------------------------------------------------------------------------

    @reflection.cache
    def get_schema_names(self, connection: Connection, **kw: Any) -> list[str]:
        """Return the schemas of all catalogs; those of other catalogs as ``catalog.schema``."""
        session = self._session(connection)
        others = [c for c in sorted(session.catalogs) if c != session.current_catalog]
        return [*session.schemas(), *(f"{c}.{schema}" for c in others for schema in session.schemas(c))]

    @reflection.cache
    def get_table_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        """Return the tables of a schema, by default of the current one."""
        session = self._session(connection)
        return session.list_tables(*self._schema_of(session, schema))

    @reflection.cache
    def get_view_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        """Return nothing: Trinity stores no views."""
        return []

    @reflection.cache
    def get_view_definition(
        self, connection: Connection, view_name: str, schema: str | None = None, **kw: Any
    ) -> NoReturn:
        """Raise NoSuchTableError: Trinity stores no views."""
        raise exc.NoSuchTableError(view_name)

    @reflection.cache
    def has_table(self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any) -> bool:
        """Return whether a table exists."""
        session = self._session(connection)
        return session.table_exists(TableName(*self._schema_of(session, schema), table_name))

    # -- tables -----------------------------------------------------------------------------------------

    @reflection.cache
    def get_columns(self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any) -> list[Any]:
        """Return the columns of a table."""
        return [
            {
                "name": column.name,
                "type": type_of(parse_type(column.type)),
                "nullable": column.nullable,
                "default": column.default,
                "comment": column.comment,
                "autoincrement": False,
            }
            for column in self._definition(connection, table_name, schema).visible
        ]

    @reflection.cache
    def get_pk_constraint(self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        """Return the key of a table."""
        key = self._definition(connection, table_name, schema).primary_key
        return {"constrained_columns": list(key), "name": None}

    @reflection.cache
    def get_foreign_keys(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """Return nothing: Trinity has no foreign keys."""
        self._definition(connection, table_name, schema)
        return []

    get_indexes = get_unique_constraints = get_foreign_keys

    @reflection.cache
    def get_check_constraints(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """Return the CHECKs of a table."""
        checks = self._definition(connection, table_name, schema).checks
        return [{"name": check.name, "sqltext": check.expression} for check in checks]

    @reflection.cache
    def get_table_comment(self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        """Return the comment of a table."""
        return {"text": self._definition(connection, table_name, schema).properties.get("comment") or None}

    @reflection.cache
    def get_table_options(self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        """Return partitioning and properties of a table, as the arguments of a Table."""
        definition = self._definition(connection, table_name, schema)
        found: dict[str, Any] = {}
        if definition.partition_by:
            found["trinity_partition_by"] = [str(field) for field in definition.partition_fields]
        properties = shown_properties(definition)
        properties.pop("comment", None)
        return {**found, "trinity_properties": properties} if properties else found
