"""EXPLODE and POSEXPLODE: a row for each item of an array, or entry of a map; in a SELECT list or a LATERAL VIEW."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from trinity.arrays import as_arrow, as_numpy
from trinity.engine.expressions import Compiled, Refused, ScopeColumn
from trinity.spi import DataType
from trinity.sql.local.relations import Pages, Relation, new_field

_INT: Final = DataType("int")
_ROWS_AT_ONCE: Final = 1_000_000


@dataclass(frozen=True)
class Generated:
    """The rows that EXPLODE or POSEXPLODE makes of each source row.

    Attributes:
        node: the call of the function.
        value: its argument, an array or a map.
        outer: True to make one row of NULLs of a NULL, and of a value without items.
        columns: the columns that the function adds.
    """

    node: exp.Expr
    value: Compiled
    outer: bool
    columns: Sequence[ScopeColumn]

    @classmethod
    def of(
        cls, node: exp.Expr, value: Compiled, names: Sequence[str], qualifier: str = "", *, outer: bool = False
    ) -> Generated:
        """Return the rows that a call makes of its argument.

        Args:
            node: the call.
            value: its argument.
            names: names of the added columns; empty for Spark's names, such as ``pos`` and ``col``.
            qualifier: the alias that qualifies them.
            outer: True for LATERAL VIEW OUTER.

        Raises:
            Refused: for a call that only Spark evaluates.
        """
        inner = {"array": ("col",), "map": ("key", "value")}.get(value.type.name)
        if inner is None or value.type.limited or node.expressions or node.find(exp.Query, exp.AggFunc, exp.Window):
            raise Refused(f"only Spark evaluates '{node.sql(dialect='spark')}'")
        with_position = isinstance(node, exp.Posexplode)
        own, kinds = [*(("pos",) * with_position), *inner], [*((_INT,) * with_position), *value.type.children]
        if len(names or own) != len(own):
            raise Refused(f"'{node.sql(dialect='spark')}' has a different number of columns than its names")
        columns = [ScopeColumn(n, new_field(), kind, qualifier) for n, kind in zip(names or own, kinds, strict=True)]
        return cls(node, value, outer or isinstance(node, exp.ExplodeOuter), columns)

    def rows(self, source: Relation) -> Pages:
        """Return the generated rows, each with the columns of its source row."""
        pages = source.pages()
        shown = replace(pages, columns=(*pages.columns, *self.columns))
        with_position = isinstance(self.node, exp.Posexplode)

        def made() -> Iterator[pa.RecordBatch]:
            for page in pages.open():
                given = self.value.evaluate(page)
                parts = [given.keys, given.items] if pa.types.is_map(given.type) else [given.values]
                for rows, positions, within in _positions(given, outer=self.outer):
                    found = [
                        *page.take(rows).columns,
                        *((positions,) * with_position),
                        *(part.take(within) for part in parts),
                    ]
                    yield pa.RecordBatch.from_arrays(found, schema=shown.schema)

        return replace(shown, open=made)


def _positions(given: pa.Array, *, outer: bool) -> Iterator[tuple[pa.Array, pa.Array, pa.Array]]:
    """Yield, for runs of items: (index of the item's array, index in that array, index among all items).

    With ``outer``, an array without items yields one entry with NULL for the latter two.
    """
    offsets = as_numpy(given.offsets).astype(np.int64)
    counts = np.where(as_numpy(pc.is_valid(given)), np.diff(offsets), 0)
    made = np.maximum(counts, 1) if outer else counts
    ends = np.cumsum(made)
    first = 0
    while first < len(made):
        before = ends[first - 1] if first else 0
        last = max(int(np.searchsorted(ends, before + _ROWS_AT_ONCE)), first + 1)
        rows = np.repeat(np.arange(first, last), made[first:last])
        positions = np.arange(len(rows)) - np.repeat(ends[first:last] - made[first:last] - before, made[first:last])
        none = counts[rows] == 0
        within = as_arrow(offsets[rows] + positions, mask=none)
        yield as_arrow(rows), as_arrow(positions.astype(np.int32), mask=none), within
        first = last
