"""Values of nested columns, converted from one version to another, whose fields may have other names and order.

In a format in which other engines may change fields, a column has the ids of the fields within it (see
:class:`~trinity.spi.Column`), and a field is recognized by its id.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trinity.spark.types import spark_type
from trinity.spi import Column, DataType, parse_type
from trinity.syntax.quoting import quoted, text_literal


@dataclass(frozen=True)
class _Field:
    """A column, or a field within one: its name (empty within arrays and maps), id, type, and the fields within it."""

    name: str
    number: int | None
    kind: DataType
    within: tuple[_Field, ...]

    @classmethod
    def of(cls, name: str, number: int | None, kind: DataType, ids: Iterator[int]) -> _Field:
        names = kind.fields or ("",) * len(kind.children)
        within = tuple(cls.of(n, next(ids), child, ids) for n, child in zip(names, kind.children, strict=True))
        return cls(name, number, kind, within)


def value_by_id(column: Column, old: Column) -> str:
    """Return Spark SQL that converts a nested column, over rows that have it as ``old``, to its present form."""
    theirs, ours = (_Field.of(c.name, None, parse_type(c.type), iter(c.within)) for c in (old, column))
    return f"CAST({_value(quoted(old.name), theirs, ours, 0)} AS {spark_type(column.type)})"


def _value(text: str, old: _Field, new: _Field, depth: int) -> str:
    if not new.within or new.kind.name != old.kind.name:
        return text
    element = f"_e{depth}"
    if new.kind.name == "array":
        return f"transform({text}, {element} -> {_value(element, old.within[0], new.within[0], depth + 1)})"
    if new.kind.name == "map":
        parts = zip((f"{element}.key", f"{element}.value"), old.within, new.within, strict=True)
        entry = ", ".join(_value(part, theirs, ours, depth + 1) for part, theirs, ours in parts)
        return f"map_from_entries(transform(map_entries({text}), {element} -> struct({entry})))"
    known = {field.number: field for field in old.within}
    fields = (f"{text_literal(f.name)}, {_member(text, known.get(f.number), f, depth)}" for f in new.within)
    return f"IF({text} IS NULL, NULL, named_struct({', '.join(fields)}))"


def _member(text: str, old: _Field | None, new: _Field, depth: int) -> str:
    kind = spark_type(str(new.kind))
    if old is None:
        return f"CAST(NULL AS {kind})"
    return f"CAST({_value(f'{text}.{quoted(old.name)}', old, new, depth)} AS {kind})"
