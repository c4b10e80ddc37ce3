"""What the subcommands share: their options, how they open a session, and how they report errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, get_args

import typer
from rich.console import Console

from trinity.calls import as_trinity
from trinity.errors import TrinityError
from trinity.target import Engine

if TYPE_CHECKING:
    from trinity.session import Session
    from trinity.table import Table


def _tables(context: typer.Context, incomplete: str) -> list[str]:
    """Return the names of tables that start with a text: full ones, or ones within the current schema.

    Buckets are not asked: one that does not answer would stop the shell.
    """
    from trinity.storage.location import in_bucket

    warehouse = context.params.get("warehouse") or "warehouse"
    try:
        if in_bucket(warehouse):
            return []
        with open_session(warehouse, "local") as session:
            current = f"{session.current_catalog}.{session.current_schema}."
            names = session.tables(all_schemas=True)
    except Exception:  # there is no warehouse, or it cannot be read: the command that follows says so
        return []
    full = [name for name in names if name.startswith(incomplete)]
    return full or [name.removeprefix(current) for name in names if name.startswith(current + incomplete)]


Warehouse = Annotated[
    str,
    typer.Option("--warehouse", "-w", help="Folder with the three catalogs, or a bucket's place: s3://bucket/path."),
]
Named = Annotated[
    str,
    typer.Argument(metavar="TABLE", help="catalog.schema.table, or a part of it from the end.", autocompletion=_tables),
]
Executor = Annotated[
    str,
    typer.Option("--engine", help="auto, local (never Spark) or spark.", autocompletion=lambda: list(get_args(Engine))),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print a JSON object for each row, on a line of its own.")]
Limit = Annotated[int, typer.Option(min=1, help="Most rows to show in a table.")]


def engine_of(name: str) -> Engine:
    """Return the executor of a name. Raise BadParameter."""
    found = next((known for known in get_args(Engine) if known == name), None)
    if found is None:
        raise typer.BadParameter(f"'{name}' is not one of {', '.join(get_args(Engine))}", param_hint="--engine")
    engine: Engine = found
    return engine


@contextmanager
def open_session(warehouse: str, engine: str = "auto") -> Iterator[Session]:
    """Open a session on a warehouse that must exist: to a read, a mistyped one would look empty.

    Raises:
        TrinityError: CONFIGURATION_INVALID naming it; and as ``trinity.connect``.
    """
    from trinity.connecting import connect
    from trinity.storage import ObjectStore

    with connect(warehouse, engine=engine_of(engine)) as session:
        found = ObjectStore(warehouse)
        if not found.is_folder():
            raise TrinityError(
                "CONFIGURATION_INVALID",
                f"There is no warehouse '{found.root}'; give the folder of one by --warehouse, or make it by "
                "trinity init.",
            )
        yield session


@contextmanager
def open_table(name: str, warehouse: str, engine: str = "auto") -> Iterator[Table]:
    """Open a table of a warehouse, as :func:`open_session`; report errors."""
    with reporting_errors(), open_session(warehouse, engine) as session:
        yield session.table(name)


@contextmanager
def reporting_errors() -> Iterator[None]:
    """Print an error in one line, and exit with 2."""
    try:
        yield
    except (typer.Exit, typer.BadParameter, BrokenPipeError):
        raise
    except Exception as error:
        known = as_trinity(error)
        Console(stderr=True).print(f"{known.code}: {known.message}", style="red", markup=False, highlight=False)
        raise typer.Exit(2) from error
