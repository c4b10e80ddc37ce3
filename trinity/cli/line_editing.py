"""Typed lines of the shell: editing, completion and history, where Python has readline."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Final

from trinity.errors import ignoring
from trinity.syntax.parse import tokenize

KEYWORDS: Final = (
    "ALTER", "AND", "AS", "BETWEEN", "BY", "CASE", "CAST", "COLUMN", "CREATE", "DELETE", "DESC", "DESCRIBE",
    "DISTINCT", "DROP", "ELSE", "END", "EXISTS", "EXPLAIN", "FROM", "GROUP", "HAVING", "HISTORY", "IN", "INNER",
    "INSERT", "INTO", "IS", "JOIN", "LEFT", "LIKE", "LIMIT", "MATCHED", "MERGE", "NOT", "NULL", "ON", "OPTIMIZE",
    "OR", "ORDER", "OVERWRITE", "PRIMARY", "RENAME", "RESTORE", "SELECT", "SET", "SHOW", "TABLE", "TABLES",
    "TBLPROPERTIES", "THEN", "TRUNCATE", "UNION", "UPDATE", "USE", "USING", "VACUUM", "VALUES", "VERSION", "WHEN",
    "WHERE", "WITH",
)  # fmt: skip
"""The words of SQL that are completed."""

_HISTORY_LENGTH: Final = 1000
"""Maximum number of statements in the history."""


def completions(text: str, names: Sequence[str]) -> list[str]:
    """Return the words that begin as a text does, in any case: names, then keywords in the case of the text."""
    start = text.lower()
    found = [name for name in names if name.lower().startswith(start)]
    words = [word.lower() if text.islower() else word for word in KEYWORDS]
    return [*found, *(word for word in words if word.lower().startswith(start))]


@contextlib.contextmanager
def edited_lines(
    prompt: Callable[[], str], complete: Callable[[str], Sequence[str]], forget: Callable[[], None]
) -> Iterator[tuple[Iterator[str], Callable[[str, str], None]]]:
    """Yield the typed lines, until the end of input, and a function that remembers a statement.

    ``forget`` is called when Ctrl-C takes back what was typed.
    """
    try:
        import readline
    except ImportError:
        yield _typed(prompt, forget), lambda statement, dialect: None
        return
    _set_up(readline, complete)
    file = _history_file()
    with contextlib.suppress(OSError):
        readline.read_history_file(file)

    def remember(statement: str, dialect: str) -> None:
        readline.add_history(_one_line(statement, dialect))

    try:
        yield _typed(prompt, forget), remember
    finally:
        with contextlib.suppress(OSError):  # a home that cannot be written to
            file.parent.mkdir(parents=True, exist_ok=True)
            readline.set_history_length(_HISTORY_LENGTH)
            readline.write_history_file(file)


def _one_line(statement: str, dialect: str) -> str:
    """Return a statement with a blank for each comment and line break between its words; its texts stay as they are."""
    if "\n" not in statement:
        return statement
    with ignoring("SYNTAX_ERROR"):
        tokens = tokenize(statement, dialect)
        gaps = ["" if one.end + 1 == other.start else " " for one, other in pairwise(tokens)]
        words = [statement[token.start : token.end + 1] for token in tokens]
        return "".join(word + gap for word, gap in zip(words, [*gaps, ""], strict=True))
    return statement


def _typed(prompt: Callable[[], str], forget: Callable[[], None]) -> Iterator[str]:
    while True:
        try:
            yield input(prompt()) + "\n"
        except EOFError:
            print()
            return
        except KeyboardInterrupt:
            forget()
            print()


def _set_up(readline: ModuleType, complete: Callable[[str], Sequence[str]]) -> None:
    """Set up readline: the history holds statements instead of lines, and the tab key completes words."""
    found: list[str] = []

    def each(text: str, number: int) -> str | None:
        if number == 0:
            found[:] = complete(text)
        return found[number] if number < len(found) else None

    readline.set_auto_history(False)
    readline.set_completer_delims(" \t\n(),;=<>")
    readline.set_completer(each)
    readline.parse_and_bind("tab: complete")


def _history_file() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state"
    return Path(state, "trinity", "shell_history")
