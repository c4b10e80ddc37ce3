"""Long results, page by page."""

from __future__ import annotations

import os
import pydoc
import sys

from rich.console import Console

__all__ = ["page"]


def page(text: str) -> None:
    """Show a text on the terminal: as it is where it fits, else by the pager that ``PAGER`` names, or ``less``."""
    if text.count("\n") < Console().height:
        sys.stdout.write(text)
        return
    os.environ.setdefault("LESS", "-S")  # a row is a line, however wide
    pydoc.pager(text)
