"""The command ``trinity`` and its subcommands."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer
from rich.console import Console

from trinity.calls import as_trinity
from trinity.engine.target import Engine
from trinity.errors import TrinityError

if TYPE_CHECKING:
    from trinity.result import Result
    from trinity.session import Session

__all__ = ["app"]

app = typer.Typer(
    help="One merge semantics over Parquet, Delta and Iceberg tables.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,  # they include options (N4)
)

Warehouse = Annotated[
    str,
    typer.Option("--warehouse", "-w", help="Folder with the three catalogs, or a bucket's place: s3://bucket/path."),
]

Executor = Annotated[str, typer.Option("--engine", help="auto, local (never Spark) or spark.")]


def _engine(name: str) -> Engine:
    found = next((known for known in get_args(Engine) if known == name), None)
    if found is None:
        raise typer.BadParameter(f"'{name}' is not one of {', '.join(get_args(Engine))}", param_hint="--engine")
    engine: Engine = found
    return engine


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for tables and report.")] = Path("demo-output"),
    warehouse: Annotated[
        str | None,
        typer.Option("--warehouse", "-w", help="Another place for the tables: a folder, or s3://bucket/path."),
    ] = None,
    batches: Annotated[int, typer.Option(min=1, max=1000, help="Number of micro-batches.")] = 12,
    engine: Executor = "auto",
) -> None:
    """Load the flights of 2013 into three formats, and show that they agree.

    May be interrupted at any moment and run again. Exits with 1 when an answer differs.
    """
    console = Console()
    with _reporting_errors():
        from trinity.demo.run import run_demo

        wrong = run_demo(output, batches, console, warehouse, _engine(engine)).differences()
    for line in wrong:
        console.print(line, style="bold red")
    raise typer.Exit(1 if wrong else 0)


@app.command()
def sql(
    statement: Annotated[str, typer.Argument(help="One SQL statement.")],
    warehouse: Warehouse = "warehouse",
    dialect: Annotated[str, typer.Option(help="spark, trino, postgres or duckdb.")] = "spark",
    limit: Annotated[int, typer.Option(min=1, help="Most rows to show.")] = 100,
    engine: Executor = "auto",
) -> None:
    """Run a statement, and print its result as a table."""
    with _reporting_errors():
        from trinity.connecting import connect

        with connect(warehouse, engine=_engine(engine)) as session:
            _print(session.sql(statement, dialect=dialect), limit)


@app.command()
def tail(
    table: Annotated[str, typer.Argument(help="catalog.schema.table.")],
    warehouse: Warehouse = "warehouse",
    after: Annotated[int | None, typer.Option(help="A version: changes after it. The newest by default.")] = None,
    once: Annotated[bool, typer.Option("--once", help="End when all changes are printed.")] = False,
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks at the table.")] = 1.0,
    output: Annotated[str, typer.Option("--output", "-o", help="table, or json: an object in each line.")] = "table",
) -> None:
    """Print what changes in a table, as it comes, until it is interrupted."""
    if output not in ("table", "json"):
        raise typer.BadParameter(f"'{output}' is not one of table, json", param_hint="--output")

    def wait() -> bool:
        if not once:
            time.sleep(interval)
        return not once

    with _reporting_errors(), suppress(KeyboardInterrupt):
        from trinity.cli.tail import followed, print_changes

        with _opened(warehouse) as session:
            found = session.table(table)
            start = found.splits().version if after is None else after
            for changes in followed(found, start, wait):
                print_changes(changes, sys.stdout, lines=output == "json")


@app.command()
def health(
    table: Annotated[str, typer.Argument(help="catalog.schema.table.")],
    warehouse: Warehouse = "warehouse",
) -> None:
    """Print what a table's files are like, what a read costs, and which compaction helps."""
    with _reporting_errors():
        from trinity.cli.upkeep import print_health

        with _opened(warehouse) as session:
            found = session.table(table)
            print_health(str(found.name), found.health(), Console())


@app.command()
def maintain(
    schema: Annotated[str | None, typer.Argument(help="catalog.schema; all of them without it.")] = None,
    warehouse: Warehouse = "warehouse",
    vacuum: Annotated[str | None, typer.Option(help="Vacuum too: how long versions stay, as '7 days'.")] = None,
) -> None:
    """Compact the tables that need it, for a scheduler.

    Exits with 1 when one of them failed.
    """
    with _reporting_errors():
        from trinity.cli.upkeep import print_upkeep

        with _opened(warehouse) as session:
            done = session.maintain(schema, vacuum=vacuum)
        print_upkeep(done, Console())
    raise typer.Exit(1 if any(kept.error for kept in done) else 0)


@app.command()
def repair(
    table: Annotated[str, typer.Argument(help="catalog.schema.table, whose newest metadata is damaged.")],
    warehouse: Warehouse = "warehouse",
    version: Annotated[int | None, typer.Option(help="Confirm the version to go back to.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing, and tell what would be lost.")] = False,
) -> None:
    """Go back to the newest version of a table that can be read; what was committed after it is lost."""
    with _reporting_errors(), _opened(warehouse) as session:
        done = session.repair(table, version=version, dry_run=dry_run)
    for commit in done.lost:
        typer.echo(f"lost: {commit.what}" if commit.damaged else f"lost, and may be whole: {commit.what}")
    says = "would be" if dry_run else "is"
    typer.echo(
        f"{table}: nothing is damaged." if done.skipped else f"{table}: version {done.back_to} {says} current now."
    )


@app.command()
def shell(
    model: Annotated[str | None, typer.Option("--model", "-m", help="Model of journalled tables.")] = None,
    warehouse: Annotated[
        str | None,
        typer.Option("--warehouse", "-w", help="Folder of Trinity tables, or a bucket's place: s3://bucket/path."),
    ] = None,
    execute: Annotated[list[str] | None, typer.Option("--execute", "-e", help="Statements to run.")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", exists=True, dir_okay=False, help="Script.")] = None,
    output: Annotated[str, typer.Option("--output", "-o", help="table, csv or json.")] = "table",
) -> None:
    """Run statements in the manner of sqlline: type them, or give them with -e, -f or through a pipe.

    Exits with 1 when a statement failed (-e and -f stop there), with 2 when there is no connection.
    """
    from trinity.cli.output import FORMATS
    from trinity.cli.shell import Shell, interactive

    kind = next((f for f in FORMATS if f == output), None)
    if kind is None:
        raise typer.BadParameter(f"'{output}' is not one of {', '.join(FORMATS)}", param_hint="--output")
    runner = Shell(sys.stdout, kind, Console(stderr=True))
    with _reporting_errors():
        if model is not None or warehouse is not None:
            runner.connect(model, warehouse)
    try:
        if execute or file is not None:
            given = [*(execute or []), *([file.read_text(encoding="utf-8")] if file is not None else [])]
            runner.run([line for text in given for line in [*text.splitlines(keepends=True), ";\n"]], stop=True)
        else:
            runner.run(interactive(runner) if sys.stdin.isatty() else sys.stdin, stop=False)
    finally:
        runner.close()
    raise typer.Exit(1 if runner.failed else 0)


@app.command()
def version() -> None:
    """Print the version."""
    from trinity import __version__

    typer.echo(__version__)


def _print(rows: Result, limit: int) -> None:
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


@contextmanager
def _opened(warehouse: str) -> Iterator[Session]:
    """Open a session on a warehouse that must exist: to a read, a mistyped one would look empty.

    Raises:
        TrinityError: CONFIGURATION_INVALID naming it; and as ``trinity.connect``.
    """
    from trinity.connecting import connect
    from trinity.storage import ObjectStore

    with connect(warehouse) as session:
        found = ObjectStore(warehouse)
        if not found.is_folder():
            raise TrinityError(
                "CONFIGURATION_INVALID", f"There is no warehouse '{found.root}'; give the folder of one by --warehouse."
            )
        yield session


@contextmanager
def _reporting_errors() -> Iterator[None]:
    """Print an error in one line, and exit with 2."""
    try:
        yield
    except (typer.Exit, BrokenPipeError):
        raise
    except Exception as error:
        known = as_trinity(error)
        Console(stderr=True).print(f"{known.code}: {known.message}", style="red", markup=False, highlight=False)
        raise typer.Exit(2) from error
