"""The subcommands that make a warehouse, and show what is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from trinity.cli.options import (
    AsJson,
    Executor,
    Limit,
    Named,
    Warehouse,
    engine_of,
    open_session,
    open_table,
    reporting_errors,
)
from trinity.cli.output import print_result, print_values, tell
from trinity.syntax.quoting import quoted

_ALL: Final = 100_000
"""Maximum number of rows that describe a table."""


def init(
    warehouse: Annotated[str, typer.Argument(help="A folder that need not exist.")] = "warehouse",
    as_json: AsJson = False,
) -> None:
    """Make the folder of a warehouse, and name its catalogs.

    A location in a bucket needs no folder: its first table or schema creates it.
    """
    with reporting_errors():
        from trinity.connecting import connect
        from trinity.storage import Location
        from trinity.storage.local_folders import check_warehouse
        from trinity.storage.location import in_bucket

        with connect(warehouse) as session:
            if not in_bucket(warehouse):
                folder = Path(str(Location.of(warehouse)))
                check_warehouse(folder)
                folder.mkdir(parents=True, exist_ok=True)
            catalogs = list(session.catalogs)
    values = {"warehouse": warehouse, "catalogs": catalogs}
    tell(as_json, values, f"{warehouse}: catalogs {', '.join(catalogs)}")


def tables(
    schema: Annotated[str | None, typer.Argument(help="catalog.schema; all of them without it.")] = None,
    warehouse: Warehouse = "warehouse",
    pattern: Annotated[str, typer.Option("--like", help="Names with * for any letters: 'order*'.")] = "*",
    as_json: AsJson = False,
) -> None:
    """List the tables, with their formats and versions."""
    with reporting_errors(), open_session(warehouse, "local") as session:
        found = map(session.table, session.tables(pattern, schema=schema, all_schemas=schema is None))
        shown = [(str(table.name), table.format, table.version, table.location) for table in found]
    print_values(["table", "format", "version", "location"], shown, as_json=as_json)


def describe(table: Named, warehouse: Warehouse = "warehouse", as_json: AsJson = False) -> None:
    """Print the columns of a table, its keys and its properties."""
    with open_table(table, warehouse) as found:
        name = ".".join(map(quoted, found.name.parts))
        print_result(found.session.sql(f"DESCRIBE EXTENDED {name}"), _ALL, as_json=as_json)


def history(table: Named, warehouse: Warehouse = "warehouse", as_json: AsJson = False, limit: Limit = 100) -> None:
    """Print the commits of a table that can be read, the newest first."""
    with open_table(table, warehouse) as found:
        print_result(found.history(), limit, as_json=as_json)


def changes(
    table: Named,
    after: Annotated[str, typer.Option("--after", help="A version or an ISO time: changes after it.")],
    until: Annotated[str | None, typer.Option("--until", help="The last version or time; the newest if none.")] = None,
    warehouse: Warehouse = "warehouse",
    net: Annotated[bool, typer.Option("--net", help="One change per key over all the versions.")] = False,
    as_json: AsJson = False,
    limit: Limit = 100,
    engine: Executor = "auto",
) -> None:
    """Print what changed in the merged rows between two versions; trinity tail prints it as it comes."""
    mode = "netChanges" if net else "dropCarryovers"
    with open_table(table, warehouse, engine) as found:
        rows = found.changes(_version_or_time(after), until and _version_or_time(until), deduplication_mode=mode)
        print_result(rows, limit, as_json=as_json)


def _version_or_time(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def sql(
    statement: Annotated[str, typer.Argument(help="One SQL statement.")],
    warehouse: Warehouse = "warehouse",
    dialect: Annotated[str, typer.Option(help="spark, trino, postgres or duckdb.")] = "spark",
    limit: Limit = 100,
    as_json: AsJson = False,
    engine: Executor = "auto",
) -> None:
    """Run a statement, and print its result as a table."""
    with reporting_errors():
        from trinity.connecting import connect

        with connect(warehouse, engine=engine_of(engine)) as session:
            print_result(session.sql(statement, dialect=dialect), limit, as_json=as_json)
