"""Conflicts between what a statement read of a table and what others have committed since (L7, K6, R1)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from trinity.errors import TrinityError
from trinity.spi import DataFile, MergeTableHandle, RewriteTableHandle


@dataclass(frozen=True)
class FileChange:
    """One commit's change of a table's files. Compactions do not count, since they change no rows (L3).

    Attributes:
        version: the commit's version.
        added: the files that it added, with absolute paths; a later commit may have removed them.
        removed: whether it removed files.
    """

    version: int
    added: Sequence[DataFile] = ()
    removed: bool = False


def check_scope(
    merge: MergeTableHandle, others: Iterable[FileChange] | None, live: Iterable[DataFile], removed: Iterable[str]
) -> None:
    """Check that no commit since the pinned version touched what the statement read (L7).

    The live files alone do not show this: a truncation leaves none, and a compaction drops tombstones.

    Args:
        merge: the statement; its scope says what it read.
        others: the changes of each commit since then, without compactions; None if they are no longer known.
        live: the files of the newest version.
        removed: paths of the files that the statement replaces.

    Raises:
        TrinityError: TRANSACTION_CONFLICT naming the file or the version.
    """
    if others is None:
        raise _conflict(merge, "what was committed after it is not known any more")
    definition = merge.insert.definition
    names = definition.stored_names
    for change in others:
        for file in change.added:
            if merge.scope.concerns(file.renamed(names)):
                raise _conflict(merge, f"rows were committed in '{file.path}' after it")
        if change.removed and definition.keyed:  # in a plain table the files that the statement read are checked below
            raise _conflict(merge, f"version {change.version} removed rows after it")
    unchanged = {f.path for f in live if f.deletes == merge.deletes.get(f.path)}
    for path in (*merge.scope.files, *removed):
        if path not in unchanged:
            raise _conflict(merge, f"'{path}' was replaced, or rows of it were deleted, after it")


def check_rewrite(rewrite: RewriteTableHandle, live: Iterable[DataFile], touched: Collection[str]) -> None:
    """Check that the files of a compaction are still live, with the same deleted rows (K6, R1).

    Args:
        rewrite: the compaction.
        live: the files of the newest version.
        touched: paths of the kept files of which it deletes rows.

    Raises:
        TrinityError: TRANSACTION_CONFLICT naming a file.
    """
    now = {(f.path, f.deletes) for f in live}
    read = {(f.path, f.deletes) for f in (*rewrite.replaced, *(f for f in rewrite.kept if f.path in touched))}
    if gone := read - now:
        raise TrinityError(
            "TRANSACTION_CONFLICT",
            f"'{min(path for path, _ in gone)}' of '{rewrite.table.full_name}' was replaced, had rows deleted, or was "
            "removed meanwhile; compact again.",
        )


def check_sidecar(rewrite: RewriteTableHandle, sidecar: Iterable[DataFile]) -> None:
    """Check that a compaction which makes a new sidecar has folded the present one (U4).

    Its live files alone do not show this: TRUNCATE and another compaction may leave them as they are.

    Args:
        rewrite: the compaction.
        sidecar: the sidecar files of the newest version.

    Raises:
        TrinityError: TRANSACTION_CONFLICT.
    """
    if rewrite.sidecar is not None and {f.path for f in rewrite.sidecar} != {f.path for f in sidecar}:
        raise TrinityError(
            "TRANSACTION_CONFLICT",
            f"The tombstones of '{rewrite.table.full_name}' were compacted or removed meanwhile; compact again.",
        )


def _conflict(merge: MergeTableHandle, what: str) -> TrinityError:
    return TrinityError(
        "TRANSACTION_CONFLICT",
        f"The statement read version {merge.table.version} of '{merge.table.full_name}', and {what}. Run it again.",
    )
