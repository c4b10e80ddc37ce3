"""CHECK constraints: the columns that they name, and adding them to definitions and removing them (M6)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from trinity.depth import deep_recursion
from trinity.errors import TrinityError, nearest
from trinity.merge.spec import merge_spec
from trinity.messages import shown_value
from trinity.names import LENGTH, checked_name
from trinity.spi import Check, TableDefinition


@deep_recursion()
def constrained_columns(definition: TableDefinition, check: Check) -> tuple[str, ...]:
    """Return the columns that a constraint names, in table order.

    Raises:
        TrinityError: COLUMN_NOT_FOUND; SYNTAX_ERROR; NOT_SUPPORTED for a subquery.
    """
    from sqlglot import exp  # imported only for a constraint: loading the SQL parser takes much of a first read

    from trinity.syntax.parse import expression_or_none

    where = f"CHECK constraint '{check.name}' of table '{definition.full_name}'"
    tree = expression_or_none(check.expression)
    if tree is None:
        raise TrinityError("SYNTAX_ERROR", f"{where}: ({shown_value(check.expression)}) is no expression.")
    if tree.find(exp.Query):
        raise TrinityError(
            "NOT_SUPPORTED",
            f"{where}: ({shown_value(check.expression)}) has a subquery; a constraint is about one row alone.",
        )
    known = {c.name.lower(): c.name for c in definition.visible}
    named = {node.parts[0].name.lower() for node in tree.find_all(exp.Column)}
    for name in sorted(named - known.keys()):
        raise TrinityError(
            "COLUMN_NOT_FOUND",
            f"{where} names '{name}', which is no column of the table.{nearest(name, list(known.values()))} "
            f"It has: {', '.join(known.values())}.",
        )
    return tuple(name for lower, name in known.items() if lower in named)


def with_check(definition: TableDefinition, check: Check) -> TableDefinition:
    """Return the definition with one more constraint, for future rows; the caller checks the existing rows.

    Raises:
        TrinityError: INVALID_ARGUMENTS for a name that is taken or invalid (N1); see also :func:`refuse_folded` and
            :func:`constrained_columns`.
    """
    checked_name(check.name, "CHECK constraint")
    check = replace(check, expression=_bare(check.expression))
    if any(c.name.lower() == check.name.lower() for c in definition.checks):
        raise TrinityError(
            "INVALID_ARGUMENTS", f"Table '{definition.full_name}' has a CHECK constraint '{check.name}' already."
        )
    constrained_columns(definition, check)
    definition = replace(definition, checks=(*definition.checks, check))
    refuse_folded(definition)
    return definition


def _bare(expression: str) -> str:
    """Return the expression without comments around it; a comment at the end would hide text that is added after it."""
    from trinity.syntax.parse import tokenize

    tokens = tokenize(expression)
    return expression[tokens[0].start : tokens[-1].end + 1] if tokens else expression


def refuse_folded(definition: TableDefinition) -> None:
    """Refuse constraints of a table that folds by column (NOT_SUPPORTED): no stored row can be checked by itself."""
    if definition.checks and definition.keyed and (spec := merge_spec(definition)).by_column:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Table '{definition.full_name}' cannot keep its CHECK constraint '{definition.checks[0].name}': under "
            f"merge engine {spec.engine.value} a row is folded from several, none of which can be checked by itself.",
        )


SHOWN_CHARACTERS: Final = 60
"""The most characters of a value that the message of a violation shows."""


def violation_text(table: str, check: Check) -> tuple[str, str]:
    """Return the message of a violated constraint as two texts, which stand before and after values of the bad row.

    Each executor puts these values in between: ``name = value`` for each column of the constraint, or ``always`` for a
    constraint without columns.
    """
    return f"A row violates the CHECK constraint '{check.name}' ({check.expression}) of table '{table}': ", "."


def without_check(definition: TableDefinition, name: str, *, if_exists: bool = False) -> TableDefinition:
    """Return the definition without a constraint. Raises INVALID_ARGUMENTS if it has none, unless ``if_exists``."""
    kept = tuple(c for c in definition.checks if c.name.lower() != name.lower())
    if len(kept) == len(definition.checks) and not if_exists:
        known = [c.name for c in definition.checks]
        has = f"It has: {', '.join(known)}." if known else "It has none."
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"Table '{definition.full_name}' has no CHECK constraint '{name}'.{nearest(name, known)} {has}",
        )
    return replace(definition, checks=kept)


def check_name(table: str, columns: Iterable[str], taken: Iterable[str]) -> str:
    """Return a name for a constraint without one, as PostgreSQL does: ``orders_amount_check``, ``orders_check1``.

    If the constraint names a single column, the column's name is part of it.
    """
    named, others = list(columns), {name.lower() for name in taken}
    stem = "_".join([table, *(named if len(named) == 1 else []), "check"])
    ends = (str(number) if number else "" for number in range(len(others) + 1))
    names = (stem[: LENGTH - len(end)] + end for end in ends)
    return next(name for name in names if name.lower() not in others)


def naming_checks(definition: TableDefinition, column: str) -> list[str]:
    """Return the names of the constraints that name a column."""
    return [c.name for c in definition.checks if column in constrained_columns(definition, c)]
