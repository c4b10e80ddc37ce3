"""ALTER TABLE: adding columns with a DEFAULT is a row change, which sets it in the existing rows."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from trinity.definition import evolve
from trinity.engine.changing import statement as dml
from trinity.engine.program import Case, Program, Value, When
from trinity.engine.values import altering
from trinity.engine.values.defaults import default_text
from trinity.errors import TrinityError
from trinity.spi import Column, Operation, SplitSource, TableDefinition
from trinity.target import Target


def alter(target: Target, *changes: evolve.Change) -> None:
    """Make changes in their order, in one commit. Raises as :meth:`trinity.Table.alter`."""
    before = target.definition
    filled = _columns_with_default(before, altering.altered(target, before, changes))
    if not filled:
        altering.alter(target, *changes)
        return
    try:
        dml.run(target, lambda splits: _program(target, splits, changes))
    except TrinityError as error:
        if error.code != "NOT_SUPPORTED":
            raise
        name, default = filled[0].name, filled[0].default
        raise TrinityError(
            error.code,
            f"{error.message} The rows stay as they are with ADD COLUMN {name} {filled[0].type}, and then ALTER COLUMN "
            f"{name} SET DEFAULT {default}.",
        ) from error


def _program(
    target: Target, splits: SplitSource, changes: tuple[evolve.Change, ...]
) -> AbstractContextManager[Program]:
    """Return the program that adds columns, and sets them to their DEFAULTs in all rows."""
    before = splits.definition
    after = altering.altered(target, before, changes)
    filled = _columns_with_default(before, after)
    if not filled:  # another statement has added them
        nothing = Case(When.MATCHED, Operation.DELETE, "false")
        return nullcontext(Program("ALTER TABLE", (nothing,), target_alias=target.name.table))
    new, last = after.history_changed, after.keeps_last_values
    others = replace(before, columns=after.columns, history_changed=new, keeps_last_values=last) != after
    if others or any(c not in after.columns for c in before.columns):
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Column '{filled[0].name}' of table '{target.name}' comes with a DEFAULT, which is stored in every row; "
            "make the other changes in a statement of their own.",
        )
    values: dict[str, Value] = {c.name: default_text(c, lambda: target.session.spark) for c in filled}
    case = Case(When.MATCHED, Operation.UPDATE, None, values)
    return nullcontext(Program("ALTER TABLE", (case,), target_alias=target.name.table, after=after))


def _columns_with_default(before: TableDefinition, after: TableDefinition) -> list[Column]:
    """Return the new columns that have a DEFAULT."""
    known = {c.identity for c in before.columns}
    return [c for c in after.visible if c.identity not in known and c.default is not None]
