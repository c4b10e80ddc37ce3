"""The command ``trinity``: ``demo``, ``sql``, ``version``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Console

from trinity.errors import TrinityError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["app"]

app = typer.Typer(
    help="One merge semantics over Parquet, Delta and Iceberg tables.", no_args_is_help=True, add_completion=False
)

Warehouse = Annotated[Path, typer.Option("--warehouse", "-w", help="Folder with the three catalogs.")]


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for tables and report.")] = Path("demo-output"),
    batches: Annotated[int, typer.Option(min=1, max=1000, help="Number of micro-batches.")] = 12,
) -> None:
    """Load the flights of 2013 into three formats, and show that they agree.

    May be interrupted at any moment and run again. Exits with 1 when an answer differs.
    """
    console = Console()
    try:
        from trinity.demo.run import run_demo

        wrong = run_demo(output, batches, console).differences()
    except TrinityError as error:
        _fail(error)
    for line in wrong:
        console.print(line, style="bold red")
    raise typer.Exit(1 if wrong else 0)


@app.command()
def sql(
    statement: Annotated[str, typer.Argument(help="One SQL statement.")],
    warehouse: Warehouse = Path("warehouse"),
    dialect: Annotated[str, typer.Option(help="spark or trino.")] = "spark",
    limit: Annotated[int, typer.Option(min=1, help="Most rows to show.")] = 100,
) -> None:
    """Run a statement, and print its result as a table."""
    try:
        from trinity.session import connect

        with connect(warehouse) as session:
            _print(session.sql(statement, dialect=dialect), limit)
    except TrinityError as error:
        _fail(error)


@app.command()
def version() -> None:
    """Print the version."""
    from trinity import __version__

    typer.echo(__version__)


def _print(rows: DataFrame, limit: int) -> None:
    from rich.table import Table
    from rich.text import Text

    console = Console()
    found = rows.take(limit + 1)
    table = Table(*rows.columns)
    for row in found[:limit]:
        table.add_row(*[Text("NULL", style="dim") if v is None else Text(str(v)) for v in row])
    console.print(table)
    if len(found) > limit:
        console.print(f"(the first {limit} rows; --limit shows more)")


def _fail(error: TrinityError) -> NoReturn:
    Console(stderr=True).print(f"{error.code}: {error.message}", style="red", markup=False, highlight=False)
    raise typer.Exit(2)
