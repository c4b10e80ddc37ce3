"""Row changes of tables in Parquet files: what is the same for every format (S1-S6, L7)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from trinity.errors import TrinityError
from trinity.merge.parse import merge_spec
from trinity.spi import (
    ConnectorMetadata,
    DataFile,
    InsertTableHandle,
    MergeTableHandle,
    RewriteTableHandle,
    RowChangeParadigm,
    TableDefinition,
    TableHandle,
    row_change_stamp,
)

__all__ = ["ROW_ID", "KEEPS_ROWS", "FileChange", "RowChanges", "as_read", "check_kept", "check_replaced", "check_scope"]

ROW_ID = "_trinity_row_id"
"""Name of the row id column of a merge page."""

KEEPS_ROWS: Final = frozenset({"compact", "resolve"})
"""Operations that change files and no rows: the rows after one are those before it (L3)."""


class RowChanges(ConnectorMetadata):
    """Paradigm, row id and layouts for metadata whose sinks are the shared ones.

    An adapter adds ``finish_merge``: one commit that removes and adds files.
    """

    def owns(self, table: TableHandle) -> bool:
        try:
            return super().owns(table)
        except TrinityError as error:
            if error.code in ("BAD_DATA", "NOT_SUPPORTED") and self.left_by_trinity(table):
                return True
            raise

    def left_by_trinity(self, table: TableHandle) -> bool:
        """True when what is left of a table that cannot be read proves that Trinity made it."""
        return False

    def row_change_paradigm(self, table: TableHandle) -> RowChangeParadigm:
        return _paradigm(self.get_table_definition(table))

    def merge_row_id_column(self, table: TableHandle) -> str:
        return ROW_ID

    def insert_layout(self, table: TableHandle) -> tuple[str, ...]:
        definition = self._as_begun(table)
        return definition.primary_key or definition.partition_columns

    def update_layout(self, table: TableHandle) -> tuple[str, ...]:
        definition = self._as_begun(table)
        return definition.primary_key or ("file",)

    def begin_merge(
        self, table: TableHandle, update_case_columns: Mapping[int, tuple[str, ...]], retry: bool = True
    ) -> MergeTableHandle:
        insert = self.begin_insert(table)
        if insert.target.stamp is not None:
            stamp = row_change_stamp(insert.table.version or 0)
            insert = replace(insert, target=replace(insert.target, stamp=stamp))
        begun = _BegunTable.of(insert)
        return MergeTableHandle(begun, insert, dict(update_case_columns), _paradigm(insert.definition))

    def _as_begun(self, table: TableHandle) -> TableDefinition:
        if isinstance(table, _BegunTable) and table.version == table.begun.table.version:
            return table.begun.definition
        return self.get_table_definition(table)


@dataclass(frozen=True)
class _BegunTable(TableHandle):
    """The pinned table of a row change, whose layouts are asked by it: what is known of the version comes along."""

    begun: InsertTableHandle = field(kw_only=True, compare=False, repr=False)

    @classmethod
    def of(cls, begun: InsertTableHandle) -> _BegunTable:
        table = begun.table
        return cls(table.catalog, table.schema, table.table, table.location, table.version, table.id, begun=begun)


def _paradigm(definition: TableDefinition) -> RowChangeParadigm:
    """The paradigm by the merge engine, or else by the property ``row-change-paradigm``; else delete and insert."""
    if definition.keyed and merge_spec(definition).by_column:
        return RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS
    wanted = definition.properties.get("row-change-paradigm")
    return RowChangeParadigm[wanted.upper()] if wanted else RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW


@dataclass(frozen=True)
class FileChange:
    """One commit's change of a table's files. Compactions change nothing: the rows after one are those before it (L3).

    Attributes:
        version: the commit's.
        added: the files that it added, whether or not they are still live; absolute paths.
        removed: whether it removed files.
    """

    version: int
    added: Sequence[DataFile] = ()
    removed: bool = False


def check_scope(
    merge: MergeTableHandle,
    others: Iterable[FileChange] | None,
    live: Collection[str],
    removed: Iterable[str] = (),
) -> None:
    """Checks what a statement read against what others committed since it pinned its version (L7).

    Live files alone do not tell: a truncation leaves none, and a compaction takes tombstones out of sight.

    Args:
        merge: the statement; its scope says what it read.
        others: what each commit since then did, compactions left out; None when that is not known any more.
        live: paths of the files of the newest version, absolute (see :func:`as_read`).
        removed: files that the statement replaces.

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
        if change.removed and definition.keyed:  # of a plain table the statement names the files that it read
            raise _conflict(merge, f"version {change.version} removed rows after it")
    for path in (*merge.scope.files, *removed):
        if path not in live:
            raise _conflict(merge, f"'{path}' was replaced, or rows of it were deleted, after it")


def as_read(merge: MergeTableHandle, live: Iterable[DataFile]) -> set[str]:
    """Paths of the files that have the rows that they had when a statement read them.

    Args:
        merge: the statement.
        live: the files of the newest version.
    """
    return {f.path for f in live if f.deletes == merge.deletes.get(f.path)}


def check_replaced(rewrite: RewriteTableHandle, live: Iterable[DataFile]) -> None:
    """Checks that the files which a compaction replaces are all still live, with the rows that they had (K6).

    Args:
        rewrite: the compaction.
        live: the files of the newest version.

    Raises:
        TrinityError: TRANSACTION_CONFLICT naming a file.
    """
    if gone := {(f.path, f.deletes) for f in rewrite.replaced} - {(f.path, f.deletes) for f in live}:
        raise TrinityError(
            "TRANSACTION_CONFLICT",
            f"Another compaction of '{rewrite.table.full_name}' replaced {min(path for path, _ in gone)} meanwhile, "
            "or rows of it were deleted; compact again.",
        )


def check_kept(rewrite: RewriteTableHandle, live: Iterable[DataFile], touched: Collection[str]) -> None:
    """Checks that the files of which a resolve deletes rows are live, and nobody else has deleted rows of them (R1).

    Args:
        rewrite: the resolve.
        live: the files of the newest version.
        touched: paths of the files that have rows deleted.

    Raises:
        TrinityError: TRANSACTION_CONFLICT naming a file.
    """
    now = {f.path: f.deletes for f in live}
    for file in rewrite.kept:
        if file.path in touched and now.get(file.path, file) != file.deletes:
            raise TrinityError(
                "TRANSACTION_CONFLICT",
                f"'{file.path}' of '{rewrite.table.full_name}' was replaced, or rows of it were deleted, meanwhile; "
                "compact again.",
            )


def _conflict(merge: MergeTableHandle, what: str) -> TrinityError:
    return TrinityError(
        "TRANSACTION_CONFLICT",
        f"The statement read version {merge.table.version} of '{merge.table.full_name}', and {what}. Run it again.",
    )
