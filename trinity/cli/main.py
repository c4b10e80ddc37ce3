"""The command ``trinity`` and its subcommands."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from trinity.cli import files, jars, maintenance, tables
from trinity.cli.options import Executor, Named, Warehouse, engine_of, open_table, reporting_errors

app = typer.Typer(
    help="One merge semantics over Parquet, Delta and Iceberg tables.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,  # local variables include secret options (N4)
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from trinity import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def trinity(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """One merge semantics over Parquet, Delta and Iceberg tables.

    Exits with 0 when all is done, with 1 when what was asked for failed in part or differs, with 2 on an error.
    """


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
    with reporting_errors():
        from trinity.demo.run import run_demo

        wrong = run_demo(output, batches, console, warehouse, engine_of(engine)).differences()
    for line in wrong:
        console.print(line, style="bold red")
    raise typer.Exit(1 if wrong else 0)


@app.command()
def tail(
    table: Named,
    warehouse: Warehouse = "warehouse",
    after: Annotated[int | None, typer.Option(help="A version: changes after it. The newest by default.")] = None,
    once: Annotated[bool, typer.Option("--once", help="End when all changes are printed.")] = False,
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks at the table.")] = 1.0,
    output: Annotated[str, typer.Option("--output", "-o", help="table, or json: an object in each line.")] = "table",
    engine: Executor = "auto",
) -> None:
    """Print what changes in a table, as it comes, until it is interrupted."""
    if output not in ("table", "json"):
        raise typer.BadParameter(f"'{output}' is not one of table, json", param_hint="--output")

    def wait() -> bool:
        if not once:
            time.sleep(interval)
        return not once

    with suppress(KeyboardInterrupt), open_table(table, warehouse, engine) as found:
        from trinity.cli.tail import follow, print_changes

        for changes in follow(found, found.version if after is None else after, wait):
            print_changes(changes, sys.stdout, lines=output == "json")


@app.command()
def shell(
    model: Annotated[str | None, typer.Option("--model", "-m", help="Model of journalled tables.")] = None,
    warehouse: Annotated[
        str | None,
        typer.Option("--warehouse", "-w", help="Folder of Trinity tables, or a bucket's place: s3://bucket/path."),
    ] = None,
    execute: Annotated[list[str] | None, typer.Option("--execute", "-e", help="Statements to run.")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", exists=True, dir_okay=False, help="Script.")] = None,
    output: Annotated[str, typer.Option("--output", "-o", help="table, csv, json or arrow.")] = "table",
    engine: Executor = "auto",
) -> None:
    """Run statements in the manner of sqlline: type them, or give them with -e, -f or through a pipe.

    Exits with 1 when a statement of -e, -f or a pipe failed (-e and -f stop there), with 2 when there is no connection.
    """
    from trinity.cli.output import FORMATS
    from trinity.cli.shell import Shell, interact

    kind = next((f for f in FORMATS if f == output), None)
    if kind is None:
        raise typer.BadParameter(f"'{output}' is not one of {', '.join(FORMATS)}", param_hint="--output")
    runner = Shell(sys.stdout, kind, Console(stderr=True), engine_of(engine))
    with reporting_errors():
        if model is not None or warehouse is not None:
            runner.connect(model, warehouse)
    try:
        if execute or file is not None:
            given = [*(execute or []), *([file.read_text(encoding="utf-8")] if file is not None else [])]
            runner.run([line for text in given for line in [*text.split("\n"), ";"]], stop=True)
        elif sys.stdin.isatty():
            interact(runner)
            return  # with 0: whoever types has seen what failed
        else:
            runner.run(sys.stdin, stop=False)
    finally:
        runner.close()
    raise typer.Exit(1 if runner.failed else 0)


for _command in (
    tables.init,
    tables.tables,
    tables.describe,
    tables.history,
    tables.changes,
    tables.sql,
    files.load,
    files.export,
    maintenance.health,
    maintenance.compact,
    maintenance.vacuum,
    maintenance.maintain,
    maintenance.restore,
    maintenance.repair,
    jars.jars,
):
    app.command()(_command)
