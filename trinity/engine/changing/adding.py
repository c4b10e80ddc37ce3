"""ALTER TABLE: adding columns with a DEFAULT is a row change, which sets it in the existing rows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

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
    fills = bool(_columns_with_default(before, altering.altered(target, before, changes)))
    while True:
        try:
            _add_and_fill(target, changes) if fills else _alter_definition(target, changes)
            return
        except _ColumnsDiffer:
            fills = not fills


class _ColumnsDiffer(Exception):
    """Others have added or dropped a column meanwhile, so that another one has to be filled, or none any more."""


def _alter_definition(target: Target, changes: Sequence[evolve.Change]) -> None:
    """Make changes that leave the rows as they are. Raises _ColumnsDiffer where they do not."""

    def change(definition: TableDefinition) -> TableDefinition:
        after = altering.altered(target, definition, changes)
        if _columns_with_default(definition, after):
            raise _ColumnsDiffer
        return after

    target.connector.metadata.alter_table(target.handle, change)


def _add_and_fill(target: Target, changes: Sequence[evolve.Change]) -> None:
    """Add columns, and set them to their DEFAULTs in all rows. Raises _ColumnsDiffer where others have added them."""
    filled: list[Column] = []

    def prepare(splits: SplitSource) -> AbstractContextManager[Program]:
        nonlocal filled
        after = altering.altered(target, splits.definition, changes)
        filled = _columns_with_default(splits.definition, after)
        if not filled:
            raise _ColumnsDiffer
        return nullcontext(_program(target, splits.definition, after, filled))

    try:
        dml.run(target, prepare)
    except TrinityError as error:
        if error.code != "NOT_SUPPORTED" or not filled:
            raise
        name, default = filled[0].name, filled[0].default
        raise TrinityError(
            error.code,
            f"{error.message} The rows stay as they are with ADD COLUMN {name} {filled[0].type}, and then ALTER COLUMN "
            f"{name} SET DEFAULT {default}.",
        ) from error


def _program(target: Target, before: TableDefinition, after: TableDefinition, filled: Sequence[Column]) -> Program:
    """Return the program that adds columns, and sets them to their DEFAULTs in all rows."""
    others = before.with_columns(after.columns).with_history_of(after) != after
    if others or any(c not in after.columns for c in before.columns):
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Column '{filled[0].name}' of table '{target.name}' comes with a DEFAULT, which is stored in every row; "
            "make the other changes in a statement of their own.",
        )
    values: dict[str, Value] = {c.name: default_text(c, lambda: target.session.spark) for c in filled}
    case = Case(When.MATCHED, Operation.UPDATE, None, values)
    return Program("ALTER TABLE", (case,), target_alias=target.name.table, after=after)


def _columns_with_default(before: TableDefinition, after: TableDefinition) -> list[Column]:
    """Return the new columns that have a DEFAULT."""
    known = {c.identity for c in before.columns}
    return [c for c in after.visible if c.identity not in known and c.default is not None]
