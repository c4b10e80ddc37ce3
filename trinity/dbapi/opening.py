"""Opening of connections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trinity.dbapi.connection import Connection
from trinity.dbapi.errors import api
from trinity.errors import TrinityError
from trinity.journal import ModelSource, load_model
from trinity.secrets import keep

__all__ = ["connect"]


@api
def connect(
    model: ModelSource | None = None,
    *,
    warehouse: str | Path | None = None,
    autocommit: bool | None = None,
    **options: Any,
) -> Connection:
    """Open a connection.

    Args:
        model: the journalled tables, and the place of PostgreSQL: a path, ``inline:`` and JSON, or a dict.
        warehouse: folder of Trinity tables; with a model its journalled tables are Trinity tables.
        autocommit: True for each statement as its own transaction; by default False, on Trinity tables always True.
        **options: on PostgreSQL libpq's parameters (``host``, ``user``, ``password``, ...), which win over the model's;
            on a warehouse the arguments of :func:`trinity.connect`.

    Raises:
        InterfaceError: the model is wrong, or does not fit the database.
        OperationalError: the server cannot be reached, or the model cannot be read.
    """
    keep(options)
    if warehouse is not None:
        from trinity.journal.backends.warehouse.backend import WarehouseBackend

        if autocommit is False:
            raise TrinityError("NOT_SUPPORTED", "On Trinity tables every statement is its own transaction.")
        return Connection(WarehouseBackend(warehouse, load_model(model) if model is not None else None, options))
    if model is None:
        raise TrinityError("CONFIGURATION_INVALID", "Nothing to connect to: give model=, warehouse= or both.")
    loaded = load_model(model)
    if loaded.options is None and not options:
        raise TrinityError(
            "CONFIGURATION_INVALID",
            "The model names no backend: give jdbcUrl, dataSource or connection in its operand, or a warehouse.",
        )
    try:
        from trinity.journal.backends.postgres.backend import PostgresBackend
    except ModuleNotFoundError as error:
        raise TrinityError(
            "CONFIGURATION_INVALID", "PostgreSQL needs psycopg: pip install 'trinity-merge[postgres]'."
        ) from error
    return Connection(PostgresBackend(loaded, options, bool(autocommit)))
