"""Comparisons of the target's CHAR columns with text of the source, in the texts of a statement (K2).

Spark itself pads literals and CHAR columns that are compared with a CHAR column. It compares any other text as it is,
although the text would be padded when it is stored. Here such texts are padded, so that ON finds the row that the
source row would replace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from trinity.depth import deep_recursion
from trinity.engine.program import Expression, Program, with_texts
from trinity.engine.values.spark.assignment import types_of
from trinity.errors import TrinityError
from trinity.predicates.comparisons import FLIPPED
from trinity.predicates.conditions import Names
from trinity.spark_names import DataFrame, F
from trinity.spi import TableDefinition, parse_type


def padded_program(program: Program, definition: TableDefinition) -> Program:
    """Return a program whose SQL texts compare CHAR columns of the target with padded texts of the source."""
    source = program.source
    if source is None or not _lengths(definition):
        return program
    names = program.names

    def padded(text: str) -> str:
        return _padded_text(text, definition, names, source)

    def condition(given: Expression | None) -> Expression | None:
        return padded(given) if isinstance(given, str) else given

    cases = []
    for case in program.cases:
        values = {c: with_texts(v, padded) for c, v in case.values.items()} if case.values else case.values
        cases.append(replace(case, condition=condition(case.condition), values=values))
    return replace(program, on=condition(program.on), cases=tuple(cases))


@deep_recursion()
def _padded_text(text: str, definition: TableDefinition, names: Names, source: DataFrame) -> str:
    """Return an expression in which texts of the source are padded that are compared with CHAR columns of the target.

    An expression that sqlglot cannot parse is returned as it is.
    """
    from trinity.syntax.as_written import tree_as_written, written

    lengths = _lengths(definition)
    try:
        holder = exp.Alias(this=tree_as_written(text, exp.Condition))
    except TrinityError:
        return text
    found = list(_compared_with_char(holder, definition, names, lengths))
    if not found:
        return text
    kinds = types_of(source.alias(names.source or "s"), [F.expr(written(other)) for other, _ in found])
    changed = False
    for (other, length), kind in zip(found, kinds, strict=True):
        if kind.simpleString() == "string":
            other.replace(_padded(other, length))
            changed = True
    return written(holder.this) if changed else text


def _lengths(definition: TableDefinition) -> dict[str, int]:
    """Return the lengths of the CHAR columns, by name in lower case."""
    kinds = {c.name.lower(): parse_type(c.type) for c in definition.visible}
    return {name: kind.arguments[0] for name, kind in kinds.items() if kind.name == "char"}


def _compared_with_char(
    holder: exp.Expr, definition: TableDefinition, names: Names, lengths: dict[str, int]
) -> Iterator[tuple[exp.Expr, int]]:
    """Yield the expressions over the source that are compared with a CHAR column of the target, and its length."""
    for node in holder.find_all(*FLIPPED):
        for mine, other in ((node.this, node.expression), (node.expression, node.this)):
            column = mine.unnest()
            if not isinstance(column, exp.Column) or column.name.lower() not in lengths:
                continue
            if names.of_source(other, definition) and names.side(column, definition) == "target":
                yield other, lengths[column.name.lower()]


def _padded(text: exp.Expr, length: int) -> exp.Expr:
    """Return a text padded to a length.

    A text that is still too long after its trailing blanks are cut is returned unchanged; it equals no CHAR of that
    length.
    """
    fits = exp.LTE(this=_call("length", _call("rtrim", text)), expression=exp.Literal.number(length))
    padded = _call("rpad", text, exp.Literal.number(length), exp.Literal.string(" "))
    return exp.Paren(this=exp.Case().when(fits, padded).else_(text.copy()))


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[a.copy() for a in arguments])
