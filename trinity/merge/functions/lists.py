"""Functions that keep many values: texts in a text, elements in an array."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from trinity.merge.functions.base import Field, ListFunction
from trinity.spi import DataType
from trinity.syntax.quoting import text_literal

__all__ = ["Collect", "ListAgg"]

_VALUES: Final = "transform({rows}, x -> x.v)"


def _distinct(field: Field) -> bool:
    return field.options.get("distinct", "false").strip().lower() == "true"


class ListAgg(ListFunction):
    """The texts, joined in fold order; NULL, empty and blank ones are left out."""

    name = "listagg"
    translates = True
    options: ClassVar[Mapping[str, str]] = {
        "list-agg-delimiter": "what stands between two texts; a comma by default",
        "distinct": "true: each part between delimiters once",
    }

    def problem(self, kind: DataType, options: Mapping[str, str]) -> str | None:
        return None if kind.name == "string" else "needs a string column"

    def counts(self, field: Field) -> str:
        return f"{super().counts(field)} AND {field.value} RLIKE {_NOT_BLANK}"

    def fold(self, field: Field, rows: str) -> str:
        delimiter = field.options.get("list-agg-delimiter", ",")
        values = _VALUES.format(rows=rows)
        if _distinct(field):
            pattern = text_literal("\\Q" + delimiter.replace("\\E", "\\E\\\\E\\Q") + "\\E")
            tokens = f"flatten(transform({values}, t -> split(t, {pattern})))"
            values = f"array_distinct(filter({tokens}, t -> t RLIKE {_NOT_BLANK}))"
        return f"array_join({values}, {text_literal(delimiter)})"


_NOT_BLANK: Final = text_literal("[^ \\t\\n\\x0B\\f\\r]")
"""Java's \\S, spelled out: in other engines it has other blanks."""


class Collect(ListFunction):
    """The elements of all arrays, in order of first appearance; a retract takes away one of each of its elements."""

    name = "collect"
    retractable = True
    translates = True
    options: ClassVar[Mapping[str, str]] = {"distinct": "true: each element once"}

    def problem(self, kind: DataType, options: Mapping[str, str]) -> str | None:
        if kind.name != "array":
            return "needs an array column"
        return "compares elements, which maps do not allow" if "map<" in str(kind) else None

    def fold(self, field: Field, rows: str) -> str:
        if not field.retracts:
            flat = f"flatten({_VALUES.format(rows=rows)})"
            return f"array_distinct({flat})" if _distinct(field) else flat
        added = "concat(coalesce(a, array()), x.v)"
        if _distinct(field):
            added = f"array_distinct({added})"
        place = "CAST(array_position(transform(b, t -> t <=> e), true) AS INT)"
        without = f"IF({place} = 0, b, concat(slice(b, 1, {place} - 1), slice(b, {place} + 1, size(b))))"
        removed = f"aggregate(x.v, a, (b, e) -> {without})"
        step = f"CASE WHEN NOT x.r THEN {added} WHEN a IS NULL THEN a ELSE {removed} END"
        return f"aggregate({rows}, CAST(NULL AS {field.type}), (a, x) -> CAST({step} AS {field.type}))"
