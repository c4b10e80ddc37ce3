"""Results on the terminal: a table, CSV, JSON."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO

if TYPE_CHECKING:
    import pyarrow as pa

    from trinity.result import Result

Format = Literal["table", "csv", "json", "arrow"]

_Rows = Sequence[Sequence[Any]]


def print_result(rows: Result, limit: int, *, as_json: bool) -> None:
    """Print a result on standard output: all rows, one JSON object a line; or the first rows as a table."""
    if as_json:
        for batch in rows.to_reader():
            sys.stdout.writelines(json_lines(batch))
        return
    found = rows.take(limit + 1)
    print_values(rows.columns, found[:limit])
    if len(found) > limit:
        sys.stdout.write(f"(the first {limit} rows; --limit shows more)\n")


def print_values(columns: Sequence[str], rows: _Rows, *, as_json: bool = False) -> None:
    """Print rows on standard output, as a table or as JSON objects."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if as_json:
        sys.stdout.writelines(json_line(dict(zip(columns, row, strict=True))) for row in rows)
        return
    shown = Table(*columns)
    for row in rows:
        shown.add_row(*[Text("NULL", style="dim") if value is None else Text(str(value)) for value in row])
    Console().print(shown)


def tell(as_json: bool, values: Mapping[str, object], text: str) -> None:
    """Print what was done on standard output: as a JSON object, or in words."""
    sys.stdout.write(json_line(values) if as_json else f"{text}\n")


def print_line(values: Mapping[str, object]) -> None:
    """Print a JSON object on standard output."""
    sys.stdout.write(json_line(values))


def json_lines(rows: pa.RecordBatch) -> Iterator[str]:
    """Yield the rows as JSON objects, a line each."""
    return map(json_line, rows.to_pylist(maps_as_pydicts="strict"))


def json_line(values: object) -> str:
    """Return a JSON object and the end of its line. Bytes are hexadecimal; dates, times and decimals are texts."""
    try:
        text = json.dumps(values, default=_text, ensure_ascii=False)
    except TypeError:  # a key of a map that is no text, number or boolean
        text = json.dumps(_with_text_keys(values), default=_text, ensure_ascii=False)
    return text + "\n"


def _with_text_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {k if isinstance(k, str) else _text(k): _with_text_keys(each) for k, each in value.items()}
    return [_with_text_keys(each) for each in value] if isinstance(value, list) else value


def write_rows(to: TextIO, kind: Format, columns: Sequence[str], rows: _Rows) -> None:
    """Write a result.

    ``csv`` has a header, and NULL as an empty field; ``json`` is one array of objects; ``arrow`` a stream of record
    batches.
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
    objects = (json_line(_with_field_names(dict(zip(columns, row, strict=True)))).rstrip("\n") for row in rows)
    to.write(f"[{', '.join(objects)}]\n")


def _with_field_names(value: Any) -> Any:
    """Return a value with its structs, which are named tuples of Trinity or PySpark, as dicts."""
    if hasattr(value, "asDict"):
        value = value.asDict()
    if isinstance(value, dict):
        return {key: _with_field_names(each) for key, each in value.items()}
    return [_with_field_names(each) for each in value] if isinstance(value, list) else value


def _arrow(to: TextIO, columns: Sequence[str], rows: _Rows) -> None:
    import pyarrow as pa

    write_arrow(to, pa.table({name: [row[index] for row in rows] for index, name in enumerate(columns)}))


def write_arrow(to: TextIO, rows: pa.Table) -> None:
    """Write rows as a stream of Arrow record batches, which pyarrow, Polars and DuckDB read."""
    from pyarrow import ipc

    with ipc.new_stream(to.buffer, rows.schema) as stream:
        stream.write_table(rows)


FORMATS: Final[dict[Format, Callable[[TextIO, Sequence[str], _Rows], None]]] = {
    "table": _table,
    "csv": _csv,
    "json": _json,
    "arrow": _arrow,
}
