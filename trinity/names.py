"""Names of schemas and tables, kept in parts, so that their text is parsed only once (N1)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from trinity.calls import public
from trinity.errors import TrinityError

LENGTH: Final = 255
"""Maximum number of characters of a name."""
_ODD: Final = re.compile(r'[.`"]')
_PART: Final = re.compile(r'`((?:[^`]|``)+)`|"((?:[^"]|"")+)"|([^.`"]+)')


@public
@dataclass(frozen=True)
class TableName:
    """A table's full name. As a text, each part with a dot or a quote is in backticks."""

    catalog: str
    schema: str
    table: str

    def __str__(self) -> str:
        return ".".join(map(_written_part, self.parts))

    @property
    def parts(self) -> tuple[str, str, str]:
        """Catalog, schema and table."""
        return self.catalog, self.schema, self.table


def _written_part(part: str) -> str:
    """Return a part of a name as :func:`split_name` reads it."""
    return "`" + part.replace("`", "``") + "`" if _ODD.search(part) else part


def split_name(text: str) -> list[str]:
    """Split ``a.b.c`` into its parts. A part in backticks or double quotes may contain anything, its quotes doubled.

    Raises:
        TrinityError: INVALID_ARGUMENTS for a text that is no dotted name.
    """
    parts: list[str] = []
    at = 0
    while found := _PART.match(text, at):
        backticks, quotes, plain = found.groups()
        parts.append((backticks or "").replace("``", "`") or (quotes or "").replace('""', '"') or plain)
        if found.end() == len(text):
            return parts
        if text[found.end()] != ".":
            break
        at = found.end() + 1
    raise TrinityError(
        "INVALID_ARGUMENTS",
        f"'{text}' is no name: write catalog.schema.table, and a part with a dot or a quote in it in backticks, with "
        "its own backticks doubled.",
    )


def checked_name(name: str, what: str) -> str:
    """Check that a text is a valid name, and return it (N1).

    Args:
        name: the name.
        what: what it names, for the message: ``Table``.

    Raises:
        TrinityError: INVALID_ARGUMENTS for an empty name, one of more than 255 characters, with NUL, or with half of a
            surrogate pair.
    """
    shown = name if len(name) <= LENGTH else f"{name[:40]}..."
    wrong = None
    if not name:
        wrong = "is empty"
    elif len(name) > LENGTH:
        wrong = f"has {len(name)} characters, and {LENGTH} are the most"
    elif "\0" in name:
        wrong = "holds the character NUL"
    elif any("\ud800" <= c <= "\udfff" for c in name):
        wrong = "holds half of a surrogate pair, which is no character"
    if wrong is not None:
        raise TrinityError("INVALID_ARGUMENTS", f"{what} name {shown!r} {wrong}; use another name.")
    return name
