"""Committed changes of a table's definition. A new constraint is added only if all stored rows meet it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import pyarrow.compute as pc

from trinity.definition import evolve
from trinity.definition.checks import with_check
from trinity.engine.executes import NotLocal, ThisProcess, execute
from trinity.engine.expressions import Scope, compile_predicate
from trinity.engine.reading.local.executor import LocalExecutor
from trinity.engine.reading.plan import plan_read
from trinity.engine.values.check_types import check_types
from trinity.errors import TrinityError
from trinity.merge.kept_values import with_history_noted
from trinity.spi import Check, SplitSource, TableDefinition
from trinity.syntax.operands import with_plain_comparisons
from trinity.syntax.quoting import quoted
from trinity.target import Target


def alter(target: Target, *changes: evolve.Change) -> None:
    """Make changes in their order, in one commit. Raises as :meth:`trinity.Table.alter`."""
    target.connector.metadata.alter_table(target.handle, lambda definition: altered(target, definition, changes))


def altered(target: Target, definition: TableDefinition, changes: Iterable[evolve.Change]) -> TableDefinition:
    """Return a table's definition after changes. Raises as :meth:`trinity.Table.alter`."""
    if definition.external:
        from trinity.storage.foreign import not_ours

        raise not_ours(str(target.name), "its columns")
    before = definition = target.handle.named(definition)
    for change in changes:
        definition = evolve.changed(definition, change)
    definition = with_history_noted(before, definition)
    check_types(definition, target.session)
    return definition


def set_not_null(target: Target, wanted: Mapping[str, bool]) -> None:
    """Declare columns NOT NULL (True) or nullable, in one commit. Raises as :meth:`trinity.Table.set_not_null`."""
    changes = [partial(evolve.with_not_null, name=name, not_null=required) for name, required in wanted.items()]
    splits = target.splits()
    names = [splits.definition.column(name).name for name, required in wanted.items() if required]
    if not names:
        alter(target, *changes)
        return
    condition = " AND ".join(f"{quoted(name)} IS NOT NULL" for name in names)
    columns = "Column " + " or ".join(f"'{name}'" for name in names)
    refusal = f"{columns} of table '{target.name}' is NULL in some rows; fill them before it is NOT NULL."
    _alter_if_rows_meet(target, splits, changes, condition, refusal)


def add_check(target: Target, check: Check) -> None:
    """Add a CHECK constraint. Raises as :meth:`trinity.Table.add_check`."""
    refusal = (
        f"Some rows of table '{target.name}' do not meet CHECK ({check.expression}); change them before "
        f"'{check.name}' is added."
    )
    change = partial(with_check, check=check)
    _alter_if_rows_meet(target, target.splits(), [change], check.expression, refusal)


def _alter_if_rows_meet(
    target: Target, splits: SplitSource, changes: Sequence[evolve.Change], wanted: str, refusal: str
) -> None:
    """Make changes, or raise CONSTRAINT_VIOLATION if a condition is false for some row.

    The rows of ``splits`` are checked before the commit; if there is a newer version, its rows are checked within it.
    """
    looked: tuple[str, int] | None = None

    def look(splits: SplitSource) -> None:
        nonlocal looked
        seen, looked = looked, (splits.definition.id, splits.version)
        if looked != seen and not _holds(target, splits, wanted):
            raise TrinityError("CONSTRAINT_VIOLATION", refusal)

    def look_again(definition: TableDefinition) -> TableDefinition:
        look(target.splits())
        return definition

    altered(target, splits.definition, changes)
    look(splits)
    alter(target, *changes, look_again)


def _holds(target: Target, splits: SplitSource, wanted: str) -> bool:
    """Return False when a condition is false for some row of a version."""
    session = target.session

    def local(process: ThisProcess) -> bool | NotLocal:
        if (why := process.why_not_read(splits.files)) is not None:
            return why
        columns = splits.definition.visible
        condition = compile_predicate(wanted, Scope.of(columns, is_stored_expression=True), lambda: session.timezone)
        if isinstance(condition, NotLocal):
            return condition
        needed = [c for c in columns if c.name in condition.fields] or columns[:1]
        pages = LocalExecutor(needed).rows(plan_read(splits))
        if isinstance(pages, NotLocal):
            return pages
        return all(pc.all(condition.evaluate(page), min_count=0).as_py() for page in pages)

    def by_spark() -> bool:
        from trinity.engine.reading.spark.merged_read import merged_read

        violated = f"NOT (\n{with_plain_comparisons(wanted)}\n)"
        return merged_read(session.spark, splits).where(violated).isEmpty()

    what = f"The condition ({wanted}) on the rows of '{target.name}'"
    return execute(session, what, local, by_spark)
