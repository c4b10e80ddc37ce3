"""VALUES: rows of constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from sqlglot import exp

from trinity.engine.expressions import (
    BOOLEAN,
    ONE_ROW,
    VOID,
    Compiled,
    Refused,
    Scope,
    ScopeColumn,
    common_type,
    compile_expression,
    or_refuse,
    widened,
)
from trinity.spi import DataType
from trinity.sql.local.relations import Pages, new_field


def value_rows(tree: exp.Values, names: Sequence[str], timezone: Callable[[], str]) -> Pages:
    """Return the rows of VALUES. The values of a column are widened to one type, as Spark does.

    Raises:
        Refused: for values that only Spark evaluates.
    """
    rows = [
        [or_refuse(compile_expression(cell, Scope([]), timezone)) for cell in _cells(row)] for row in tree.expressions
    ]
    if len({len(row) for row in rows}) != 1 or len(names) not in (0, len(rows[0])):
        raise Refused("the rows of VALUES have other numbers of values")
    columns, arrays = list[ScopeColumn](), list[pa.Array]()
    for number, cells in enumerate(zip(*rows, strict=True)):
        kind = VOID
        for cell in cells:
            kind = common_type(kind, cell.type)
        field = new_field()
        columns.append(ScopeColumn(names[number] if names else f"col{number + 1}", field, kind))
        arrays.append(_array(cells, kind, timezone))
    page = pa.RecordBatch.from_arrays(arrays, names=[column.field for column in columns])
    return Pages(tuple(columns), lambda: iter([page]))


def one_row() -> Pages:
    """Return one row, as SELECT without FROM has it: its only column cannot be named."""
    page = pa.RecordBatch.from_pydict({(field := new_field()): [True]})
    return Pages((ScopeColumn("", field, BOOLEAN),), lambda: iter([page]))


def _cells(row: exp.Expr) -> list[exp.Expr]:
    return list(row.expressions) if isinstance(row, exp.Tuple) else [row]


def _array(cells: Sequence[Compiled], kind: DataType, timezone: Callable[[], str]) -> pa.Array:
    type_ = pa.null() if kind == VOID else kind.to_arrow()
    return pa.concat_arrays([widened(cell, kind, timezone).evaluate(ONE_ROW).cast(type_) for cell in cells])
