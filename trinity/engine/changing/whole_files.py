"""Conditions on partition columns alone, which tell whole files that a DELETE removes unread (M12)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from sqlglot import exp

from trinity.depth import deep_recursion
from trinity.engine.changing.conditions import Names
from trinity.engine.program import Expression
from trinity.spi import Column, DataFile, TableDefinition
from trinity.syntax.parse import expression_or_none

__all__ = ["partition_columns"]


def partition_columns(
    condition: Expression, definition: TableDefinition, names: Names, files: Sequence[DataFile]
) -> list[Column] | None:
    """Return the partition columns of a table where a condition is about some of them alone, and every file has them.

    None for another condition, which has to be evaluated row by row.
    """
    columns = {f.column for f in definition.partition_fields if f.identity}
    if not isinstance(condition, str) or not _only_about(condition, columns, definition, names):
        return None
    if not all(file.partition.keys() >= columns for file in files):
        return None
    return [definition.column(name) for name in sorted(columns)]


_CONSTANT: Final = (
    exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.Boolean, exp.Paren, exp.Connector, exp.Predicate, exp.Not,
    exp.Neg, exp.Cast, exp.DataType, exp.DataTypeParam, exp.Tuple,
)  # fmt: skip
"""Parts of a condition that say the same of equal values."""


@deep_recursion()
def _only_about(condition: str, wanted: Collection[str], definition: TableDefinition, names: Names) -> bool:
    tree = expression_or_none(condition)
    if tree is None:
        return False
    columns = list(tree.find_all(exp.Column))
    known = {name.lower() for name in wanted}
    # nothing that may give another value for every row, such as rand()
    return (
        bool(columns)
        and all(names.side(c, definition) == "target" and c.name.lower() in known for c in columns)
        and all(isinstance(node, _CONSTANT) for node in tree.walk())
    )
