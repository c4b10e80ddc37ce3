"""The dialect ``trinity://``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any, Final

from sqlalchemy import Table, exc
from sqlalchemy import types as sa
from sqlalchemy.engine import URL, Connection
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.engine.interfaces import ConnectArgsType, DBAPIConnection

import trinity
from trinity.sqlalchemy.compiler import DDLCompiler, IdentifierPreparer, SQLCompiler
from trinity.sqlalchemy.reflection import Reflection
from trinity.sqlalchemy.types import Day, Exact, Timestamp, TypeCompiler

with suppress(ModuleNotFoundError):  # Alembic may not be installed
    from trinity.sqlalchemy import migrations  # noqa: F401 - the import registers its classes with Alembic

_OPTIONS: Final[dict[str, Callable[[str], Any]]] = {
    "catalog": str, "schema": str, "engine": str, "model": str, "local_bytes": int,
}  # fmt: skip
"""Option in the URL -> function that turns its text into an argument of :func:`trinity.dbapi.connect`."""

_PREFIXES: Final = {"storage.": "storage_options", "spark.": "spark_settings"}
"""Prefix of options in the URL -> the argument that collects them."""


class TrinityDialect(Reflection, DefaultDialect):
    """Trinity's tables for SQLAlchemy: ``trinity:///folder?catalog=delta&schema=sales&engine=local``.

    Each statement is a commit: there is nothing to roll back.
    """

    name = "trinity"
    driver = "dbapi"
    default_paramstyle = "qmark"
    supports_statement_cache = True
    statement_compiler = SQLCompiler
    ddl_compiler = DDLCompiler
    type_compiler_cls = TypeCompiler
    preparer: Any = IdentifierPreparer
    colspecs: Any = {  # noqa: RUF012 - as its base declares it, as below
        sa.DateTime: Timestamp, sa.Date: Day, sa.Numeric: Exact, sa.Float: sa.Float,
    }  # fmt: skip
    construct_arguments: Any = [  # noqa: RUF012
        (Table, {"format": None, "key": None, "partition_by": None, "properties": None})
    ]

    supports_alter = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_comments = True
    inline_comments = True
    supports_multivalues_insert = True
    supports_default_metavalue = True
    supports_sane_rowcount = True
    supports_sane_multi_rowcount = True
    div_is_floordiv = False
    cte_follows_insert = True
    postfetch_lastrowid = False
    supports_sequences = False
    supports_identity_columns = False
    max_identifier_length = 255

    timezone: str = "UTC"

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        """Return :mod:`trinity.dbapi`."""
        from trinity import dbapi

        return dbapi

    def create_connect_args(self, url: URL) -> ConnectArgsType:
        """Return the arguments of :func:`trinity.dbapi.connect` for a URL.

        Raises:
            ArgumentError: the URL names no warehouse, or an unknown option.
        """
        if not url.database or url.host:
            raise exc.ArgumentError(
                "Name the warehouse after three slashes: trinity:///folder, or trinity:///s3://bucket/path."
            )
        found: dict[str, Any] = {"warehouse": url.database}
        for option, value in url.query.items():
            prefix = next((p for p in _PREFIXES if option.startswith(p)), None)
            if prefix is not None:
                given = option if prefix == "spark." else option.removeprefix(prefix)
                found.setdefault(_PREFIXES[prefix], {})[given] = value
            elif option in _OPTIONS and isinstance(value, str):
                found[option] = _OPTIONS[option](value)
            else:
                known = ", ".join([*_OPTIONS, *(f"{p}..." for p in _PREFIXES)])
                raise exc.ArgumentError(f"The URL has the option '{option}'; known are {known}.")
        return (), found

    def initialize(self, connection: Connection) -> None:
        """Read the session's schema and time zone."""
        super().initialize(connection)
        self.timezone = self._session(connection).timezone

    def _get_server_version_info(self, connection: Connection) -> tuple[int, ...]:
        return tuple(int(part) for part in trinity.__version__.split(".")[:3] if part.isdigit())

    def _get_default_schema_name(self, connection: Connection) -> str:
        return self._session(connection).current_schema

    # -- each statement is a commit ---------------------------------------------------------------------

    def get_isolation_level_values(self, dbapi_conn: DBAPIConnection) -> list[Any]:
        """Return AUTOCOMMIT, the only level."""
        return ["AUTOCOMMIT"]

    def get_default_isolation_level(self, dbapi_conn: DBAPIConnection) -> Any:
        """Return AUTOCOMMIT."""
        return "AUTOCOMMIT"

    def get_isolation_level(self, dbapi_connection: DBAPIConnection) -> Any:
        """Return AUTOCOMMIT."""
        return "AUTOCOMMIT"

    def set_isolation_level(self, dbapi_connection: DBAPIConnection, level: Any) -> None:
        """Do nothing: AUTOCOMMIT is the only level."""

    def detect_autocommit_setting(self, dbapi_conn: DBAPIConnection) -> bool:
        """Return True."""
        return True

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Do nothing: no transaction is open."""

    def do_savepoint(self, connection: Connection, name: str) -> None:
        """Raise NotSupportedError."""
        raise exc.NotSupportedError(
            "SAVEPOINT", None, trinity.TrinityError("NOT_SUPPORTED", "Each statement is a commit.")
        )

    # -- statements -------------------------------------------------------------------------------------

    def do_execute(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        """Run a statement; skip the empty text to which CREATE INDEX is compiled."""
        if statement:
            cursor.execute(statement, parameters)

    def do_ping(self, dbapi_connection: Any) -> bool:
        """Return True for a connection that is open."""
        dbapi_connection.check_open()
        return True

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:
        """Return False: there is no server."""
        return False
