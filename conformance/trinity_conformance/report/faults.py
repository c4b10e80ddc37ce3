"""Which check finds which planted fault: as tables for a terminal, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from trinity_conformance.mutants.hunt import AdapterKill
from trinity_conformance.mutants.selftest import Kill

_SURVIVED: Final = "[red]survived[/]"


def show_hunt(console: Console, kills: Iterable[AdapterKill]) -> None:
    """Print the faults of an adapter, with a line for each check that found one."""
    table = Table(title="faults of an adapter")
    for heading in ("fault", "found by", "steps", "trace", "as"):
        table.add_column(heading, justify="right" if heading == "steps" else "left")
    for kill in kills:
        title = f"{kill.mutant}: {kill.fault}"
        if not kill.found:
            table.add_row(title, _SURVIVED, "", "", "")
        for place, one in enumerate(kill.found):
            summary = escape(one.message.partition("\n")[0])
            table.add_row("" if place else title, one.check, str(one.steps), one.trace.id, summary)
    console.print(table)


def show_kills(console: Console, kills: Iterable[Kill]) -> None:
    """Print the faults of the model, each with the history that found it."""
    table = Table(title="faults of the model")
    for heading in ("mutant", "fault", "killed by history", "check", "shrunk to"):
        table.add_column(heading)
    for kill in kills:
        size = f"{kill.steps} steps, {kill.rows} rows" if kill.killed else ""
        number = str(kill.number) if kill.killed else _SURVIVED
        table.add_row(kill.mutant, kill.fault, number, kill.check, size)
    console.print(table)


def hunt_to_json(kills: Sequence[AdapterKill]) -> str:
    """Return which check found which fault of an adapter, in how many steps, as JSON."""
    faults = [
        {
            "fault": kill.mutant,
            "what": kill.fault,
            "found": {one.check: {"steps": one.steps, "trace": one.trace.id} for one in kill.found},
        }
        for kill in kills
    ]
    return json.dumps({"date": datetime.now(UTC).date().isoformat(), "faults": faults}, indent=1) + "\n"
