"""The subcommands that maintain tables, for people and schedulers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from trinity.cli.options import AsJson, Executor, Named, Warehouse, open_session, open_table, reporting_errors
from trinity.cli.output import print_line, tell
from trinity.cli.progress import working
from trinity.merge.compaction_strength import Strength

if TYPE_CHECKING:
    from trinity.engine.compacting.health import Health
    from trinity.engine.compacting.upkeep import Upkeep


def health(table: Named, warehouse: Warehouse = "warehouse", as_json: AsJson = False) -> None:
    """Print what a table's files are like, what a read costs, and which compaction helps."""
    with open_table(table, warehouse) as found:
        if as_json:
            print_line({"table": str(found.name), **asdict(found.health())})
        else:
            _print_health(str(found.name), found.health(), Console())


def compact(
    table: Named,
    strength: Annotated[Strength, typer.Option(help="How much to fold.")] = Strength.MINOR,
    warehouse: Warehouse = "warehouse",
    as_json: AsJson = False,
    engine: Executor = "auto",
) -> None:
    """Replace a table's files by fewer that mean the same."""
    with open_table(table, warehouse, engine) as found:
        before = found.version
        with working(f"compacting {found.name}"):
            done = found.compact(strength.value)
        size = f"{done.rows:,} rows in {done.files:,} new files, {decimal(done.bytes)}"
        text = "nothing to compact" if done.version == before else f"version {done.version}, {size}"
        tell(as_json, {"table": str(found.name), **asdict(done)}, f"{found.name}: {text}.")


def vacuum(
    table: Named,
    retain: Annotated[str, typer.Option(help="How long replaced versions stay, as '7 days' or '12 hours'.")] = "7 days",
    warehouse: Warehouse = "warehouse",
    as_json: AsJson = False,
) -> None:
    """Forget versions that were replaced long ago, and remove files that nothing needs."""
    with open_table(table, warehouse) as found:
        done = found.vacuum(retain)
        oldest = f"the oldest version that can be read is {done.oldest_version}"
        text = f"{found.name}: {done.files:,} files removed, {decimal(done.bytes)}; {oldest}."
        tell(as_json, {"table": str(found.name), **asdict(done)}, text)


def maintain(
    schema: Annotated[str | None, typer.Argument(help="catalog.schema; all of them without it.")] = None,
    warehouse: Warehouse = "warehouse",
    vacuum: Annotated[str | None, typer.Option(help="Vacuum too: how long versions stay, as '7 days'.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compact the tables that need it, for a scheduler.

    Exits with 1 when one of them failed.
    """
    with reporting_errors(), open_session(warehouse) as session, working("compacting what needs it"):
        done = session.maintain(schema, vacuum=vacuum)
    if as_json:
        for kept in done:
            error = None if kept.error is None else {"code": kept.error.code, "message": kept.error.message}
            print_line({**asdict(replace(kept, error=None)), "error": error})
    else:
        _print_upkeep(done, Console())
    raise typer.Exit(1 if any(kept.error for kept in done) else 0)


def restore(
    table: Named,
    version: Annotated[int | None, typer.Option(help="The version that is to be the newest again.")] = None,
    timestamp: Annotated[str | None, typer.Option(help="Or a time, as ISO text: the version of that time.")] = None,
    warehouse: Warehouse = "warehouse",
    as_json: AsJson = False,
) -> None:
    """Make an earlier version of a table the newest again, by a commit of its own: no version is lost."""
    with open_table(table, warehouse) as found:
        done = found.restore(version, timestamp)
        text = f"{found.name}: version {done.version} is as that of {timestamp or version}."
        tell(as_json, {"table": str(found.name), **asdict(done)}, text)


def repair(
    table: Annotated[str, typer.Argument(help="catalog.schema.table, whose newest metadata is damaged.")],
    warehouse: Warehouse = "warehouse",
    version: Annotated[int | None, typer.Option(help="Confirm the version to go back to.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing, and tell what would be lost.")] = False,
    as_json: AsJson = False,
) -> None:
    """Go back to the newest version of a table that can be read; what was committed after it is lost."""
    with reporting_errors(), open_session(warehouse) as session:
        done = session.repair(table, version=version, dry_run=dry_run)
    if as_json:
        print_line({"table": table, **asdict(done)})
        return
    for commit in done.lost:
        typer.echo(f"lost: {commit.what}" if commit.damaged else f"lost, and may be whole: {commit.what}")
    says = "would be" if dry_run else "is"
    typer.echo(
        f"{table}: nothing is damaged." if done.skipped else f"{table}: version {done.back_to} {says} current now."
    )


def _print_health(table: str, health: Health, console: Console) -> None:
    """Print the state of a table as a small table, and the advice in a line."""
    shown = Table("tier", "files", "rows", "bytes", title=Text(f"{table}, version {health.version}"))
    for name, size in (("base", health.base), ("log", health.log), ("sidecar", health.sidecar)):
        shown.add_row(
            name, f"{size.files:,}", "unknown" if size.rows is None else f"{size.rows:,}", decimal(size.bytes)
        )
    console.print(shown)
    cost = "a scan" if health.read_cost == 1 else f"about {health.read_cost:.1f} scans"
    console.print(Text(f"A read costs {cost}, of {health.commits} commits in the log. {health.advice}"))


def _print_upkeep(done: Sequence[Upkeep], console: Console) -> None:
    """Print the maintenance of each table."""
    shown = Table("table", "compaction", "vacuumed", "error")
    for kept in done:
        removed = "" if kept.vacuumed is None else f"{kept.vacuumed.files} files, {decimal(kept.vacuumed.bytes)}"
        error = "" if kept.error is None else f"{kept.error.code}: {kept.error.message}"
        shown.add_row(*map(Text, (kept.table, kept.strength or "-", removed, error)))
    console.print(shown)
