"""Rows as text for people: a table as Spark's ``show`` prints it, and HTML for notebooks."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any


class InNotebooks:
    """A base of dataclasses whose fields a notebook shows as a table of one row."""

    def _repr_html_(self) -> str:
        assert dataclasses.is_dataclass(self)
        names = [field.name for field in dataclasses.fields(self)]
        return as_html(names, [[getattr(self, name) for name in names]], False)


def as_text(columns: Sequence[str], rows: Sequence[Sequence[Any]], width: int, more: bool) -> str:
    """Return rows as a text table.

    Args:
        columns: names of the columns.
        rows: values of each row.
        width: maximum number of characters of a value, beyond which it is cut; 0 for no maximum.
        more: True to end with a line that says that there are more rows.
    """
    texts = [[_cut(_text(value), width) for value in row] for row in rows]
    names = [_cut(name, width) for name in columns]
    widths = [max(3, len(name), *(len(row[n]) for row in texts)) for n, name in enumerate(names)]
    line = "+" + "+".join("-" * w for w in widths) + "+"
    lines = ["|" + "|".join(_placed(t, w, width) for t, w in zip(row, widths, strict=True)) + "|" for row in texts]
    head = "|" + "|".join(_placed(t, w, width) for t, w in zip(names, widths, strict=True)) + "|"
    return "\n".join([line, head, line, *lines, line, *_footer(len(rows), more)]) + "\n"


def _footer(count: int, more: bool) -> list[str]:
    return [f"only showing top {count} row{'' if count == 1 else 's'}"] if more else []


def as_html(columns: Sequence[str], rows: Sequence[Sequence[Any]], more: bool) -> str:
    """Return an HTML table; arguments as for :func:`as_text`."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "\n".join("<tr>" + "".join(f"<td>{escape(_text(v))}</td>" for v in row) + "</tr>" for row in rows)
    footer = "".join(_footer(len(rows), more))
    return f"<table border='1'>\n<tr>{head}</tr>\n{body}\n</table>\n{footer}"


def _cut(text: str, width: int) -> str:
    if not width or len(text) <= width:
        return text
    return text[:width] if width < 4 else f"{text[: width - 3]}..."


def _placed(text: str, width: int, cut: int) -> str:
    return text.rjust(width) if cut else text.ljust(width)


def _text(value: Any) -> str:
    """Return a value's text as Spark casts it to STRING."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case bytes():
            return "[" + " ".join(f"{byte:02X}" for byte in value) + "]"
        case dt.datetime():
            return value.isoformat(" ").rstrip("0") if value.microsecond else value.isoformat(" ")
        case list():
            return f"[{', '.join(map(_text, value))}]"
        case Mapping():
            return "{" + ", ".join(f"{_text(k)} -> {_text(v)}" for k, v in value.items()) + "}"
        case tuple():
            return "{" + ", ".join(map(_text, value)) + "}"
    return str(value)
