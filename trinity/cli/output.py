"""Results on the terminal: a table as in sqlline, CSV, JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TextIO

__all__ = ["FORMATS", "Format", "write_rows"]

Format = Literal["table", "csv", "json"]

_Rows = Sequence[Sequence[Any]]


def write_rows(to: TextIO, kind: Format, columns: Sequence[str], rows: _Rows) -> None:
    """Write a result.

    Args:
        to: the output.
        kind: ``table``; ``csv`` with a header, NULL as an empty field; ``json``: one array of objects.
        columns: the columns' names.
        rows: the values.
    """
    FORMATS[kind](to, columns, rows)


def _table(to: TextIO, columns: Sequence[str], rows: _Rows) -> None:
    texts = [["null" if v is None else _text(v) for v in row] for row in rows]
    widths = [max(len(name), *(len(row[i]) for row in texts), 0) for i, name in enumerate(columns)]
    line = "+" + "+".join("-" * (w + 2) for w in widths) + "+\n"
    to.write(line + _row(columns, widths) + line)
    for row in texts:
        to.write(_row(row, widths))
    to.write(line)


def _row(values: Sequence[str], widths: Sequence[int]) -> str:
    return "| " + " | ".join(v.ljust(w) for v, w in zip(values, widths, strict=True)) + " |\n"


def _text(value: Any) -> str:
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text.replace("\n", "\\n").replace("\x1b", "\\e")


def _csv(to: TextIO, columns: Sequence[str], rows: _Rows) -> None:
    writer = csv.writer(to, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([v.hex() if isinstance(v, bytes) else v for v in row] for row in rows)


def _json(to: TextIO, columns: Sequence[str], rows: _Rows) -> None:
    found = [dict(zip(columns, row, strict=True)) for row in rows]
    to.write(json.dumps(found, default=_text, ensure_ascii=False) + "\n")


FORMATS: Final[dict[Format, Callable[[TextIO, Sequence[str], _Rows], None]]] = {
    "table": _table,
    "csv": _csv,
    "json": _json,
}
