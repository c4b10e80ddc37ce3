"""Functions that keep many values: texts in one text, elements in one array."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.arrays import as_arrow, as_numpy
from trinity.merge.functions.base import Field, ListFunction
from trinity.merge.kernels.order import equal_codes, first_of_each, order_codes
from trinity.merge.kernels.rows import ColumnRows, Folded, lists
from trinity.spi import DataType
from trinity.syntax.quoting import text_literal

_VALUES: Final = "transform({rows}, x -> x.v)"


def _distinct(options: Mapping[str, str]) -> bool:
    return options.get("distinct", "false").strip().lower() == "true"


def _delimiter(options: Mapping[str, str]) -> str:
    return options.get("list-agg-delimiter", ",")


class ListAgg(ListFunction):
    """The texts, joined in fold order; NULL, empty and blank texts are left out."""

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
        delimiter = _delimiter(field.options)
        values = _VALUES.format(rows=rows)
        if _distinct(field.options):
            pattern = text_literal("\\Q" + delimiter.replace("\\E", "\\E\\\\E\\Q") + "\\E")
            tokens = f"flatten(transform({values}, t -> split(t, {pattern})))"
            values = f"array_distinct(filter({tokens}, t -> t RLIKE {_NOT_BLANK}))"
        return f"array_join({values}, {text_literal(delimiter)})"

    def not_in_arrow(self, kind: DataType, options: Mapping[str, str]) -> str | None:
        return "splits at an empty delimiter" if _distinct(options) and not _delimiter(options) else None

    def folded(self, rows: ColumnRows) -> Folded:
        found = self.counted(rows)
        texts = rows.values.take(as_arrow(found))
        filled = _not_blank(texts)
        found, texts = found[filled], texts.filter(as_arrow(filled))
        keys = rows.order.keys[found]
        there = np.bincount(keys, minlength=rows.order.count) > 0
        if _distinct(rows.options):
            keys, texts = self._distinct_parts(keys, texts, _delimiter(rows.options))
        return Folded(pc.binary_join(lists(keys, texts, there), _delimiter(rows.options)))

    def _distinct_parts(self, keys: np.ndarray, texts: pa.Array, delimiter: str) -> tuple[np.ndarray, pa.Array]:
        parts = pc.split_pattern(texts, delimiter)
        keys, texts = keys[as_numpy(pc.list_parent_indices(parts))], parts.flatten()
        filled = _not_blank(texts)
        keys, texts = keys[filled], texts.filter(as_arrow(filled))
        first = first_of_each(keys, order_codes(texts))
        return keys[first], texts.take(as_arrow(first))


def _not_blank(texts: pa.Array) -> np.ndarray:
    return as_numpy(pc.match_substring_regex(texts, _A_CHARACTER))


_A_CHARACTER: Final = r"[^ \t\n\x0B\f\r]"
_NOT_BLANK: Final = text_literal(_A_CHARACTER)
"""Java's \\S, spelled out: other engines count other characters as blanks."""


class Collect(ListFunction):
    """The elements of all arrays, in order of first appearance; a retract removes each of its elements once."""

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
            return f"array_distinct({flat})" if _distinct(field.options) else flat
        added = "concat(coalesce(a, array()), x.v)"
        if _distinct(field.options):
            added = f"array_distinct({added})"
        index = "CAST(array_position(transform(b, t -> t <=> e), true) AS INT)"
        without = f"IF({index} = 0, b, concat(slice(b, 1, {index} - 1), slice(b, {index} + 1, size(b))))"
        removed = f"aggregate(x.v, a, (b, e) -> {without})"
        step = f"CASE WHEN NOT x.r THEN {added} WHEN a IS NULL THEN a ELSE {removed} END"
        return f"aggregate({rows}, CAST(NULL AS {field.type}), (a, x) -> CAST({step} AS {field.type}))"

    def not_in_arrow(self, kind: DataType, options: Mapping[str, str]) -> str | None:
        floating = kind.has_floating
        return "compares floating-point numbers" if floating and _distinct(options) else None

    def folded(self, rows: ColumnRows) -> Folded:
        found = self.counted(rows)
        arrays = rows.values.take(as_arrow(found))
        row_of = as_numpy(pc.list_parent_indices(arrays))
        elements, keys, retract = arrays.flatten(), rows.order.keys[found][row_of], rows.retract[found][row_of]
        there = np.bincount(rows.order.keys[found[~rows.retract[found]]], minlength=rows.order.count) > 0
        kept = np.arange(len(elements))
        if rows.retract.any():
            kept = _taken_back(keys, equal_codes(elements), retract, _distinct(rows.options))
        elif _distinct(rows.options):
            kept = first_of_each(keys, equal_codes(elements))
        return Folded(lists(keys[kept], elements.take(as_arrow(kept)), there).cast(rows.values.type))


def _taken_back(keys: np.ndarray, codes: np.ndarray, retract: np.ndarray, distinct: bool) -> np.ndarray:
    """Return the indices of the remaining elements in order; a retracted element removes the first equal one."""
    left, now = np.ones(len(keys), bool), -1
    for index, (key, code, back) in enumerate(zip(keys.tolist(), codes.tolist(), retract.tolist(), strict=True)):
        if key != now:
            there, now = defaultdict[int, deque[int]](deque), key
        same = there[code]
        if back or (distinct and same):
            left[index] = False
            if back and same:
                left[same.popleft()] = False
        else:
            same.append(index)
    return np.flatnonzero(left)
