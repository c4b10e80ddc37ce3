"""The actions of compactions: files removed and added, and rows deleted by position (K6, R1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trinity.spi import DataFile, RewriteTableHandle, TableHandle
from trinity.storage import DeletesFragment, ObjectStore
from trinity_delta.actions import Action, add, remove_added, with_vector
from trinity_delta.deletes import DeletionVector
from trinity_delta.protocol import refused
from trinity_delta.schema import FEED, VECTORS, is_true
from trinity_delta.state import State

__all__ = ["check_vectors", "folded_external", "has_vectors", "marked"]


def folded_external(rewrite: RewriteTableHandle, state: State, files: Sequence[DataFile]) -> list[Action]:
    """Return the actions of a compaction of an external table, whose readers see row versions disappear.

    Where none disappears, the same rows are in other files, which is no change to a feed or a stream of the table.

    Raises:
        TrinityError: NOT_SUPPORTED for a table with a change data feed, which would show every row as deleted, and
            those that stay as inserted.
    """
    replaced = {f.path for f in rewrite.replaced}
    paths = [path for path, f in state.files.items() if f.path in replaced]
    changes = not _keeps_rows([state.files[path] for path in paths], files)
    if changes and is_true(state.metadata["configuration"], FEED):
        ObjectStore(rewrite.table.location).delete(f.path for f in files)  # no version names them
        raise refused(
            rewrite.table,
            f"'{FEED}' = 'true' and row versions that a compaction would leave out: its feed would show every row as "
            "deleted, and those that stay as inserted",
        )
    order, store = state.version + 1 if changes else None, ObjectStore(rewrite.table.location)
    return [
        *(remove_added(state.added[path], changes=changes) for path in paths),
        *(add(f, store, rewrite.definition, order=order) for f in files),
    ]


def _keeps_rows(before: Sequence[DataFile], after: Sequence[DataFile]) -> bool:
    """Return whether all row versions are still there, as far as their numbers are known."""
    return all(f.rows_known for f in before) and sum(f.live_rows for f in before) == sum(f.rows for f in after)


def has_vectors(state: State) -> bool:
    """Return whether the table's settings allow deletion vectors."""
    return is_true(state.metadata["configuration"], VECTORS)


def check_vectors(table: TableHandle, state: State) -> None:
    """Refuse a table whose settings forbid deletion vectors. Raises NOT_SUPPORTED naming the setting."""
    if str(state.metadata["configuration"].get(VECTORS)).lower() == "false":
        raise refused(table, f"'{VECTORS}' = 'false', and compact('resolve') deletes rows by deletion vectors")


def marked(state: State, marks: Mapping[str, DeletesFragment]) -> list[Action]:
    """Return the actions that give files with newly deleted rows their new deletion vectors."""
    found: list[Action] = []
    for path, file in state.files.items():
        if file.path in marks:
            vector = marks[file.path].deletes
            assert isinstance(vector, DeletionVector)
            found += with_vector(state.added[path], vector)
    return found
