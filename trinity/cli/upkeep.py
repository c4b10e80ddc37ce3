"""``trinity health`` and ``trinity maintain``: the state of tables, and their maintenance, printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

    from trinity.engine.compacting.health import Health
    from trinity.engine.compacting.upkeep import Upkeep

__all__ = ["print_health", "print_upkeep"]


def print_health(table: str, health: Health, console: Console) -> None:
    """Print the state of a table as a small table, and the advice in a line."""
    shown = Table("tier", "files", "rows", "bytes", title=Text(f"{table}, version {health.version}"))
    for name, size in (("base", health.base), ("log", health.log), ("sidecar", health.sidecar)):
        shown.add_row(
            name, f"{size.files:,}", "unknown" if size.rows is None else f"{size.rows:,}", decimal(size.bytes)
        )
    console.print(shown)
    cost = "a scan" if health.read_cost == 1 else f"about {health.read_cost:.1f} scans"
    console.print(Text(f"A read costs {cost}, of {health.commits} commits in the log. {health.advice}"))


def print_upkeep(done: Sequence[Upkeep], console: Console) -> None:
    """Print the maintenance of each table."""
    shown = Table("table", "compaction", "vacuumed", "error")
    for kept in done:
        removed = "" if kept.vacuumed is None else f"{kept.vacuumed.files} files, {decimal(kept.vacuumed.bytes)}"
        error = "" if kept.error is None else f"{kept.error.code}: {kept.error.message}"
        shown.add_row(*map(Text, (kept.table, kept.strength or "-", removed, error)))
    console.print(shown)
