"""What a terminal shows while a command works; elsewhere nothing is shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


def progress(text: str, console: Console | None = None) -> Progress:
    """Return a line with a spinner, a text and the elapsed time, on standard error; it disappears at its end.

    The text has rich's form, as ``{task.completed:,} rows`` or ``{task.description}``.
    """
    console = console or Console(stderr=True)
    columns = SpinnerColumn(), TextColumn(text), TimeElapsedColumn()
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


@contextmanager
def working(what: str, console: Console | None = None) -> Iterator[None]:
    """Show a text as long as the block runs."""
    with progress("{task.description}", console) as shown:
        shown.add_task(what, total=None)
        yield
