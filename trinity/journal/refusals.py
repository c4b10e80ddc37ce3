"""Statements that name a journalled table, and those refused because their effect is unknown."""

from __future__ import annotations

import re
from typing import Final

from sqlglot import TokenType

from trinity.errors import TrinityError
from trinity.journal.tables import JournalModel
from trinity.syntax.parameters import Numbered
from trinity.syntax.parse import check_first_word

_READ: Final = frozenset({
    "SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "MERGE", "VALUES", "TABLE", "(", "CREATE", "ALTER", "DROP",
    "TRUNCATE",
})  # fmt: skip
"""First words of statements whose tree is interpreted."""

_HARMLESS: Final = frozenset({
    "SET", "RESET", "SHOW", "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE",
    "LISTEN", "UNLISTEN", "NOTIFY", "DISCARD", "CHECKPOINT",
})  # fmt: skip
"""First words of statements that touch no table."""


def words_of(numbered: Numbered) -> tuple[str, ...]:
    """Return the first six words of a statement, in upper case."""
    return tuple(t.text.upper() for t in numbered.tokens[:6])


def mentions(numbered: Numbered, model: JournalModel) -> bool:
    """Return whether a statement has a journalled table's name, even in a string, if a string may contain code."""
    words = {w.lower() for w in model.words}
    if any(t.text.lower() in words for t in numbered.tokens if t.token_type is not TokenType.STRING):
        return True
    if words_of(numbered)[:1][0] in _READ:
        return False
    pattern = "|".join(rf"(?<!\w){re.escape(w)}(?!\w)" for w in words)
    return re.search(pattern, numbered.text, re.IGNORECASE) is not None


def check_unread(words: tuple[str, ...], model: JournalModel, numbered: Numbered) -> bool:
    """Return True for a statement that touches no table, and is sent as it is; False for one to be rewritten.

    Raises:
        TrinityError: NOT_SUPPORTED for any other, which may reach the table; SYNTAX_ERROR for an unknown first word.
    """
    if words[0] in _READ:
        return False
    if words[0] in _HARMLESS:
        return True
    check_first_word(numbered.tokens)
    raise TrinityError(
        "NOT_SUPPORTED",
        f"{words[0]} is not rewritten, and the statement names a journalled table. Name its journal instead, "
        f"{_example(model, numbered)}, or use a connection without the model.",
    )


def _example(model: JournalModel, numbered: Numbered) -> str:
    text = numbered.text.lower()
    table = next((t for t in model.tables if t.name.lower() in text), model.tables[0])
    return f"{table.backend_schema}.{table.journal}"
