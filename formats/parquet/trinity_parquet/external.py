"""Folders of Parquet files that others write: one commit, ordered by modification time, path and position."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from trinity.errors import TrinityError
from trinity.spi import (
    NATIVE_FILE,
    NATIVE_ROW,
    CommitResult,
    DataFile,
    HistoryEntry,
    InsertTableHandle,
    MergeTableHandle,
    NativeScan,
    RewriteTableHandle,
    SplitSource,
    TableDefinition,
    TableHandle,
    TransactionId,
    from_fragments,
    from_merge_fragments,
)
from trinity.storage import (
    OWN_ENDING,
    FileChange,
    Location,
    ObjectStore,
    SingleTable,
    check_scope,
    commit_loop,
    commit_result,
    commit_timeout_s,
    file_uri,
    quoted,
    read_files,
    spark_schema,
    write_target,
)
from trinity_parquet.arrival import Mark
from trinity_parquet.claims import STAGING
from trinity_parquet.folder import Folder, Listing
from trinity_parquet.schema import storage_schema
from trinity_parquet.sink import FolderTarget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["FolderTable"]


class FolderTable(SingleTable):
    """The metadata of one folder. Its version is the time of the newest file, milliseconds since the epoch.

    Args:
        location: the folder.
    """

    def __init__(self, location: str) -> None:
        self._folder = Folder(location)

    # -- versions -----------------------------------------------------------------------------------------

    def get_splits(self, table: TableHandle) -> SplitSource:
        listing = self._listing(table)
        definition = listing.definition((table.schema, table.table))
        storage = storage_schema(definition)
        scan = _FolderScan(table.location, storage)
        return SplitSource(
            listing.version, listing.version, definition, storage, listing.files, native=scan, commit=listing.id
        )

    def history(self, table: TableHandle) -> list[HistoryEntry]:
        listing = self._listing(replace(table, version=None))
        details = {"added_files": len(listing.files), "added_rows": sum(f.rows for f in listing.files)}
        return [HistoryEntry(listing.version, listing.version, "append", details, listing.id)]

    # -- appends ------------------------------------------------------------------------------------------

    def begin_insert(self, table: TableHandle) -> InsertTableHandle:
        listing = self._folder.list(table.full_name)
        if table.version not in (None, listing.version):
            raise TrinityError(
                "TRANSACTION_CONFLICT",
                f"Files of '{table.full_name}' came or went since version {table.version} was read; run the statement "
                "again.",
            )
        pinned, definition = replace(table, version=listing.version), listing.definition((table.schema, table.table))
        return FolderInsert(pinned, definition, _target(table, definition), frozenset(listing.marks.items()))

    def finish_insert(
        self, insert: InsertTableHandle, fragments: Sequence[bytes], txn: TransactionId | None = None
    ) -> CommitResult:
        self._refuse_txn(insert, txn)
        return self._publish(insert, from_fragments(list(fragments)), lambda _: None)

    def recorded_txn(self, table: TableHandle, application: str) -> int | None:
        return None

    def finish_merge(
        self,
        merge: MergeTableHandle,
        sources: Sequence[TableHandle],
        fragments: Sequence[bytes],
        txn: TransactionId | None = None,
    ) -> CommitResult:
        self._refuse_txn(merge.insert, txn)
        files, gone = from_merge_fragments(fragments)

        def check(listing: Listing) -> None:
            check_scope(merge, _changes(merge, listing), listing.times, gone)

        return self._publish(merge.insert, files, check)

    # -- compaction ---------------------------------------------------------------------------------------

    def begin_rewrite(self, table: TableHandle, replaced: Sequence[DataFile]) -> RewriteTableHandle:
        insert = self.begin_insert(replace(table, version=None))
        return RewriteTableHandle(insert.table, insert.definition, insert.target, tuple(replaced))

    def finish_rewrite(
        self, rewrite: RewriteTableHandle, fragments: Sequence[bytes], *, replace_sidecar: bool
    ) -> CommitResult:
        files, newest = from_fragments(list(fragments)), replace(rewrite.table, version=None)

        def attempt() -> CommitResult:
            listing = self._settled(newest)
            if gone := sorted({f.path for f in rewrite.replaced} - listing.times.keys()):
                raise TrinityError(
                    "TRANSACTION_CONFLICT",
                    f"'{gone[0]}' of table '{newest.full_name}' was removed meanwhile; compact again.",
                )
            self._folder.commit(listing, rewrite.target, files, [f.path for f in rewrite.replaced])
            with contextlib.suppress(TrinityError):
                listing = self._listing(newest)
            return commit_result(listing.version, files)

        return self._committed(newest, rewrite, attempt)

    # -- helpers ------------------------------------------------------------------------------------------

    def _listing(self, table: TableHandle) -> Listing:
        listing = self._folder.list(table.full_name)
        if table.version not in (None, listing.version):
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"Table '{table.full_name}' is a folder of Parquet files, which has no version {table.version}: the "
                f"oldest and only readable one is {listing.version}.",
            )
        return listing

    def _settled(self, table: TableHandle) -> Listing:
        """The folder as it is when no commit is under way."""
        listing = self._listing(table)
        if listing.settled:
            return listing
        self._folder.settle()
        return self._listing(table)

    def _publish(
        self, insert: InsertTableHandle, files: Sequence[DataFile], check: Callable[[Listing], None]
    ) -> CommitResult:
        """Makes staged files part of the folder, in their order, in one commit."""
        newest = replace(insert.table, version=None)

        def attempt() -> CommitResult:
            listing = self._settled(newest)
            check(listing)
            if not files:
                self._folder.discard(insert.target)
                return CommitResult(listing.version)
            return commit_result(self._folder.commit(listing, insert.target, files), files)

        return self._committed(newest, insert, attempt)

    def _committed(
        self, table: TableHandle, write: InsertTableHandle | RewriteTableHandle, attempt: Callable[[], CommitResult]
    ) -> CommitResult:
        """Run a commit's loop; what is staged goes where it is known that no commit came of it."""
        try:
            return commit_loop(table.location, attempt, commit_timeout_s(write.definition.properties))
        except Exception as error:
            if not (isinstance(error, TrinityError) and error.code == "COMMIT_STATE_UNKNOWN"):
                self._folder.discard(write.target)
            raise

    def _refuse_txn(self, insert: InsertTableHandle, txn: TransactionId | None) -> None:
        if txn is not None:
            self._folder.discard(insert.target)
            raise TrinityError(
                "NOT_SUPPORTED",
                f"Table '{insert.table.full_name}' is a folder of Parquet files, which has no place for a txn; use "
                "Delta or Iceberg, or a table that Trinity makes.",
            )


@dataclass(frozen=True)
class FolderInsert(InsertTableHandle):
    """With the files that the folder held, and their marks: no commit says later which have gone."""

    files: frozenset[tuple[str, Mark]]


def _changes(merge: MergeTableHandle, listing: Listing) -> list[FileChange]:
    """The changes of the folder since a statement began; compactions are among them, as they leave no mark."""
    assert isinstance(merge.insert, FolderInsert)
    same = merge.insert.files & listing.marks.items()
    paths = {path for path, _ in same}
    added = [f for f in listing.files if f.path not in paths]
    return [FileChange(listing.version, added, same != merge.insert.files)]


def _target(table: TableHandle, definition: TableDefinition) -> FolderTarget:
    statement = uuid.uuid4().hex
    folder = ObjectStore(table.location).path(f"{STAGING}/{statement}")
    target = write_target(folder, definition, storage_schema(definition), statement=statement)
    return FolderTarget(**vars(replace(target, ending=OWN_ENDING)))


@dataclass(frozen=True)
class _FolderScan(NativeScan):
    """Reads files by name of column, and partition columns from the names of folders, as Spark does."""

    location: str
    storage: pa.Schema

    def rows(self, spark: SparkSession, files: Sequence[DataFile]) -> DataFrame:
        names = map(quoted, self.storage.names)
        schema = spark_schema(self.storage)
        options = {"basePath": Location.of(self.location).for_spark}
        found = read_files(spark, [f.path for f in files], schema, options)
        return found.selectExpr(*names, f"_metadata.file_path AS {NATIVE_FILE}", f"_metadata.row_index AS {NATIVE_ROW}")

    def name(self, file: DataFile) -> str:
        return file_uri(file.path)

    @property
    def as_written(self) -> bool:
        return True
