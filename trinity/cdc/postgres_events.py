"""PostgreSQL's changes as Debezium's envelopes: rows as JSON, made of values in text form."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from trinity.cdc.debezium_events import UNAVAILABLE
from trinity.cdc.pgoutput import UNCHANGED, Relation, RelationChange, Transaction, Value
from trinity.errors import TrinityError

Types = Callable[[int], tuple[str, bool]]
"""OID of a type -> PostgreSQL's name of its base type (of an array: of the elements'), and True for an array."""


class Envelopes:
    """A writer of changes as envelopes, which ``cdc.debezium`` reads.

    Numbers and booleans are JSON's own; NUMERIC is text, and so keeps every digit. Bytes are base64. Times are ISO
    8601, of TIMESTAMPTZ with the zone ``Z``. Arrays are JSON arrays. Everything else is text as PostgreSQL writes it. A
    value that is not in the log is Debezium's placeholder.
    """

    def __init__(self, types: Types) -> None:
        self._types = types
        self._writers: dict[Relation, tuple[list[tuple[str, _Write | None, Any]], list[int]]] = {}

    def text(self, change: RelationChange, transaction: Transaction) -> str:
        """Return the envelope of a change."""
        relation = change.relation
        fields, identity = self.prepare(relation)
        every = range(len(fields))
        before = None if change.before is None else _row(fields, change.before, every if change.whole else identity)
        after = None if change.after is None else _row(fields, change.after, every)
        source = {
            "schema": relation.schema,
            "table": relation.name,
            "txId": transaction.xid,
            "lsn": change.lsn,
            "ts_ms": transaction.time_ms,
        }
        return _dumps({"op": change.op, "before": before, "after": after, "source": source})

    def prepare(self, relation: Relation) -> tuple[list[tuple[str, _Write | None, Any]], list[int]]:
        """Return each column's name, writer and placeholder; and the indices of the replica identity's columns."""
        found = self._writers.get(relation)
        if found is None:
            fields = [(f.name, *_writer(*self._types(f.type))) for f in relation.fields]
            found = fields, [n for n, f in enumerate(relation.fields) if f.identity]
            self._writers[relation] = found
        return found


_Write = Callable[[str], Any]
_dumps: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def _row(fields: Sequence[tuple[str, _Write | None, Any]], values: Sequence[Value], indexes: Sequence[int]) -> Any:
    row = {}
    for index in indexes:
        name, write, placeholder = fields[index]
        value = values[index]
        if value is UNCHANGED:
            row[name] = placeholder
        else:
            row[name] = value if value is None or write is None else write(value)
    return row


def _writer(kind: str, array: bool) -> tuple[_Write | None, Any]:
    """Return the function that writes a value of a type, None for text; and the placeholder of an unknown one."""
    write = _WRITERS.get(kind)
    placeholder = base64.b64encode(UNAVAILABLE.encode()).decode() if kind == "bytea" else UNAVAILABLE
    if not array:
        return write, placeholder
    return lambda text: _array(text, write), [*UNAVAILABLE.encode()] if kind in _NUMBERS else [placeholder]


def _number(text: str) -> int | float | str:
    value = float(text)
    return value if value - value == 0 else text  # JSON knows neither NaN nor Infinity


def _bytes(text: str) -> str:
    return base64.b64encode(bytes.fromhex(text.removeprefix("\\x"))).decode()


def _time(text: str) -> str:
    return text.replace(" ", "T", 1)


def _zoned(text: str) -> str:
    return _time(text).removesuffix("+00") + "Z" if text.endswith("+00") else text


_NUMBERS: Final = ("int2", "int4", "int8", "oid", "float4", "float8", "numeric")
_WRITERS: Final[dict[str, _Write]] = {
    **dict.fromkeys(_NUMBERS[:4], int),
    **dict.fromkeys(("float4", "float8"), _number),
    "bool": lambda text: text == "t",
    "bytea": _bytes,
    "timestamp": _time,
    "timestamptz": _zoned,
}
"""Type -> function that writes a value, where that is not its text."""

_ITEM: Final = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^{},"]*))', re.DOTALL)
"""A quoted or a bare item of an array."""


def _array(text: str, write: _Write | None) -> list[Any]:
    """Read an array from PostgreSQL's text, such as ``{1,NULL}`` or ``[0:1]={{"a b"},{c}}``."""
    stack: list[list[Any]] = [[]]
    at = text.index("{")
    while at < len(text):
        mark = text[at]
        if mark == "{":
            stack.append([])
            at += 1
        elif mark == "}":
            done = stack.pop()
            stack[-1].append(done)
            at += 1
        elif mark == ",":
            at += 1
        else:
            found = _ITEM.match(text, at)
            if found is None or found.end() == at:
                raise TrinityError("BAD_DATA", f"PostgreSQL's array {text[:60]} is not understood.")
            quoted, bare = found.groups()
            item = bare if quoted is None else re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL)
            null = quoted is None and bare == "NULL"
            stack[-1].append(None if null else item if write is None else write(item))
            at = found.end()
    found_array: list[Any] = stack[0][0]
    return found_array
