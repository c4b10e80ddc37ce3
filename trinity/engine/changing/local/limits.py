"""Limits of row changes in this process, which follow from the statement and the table alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import pyarrow as pa
from sqlglot import exp

from trinity.depth import deep_recursion
from trinity.engine.changing.local.target import why_not_read
from trinity.engine.changing.plan import written_unique_keys
from trinity.engine.executes import NotLocal
from trinity.engine.program import Program, expressions_of
from trinity.engine.values.defaults import is_plain
from trinity.spi import Operation, SplitSource, TableDefinition, parse_type
from trinity.syntax.sql_text import tree_of


def why_not_local(splits: SplitSource, program: Program) -> NotLocal | None:
    """Return why this process cannot execute a statement, whatever its expressions are; None when it may."""
    return why_not_read(splits) or _why_not_source(program, splits.definition) or _why_not_rows(program, splits)


def _why_not_source(program: Program, definition: TableDefinition) -> NotLocal | None:
    source = program.source
    if source is None:
        return None
    if not isinstance(source, pa.Table):
        return NotLocal("the source is a DataFrame of Spark's")
    if any(pa.types.is_null(field.type) for field in source.schema):
        return NotLocal("a column of the source has no type")
    if any(_compares_char(tree, program, definition) for tree in _trees(program)):
        return NotLocal("only Spark pads text of the source that is compared with a CHAR column")
    return None


def _why_not_rows(program: Program, splits: SplitSource) -> NotLocal | None:
    if written_unique_keys(program):
        return NotLocal("only Spark looks for values of further unique keys")
    inserts = any(case.operation is Operation.INSERT for case in program.cases)
    if inserts and not all(is_plain(column) for column in splits.definition.visible):
        return NotLocal("only Spark evaluates a DEFAULT that is no literal")
    return None


def _trees(program: Program) -> Iterator[exp.Expr]:
    for case in program.cases:
        values = chain.from_iterable(map(expressions_of, (case.values or {}).values()))
        yield from filter(None, map(tree_of, (case.condition, *values)))


@deep_recursion()
def _compares_char(tree: exp.Expr, program: Program, definition: TableDefinition) -> bool:
    """Return True for an expression that names both a CHAR column of the target and a column of the source."""
    names, columns = program.names, list(tree.find_all(exp.Column))
    chars = {c.name.lower() for c in definition.visible if parse_type(c.type).name == "char"}
    return any(c.name.lower() in chars and names.side(c, definition) != "source" for c in columns) and any(
        names.side(c, definition) != "target" for c in columns
    )
