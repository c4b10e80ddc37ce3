"""Changes that a statement must not make, found in the task that gets all changes of a row (M2, M4)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.writing.parts import part_of
from trinity.errors import TrinityError
from trinity.messages import shown_row
from trinity.spi import Operation

_CHANGED = pa.array([Operation.DELETE, Operation.UPDATE, Operation.UPDATE_DELETE], pa.int8())
"""Operations of which at most one may apply to a row id."""

FILLING = pa.array([Operation.INSERT, Operation.UPDATE, Operation.UPDATE_INSERT], pa.int8())
"""Operations that write a new row, and so make its key live."""


@dataclass(frozen=True)
class MergeGuard:
    """The checks of a statement's changes. For each sink there is a watch that makes them. Picklable.

    Attributes:
        identity: fields of the row id that identify a row of the target.
        key: indices of the primary key columns in a page; empty for a plain table.
    """

    table: str
    identity: tuple[str, ...]
    key: tuple[int, ...] = ()
    key_names: tuple[str, ...] = ()

    def watch(self) -> _Watch:
        """Return a watch over the pages of one sink."""
        return _Watch(self)


class _Watch:
    def __init__(self, guard: MergeGuard) -> None:
        self.guard = guard
        self.changed: list[pa.Table] = []
        self.filled: list[pa.Table] = []
        self.updated = self.deleted = self.inserted = 0

    def take(self, page: pa.RecordBatch, width: int) -> None:
        """Note the rows of a page: ``width`` data columns, operation, case number, row id, insert-from-update."""
        operation = page.column(width)
        self._count(operation, page.column(width + 3))
        changed = page.filter(pc.is_in(operation, value_set=_CHANGED)).column(width + 2)
        if len(changed):
            columns = [part_of(changed, name) for name in self.guard.identity]
            self.changed.append(_table(columns))
        if self.guard.key:
            filled = page.filter(pc.is_in(operation, value_set=FILLING))
            self.filled.append(_table([filled.column(i) for i in self.guard.key]))

    def _count(self, operation: pa.Array, from_update: pa.Array) -> None:
        """Count rows by kind. An update counts once, whether it came as one row or as two (M5)."""
        moved = pc.sum(from_update).as_py() or 0
        number = {o["values"]: o["counts"] for o in operation.value_counts().to_pylist()}
        halves = number.get(Operation.UPDATE_INSERT, 0)
        self.updated += number.get(Operation.UPDATE, 0) + moved
        self.inserted += number.get(Operation.INSERT, 0) - (moved - halves)
        self.deleted += number.get(Operation.DELETE, 0) - (moved - halves)

    def finish(self) -> None:
        """Refuse duplicates. Raises MERGE_TARGET_ROW_MULTIPLE_MATCHES, CONSTRAINT_VIOLATION naming the row."""
        if twice := _repeated_row(self.changed):
            row = shown_row(self.guard.identity, twice)
            raise TrinityError(
                "MERGE_TARGET_ROW_MULTIPLE_MATCHES",
                f"One row of table '{self.guard.table}' ({row}) matched more than one source row; make the source's "
                "rows unique on the ON columns (M2).",
            )
        if twice := _repeated_row(self.filled):
            row = shown_row(self.guard.key_names, twice)
            raise TrinityError(
                "CONSTRAINT_VIOLATION",
                f"The statement would write two rows of table '{self.guard.table}' under one primary key ({row}) (M4).",
            )

    def counts(self) -> dict[str, int]:
        """Return the rows changed, by kind. Two sinks may each count half of a moved row; their sum is right."""
        return {"updated": self.updated, "deleted": self.deleted, "inserted": self.inserted}


def _table(columns: list[pa.Array]) -> pa.Table:
    return pa.table(columns, names=[str(i) for i in range(len(columns))])


def _repeated_row(parts: list[pa.Table]) -> list[object] | None:
    """Return the values of one row that occurs more than once, or None."""
    if not parts:
        return None
    rows = pa.concat_tables(parts)
    found = rows.group_by(rows.column_names, use_threads=False).aggregate([([], "count_all")])
    twice = found.filter(pc.greater(found.column("count_all"), 1))
    if twice.num_rows == 0:
        return None
    return [twice.column(name)[0].as_py() for name in rows.column_names]
