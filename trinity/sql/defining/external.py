"""CREATE [EXTERNAL] TABLE ... LOCATION: the registration of external tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trinity.errors import TrinityError
from trinity.spi import Column, TableDefinition, parse_type
from trinity.sql.parsing.properties import Options

if TYPE_CHECKING:
    from trinity.names import TableName
    from trinity.session import Session


def register(
    session: Session,
    name: TableName,
    columns: Sequence[Column],
    key: Sequence[str],
    options: Options,
    *,
    exists: bool,
    query: bool,
) -> None:
    """Register the table of a CREATE TABLE with a location.

    Args:
        session: the session.
        name: the table's full name.
        columns: the declared columns; if empty, the table's own.
        key: the declared primary key.
        options: the options of the statement.
        exists: True for IF NOT EXISTS.
        query: True if AS SELECT follows.

    Raises:
        TrinityError: NOT_SUPPORTED for AS SELECT; INVALID_ARGUMENTS where the statement and the table differ in their
            columns or partitions; as ``Session.register``.
    """
    if query:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Table '{name}': AS SELECT makes a table of Trinity's, whose folder Trinity chooses; leave LOCATION out.",
        )
    format_name = options.format or session.format_name(name.catalog)
    properties = {**options.properties, **({"primary-key": ",".join(key)} if key else {})}
    known = session.find_table(name) is not None
    table = session.register(name, format_name, options.location, properties, if_not_exists=exists)
    if known:
        return
    try:
        _check_declared(table.definition, columns, options.partition_by)
    except TrinityError:
        session.drop_table(name)
        raise


def _check_declared(definition: TableDefinition, columns: Sequence[Column], partition_by: Sequence[str]) -> None:
    declared = [(c.name.lower(), str(parse_type(c.type))) for c in columns]
    present = [(c.name.lower(), c.type) for c in definition.visible]
    if declared and sorted(declared) != sorted(present):
        wanted, has = (", ".join(f"{n} {t}" for n, t in found) for found in (declared, present))
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"Table '{definition.full_name}' is declared with the columns ({wanted}), and the files have ({has}); "
            "leave the columns out to take those.",
        )
    if partition_by and [p.lower() for p in partition_by] != [p.lower() for p in definition.partition_by]:
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"Table '{definition.full_name}' is declared with the partitions ({', '.join(partition_by)}), and the "
            f"files have ({', '.join(definition.partition_by)}); leave PARTITIONED BY out to take those.",
        )
