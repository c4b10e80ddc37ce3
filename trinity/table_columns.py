"""The part of a table that changes its columns and constraints."""

from __future__ import annotations

from functools import partial

from trinity.calls import public
from trinity.definition import altering, evolve
from trinity.definition.checks import without_check
from trinity.engine.target import Target
from trinity.spi import Check, Column

__all__ = ["TableColumns"]


@public
class TableColumns:
    """ALTER TABLE from Python: methods of :class:`trinity.Table`."""

    def alter(self: Target, *changes: evolve.Change) -> None:
        """Makes changes of :mod:`trinity.definition.evolve` in their order, in one commit; older versions keep theirs.

        Raises:
            TrinityError: what a change, or the resulting definition (V1), refuses; the table is then as it was.
        """
        altering.alter(self, *changes)

    def add_column(self: Target, column: Column, after: str | None = None) -> None:
        """Adds a nullable column; older rows read NULL there, also when a column of that name was dropped before.

        Args:
            column: the column.
            after: the column behind which it goes, ``""`` for the first place; the last one when left out.

        Raises:
            TrinityError: see :func:`trinity.definition.evolve.added`.
        """
        altering.alter(self, lambda definition: evolve.added(definition, column, after))

    def rename_column(self: Target, old: str, new: str) -> None:
        """Renames a column, in the key and in options too, as :func:`trinity.definition.evolve.rename_column` does."""
        altering.alter(self, lambda definition: evolve.rename_column(definition, old, new))

    def drop_column(self: Target, name: str) -> None:
        """Drops a column; older versions still have it. Raises as :func:`trinity.definition.evolve.dropped`."""
        altering.alter(self, lambda definition: evolve.dropped(definition, name))

    def widen_column(self: Target, name: str, type: str) -> None:  # noqa: A002 - the SQL word
        """Gives a column a wider type, as ``bigint`` for INT. Raises as :func:`trinity.definition.evolve.with_type`."""
        altering.alter(self, lambda definition: evolve.with_type(definition, name, type))

    def set_not_null(self: Target, name: str, not_null: bool = True) -> None:
        """Declares a column NOT NULL for rows to come, or takes that back.

        Raises:
            TrinityError: CONSTRAINT_VIOLATION for NULL there; and as :func:`trinity.definition.evolve.with_not_null`.
        """
        if not_null:
            altering.set_not_null(self, name)
        else:
            altering.alter(self, partial(evolve.with_not_null, name=name, not_null=False))

    def add_check(self: Target, name: str, condition: str) -> None:
        """Adds a CHECK constraint: no row for which it is false is stored from now on (M6).

        Args:
            name: of the constraint.
            condition: Spark SQL over bare column names; NULL passes.

        Raises:
            TrinityError: CONSTRAINT_VIOLATION when a row fails it; and as :func:`trinity.definition.checks.with_check`.
        """
        altering.add_check(self, Check(name, condition))

    def drop_check(self: Target, name: str, *, if_exists: bool = False) -> None:
        """Drops a CHECK constraint. Raises INVALID_ARGUMENTS when it is not there, unless ``if_exists``."""
        altering.alter(self, lambda definition: without_check(definition, name, if_exists=if_exists))
