"""Partition values and statistics of a file in Delta's log: texts by the protocol, and back.

Other engines prune by these statistics. A bound is written only where it is certain to hold for every reader: no floats
(Parquet's bounds leave NaN out, Delta's do not), no binaries and booleans (Delta has no bounds for them).
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from trinity.errors import TrinityError
from trinity.spi import ColumnStats, DataFile, TableDefinition, parse_type
from trinity.storage import identity_only

_TEXT_TYPES: Final = ("string", "char", "varchar", "binary")


def check_partitions(definition: TableDefinition) -> None:
    """Refuse a partitioning that Delta does not have: transforms, and binary columns. Raises NOT_SUPPORTED."""
    identity_only(definition, "Delta")
    for name in definition.partition_columns:
        if parse_type(definition.column(name).type).name == "binary":
            raise TrinityError(
                "NOT_SUPPORTED",
                f"Table '{definition.full_name}' cannot be partitioned by column '{name}' of type binary: Delta keeps "
                "partition values as text. Use a string column.",
            )


def to_delta_partition(partition: Mapping[str, Any], definition: TableDefinition) -> dict[str, str | None]:
    """Return the ``partitionValues`` of a file.

    Raises:
        TrinityError: CONSTRAINT_VIOLATION for an empty string, which Delta reads as NULL.
    """
    return {name: _partition_text(name, value, definition) for name, value in partition.items()}


def _partition_text(name: str, value: Any, definition: TableDefinition) -> str | None:
    if value is None:
        return None
    if value == "":
        raise TrinityError(
            "CONSTRAINT_VIOLATION",
            f"'' (an empty string) in partition column '{name}' of table '{definition.full_name}': Delta reads it as "
            "NULL there. Write another value.",
        )
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, dt.datetime):
        # an instant is written with its zone, or readers would read it in their session's zone
        zone = "Z" if value.tzinfo is not None else ""
        clock = value.astimezone(dt.UTC).replace(tzinfo=None) if zone else value
        return clock.isoformat(sep="T" if zone else " ", timespec="microseconds") + zone
    return value.isoformat() if isinstance(value, dt.date) else str(value)


def from_delta_partition(values: Mapping[str, str | None], definition: TableDefinition) -> dict[str, Any]:
    """Return the partition of a file of any writer, by stored names. Values that are not understood are left out."""
    found = {}
    for column in map(definition.column, definition.partition_columns):
        name = column.stored_name
        if name not in values:
            continue
        try:
            found[name] = _partition_value(values[name], parse_type(column.type).name)
        except (ValueError, ArithmeticError):
            continue
    return found


def _partition_value(text: str | None, kind: str) -> Any:
    if text is None or (text == "" and kind not in _TEXT_TYPES):
        return None
    if text == "":  # NULL by the protocol, and '' to Spark: the reader of the file decides
        raise ValueError(text)
    if kind == "boolean":
        return text.lower() == "true"
    if kind in ("tinyint", "smallint", "int", "bigint", "time"):  # TIME is stored as microseconds
        return int(text)
    if kind == "decimal":
        return Decimal(text)
    if kind == "date":
        return dt.date.fromisoformat(text)
    if kind == "timestamp":
        value = dt.datetime.fromisoformat(text)
        if value.tzinfo is None:  # written in some session's zone: the instant is not known
            raise ValueError(text)
        return value
    return dt.datetime.fromisoformat(text) if kind == "timestamp_ntz" else text


_TEXT_LENGTH: Final = 32
"""Longer string bounds are cut (min) or left out (max), as Delta keeps its statistics short."""
_INTEGERS: Final = frozenset({"tinyint", "smallint", "int", "bigint"})
_TEXTS: Final = frozenset({"string", "char", "varchar"})
_TIMESTAMPS: Final = frozenset({"timestamp", "timestamp_ntz"})
_MILLISECOND: Final = dt.timedelta(milliseconds=1)
_TIGHT: Final = re.compile(r',"tightBounds":(true|false)|"tightBounds":(true|false),?')
_MARK: Final = "\0decimal:"
_MARKED: Final = re.compile(r'"\\u0000decimal:([^"]+)"')


def to_delta(file: DataFile, definition: TableDefinition) -> str:
    """Return the ``stats`` text of an add action, by the file's names of columns."""
    kinds = _kinds(definition)
    known = {name: s for name, s in file.stats.items() if name in kinds}
    low = {name: _bound(s.min, kinds[name], upper=False) for name, s in known.items()}
    high = {name: _bound(s.max, kinds[name], upper=True) for name, s in known.items()}
    stats = {
        "numRecords": file.rows,
        "minValues": {name: v for name, v in low.items() if v is not None},
        "maxValues": {name: v for name, v in high.items() if v is not None},
        "nullCount": {name: s.nulls for name, s in known.items() if s.nulls is not None},
    }
    # json writes no number with all the digits of a decimal; the marked texts become such numbers
    return _MARKED.sub(r"\1", json.dumps(stats, separators=(",", ":")))


def loosened(text: str) -> str:
    """Return the ``stats`` text of a file that has lost rows: its bounds hold, but need not be tight."""
    known = _TIGHT.sub("", text)
    return f'{known.removesuffix("}")}{"," if len(known) > len("{}") else ""}"tightBounds":false}}'


def parsed_text(stats: Mapping[str, Any]) -> str:
    """Return the ``stats`` text of statistics that a checkpoint has as values."""
    return _MARKED.sub(r"\1", json.dumps(_without_unknown(stats), default=_plain, separators=(",", ":")))


def _without_unknown(stats: Mapping[str, Any]) -> dict[str, Any]:
    """Return statistics without unknown ones."""
    known = {name: _without_unknown(value) if isinstance(value, Mapping) else value for name, value in stats.items()}
    return {name: value for name, value in known.items() if value is not None}


def _plain(value: Any) -> str:
    """Return a bound as text for JSON; a decimal with its mark."""
    if isinstance(value, Decimal):
        return f"{_MARK}{value:f}"
    if isinstance(value, dt.datetime):
        zone = "" if value.tzinfo is None else "Z"
        clock = value.astimezone(dt.UTC).replace(tzinfo=None) if zone else value
        return clock.isoformat(timespec="microseconds") + zone
    return str(value)


def rows_of(text: str | None) -> int | None:
    """Return the number of rows of a ``stats`` text; None if it has none."""
    return _rows(_parsed_json(text))


def _rows(stats: Mapping[str, Any]) -> int | None:
    rows = stats.get("numRecords")
    return rows if isinstance(rows, int) and rows >= 0 else None


def _parsed_json(text: str | None) -> Mapping[str, Any]:
    """Return the statistics of a text; empty if another writer wrote no valid JSON: files are read without any."""
    try:
        found = json.loads(text, parse_float=Decimal) if text else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def from_delta(text: str | None, definition: TableDefinition) -> tuple[int | None, dict[str, ColumnStats]]:
    """Return (rows, statistics by stored name) of an add action; None for an unknown number of rows.

    Statistics that are not understood are left out.
    """
    stats = _parsed_json(text)
    rows, parts = _rows(stats), (stats.get(part) for part in ("minValues", "maxValues", "nullCount"))
    low, high, nulls = (part if isinstance(part, dict) else {} for part in parts)
    found = {}
    for name, kind in _kinds(definition).items():
        if name in low or name in high or name in nulls:
            count = nulls.get(name)
            found[name] = ColumnStats(
                _value(low.get(name), kind, upper=False),
                _value(high.get(name), kind, upper=True),
                count if isinstance(count, int) and rows is not None else None,  # by itself it does not say "all"
            )
    return rows, found


def _kinds(definition: TableDefinition) -> dict[str, str]:
    return {c.stored_name: parse_type(c.type).name for c in definition.columns}


def _bound(value: Any, kind: str, *, upper: bool) -> Any:
    if value is None:
        return None
    if kind in (*_INTEGERS, "time"):
        return value if isinstance(value, int) else None
    if kind == "decimal":
        return f"{_MARK}{value:f}" if isinstance(value, Decimal) else None
    if kind in _TEXTS and isinstance(value, str):
        if "\0" in value:  # a NUL begins the mark of a decimal
            return None
        return value if len(value) <= _TEXT_LENGTH else None if upper else value[:_TEXT_LENGTH]
    if kind == "date" and isinstance(value, dt.date):
        return value.isoformat()
    if kind in _TIMESTAMPS and isinstance(value, dt.datetime):
        return _instant(value, kind, upper)
    return None


def _instant(value: dt.datetime, kind: str, upper: bool) -> str | None:
    """Return a bound in milliseconds, as Delta keeps it: rounded down for a minimum, up for a maximum."""
    if upper and value.microsecond % 1000:
        try:
            value += _MILLISECOND
        except OverflowError:
            return None
    if kind == "timestamp" and value.tzinfo is not None:
        value = value.astimezone(dt.UTC)
    text = value.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return text + ("Z" if kind == "timestamp" else "")


def _value(bound: Any, kind: str, *, upper: bool) -> Any:
    try:
        return _parsed(bound, kind, upper) if bound is not None else None
    except (ValueError, OverflowError, TypeError, AttributeError):  # a value of another type than the column's
        return None


def _parsed(bound: Any, kind: str, upper: bool) -> Any:
    if kind in _INTEGERS:
        return bound if isinstance(bound, int) else None
    if kind == "decimal":
        return Decimal(bound) if isinstance(bound, int | Decimal) else None
    if kind in _TEXTS:
        return str(bound)
    if kind == "date":
        return dt.date.fromisoformat(bound)
    if kind in _TIMESTAMPS:
        value = dt.datetime.fromisoformat(bound.replace("Z", "+00:00"))
        # other writers cut a maximum to milliseconds
        return value + _MILLISECOND - dt.timedelta(microseconds=1) if upper else value
    return None
