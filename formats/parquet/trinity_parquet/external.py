"""Folders of Parquet files that others write: one commit, ordered by modification time, path and position."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

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
from trinity_parquet.claims import STAGING
from trinity_parquet.folder import Folder, Listing
from trinity_parquet.schema import storage_schema
from trinity_parquet.sink import FolderTarget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["FolderTable"]

_NS_PER_MS: Final = 1_000_000


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
        return SplitSource(listing.version, listing.version, definition, storage, listing.files, native=scan)

    def history(self, table: TableHandle) -> list[HistoryEntry]:
        listing = self._listing(replace(table, version=None))
        details = {"added_files": len(listing.files), "added_rows": sum(f.rows for f in listing.files)}
        return [HistoryEntry(listing.version, listing.version, "append", details)]

    # -- appends ------------------------------------------------------------------------------------------

    def begin_insert(self, table: TableHandle) -> InsertTableHandle:
        _check_on_disk(table)
        listing = self._folder.list(table.full_name)
        if table.version not in (None, listing.version):
            raise TrinityError(
                "TRANSACTION_CONFLICT",
                f"Files of '{table.full_name}' came or went since version {table.version} was read; run the statement "
                "again.",
            )
        pinned, definition = replace(table, version=listing.version), listing.definition((table.schema, table.table))
        return FolderInsert(pinned, definition, _target(table, definition), frozenset(listing.times))

    def finish_insert(
        self, insert: InsertTableHandle, fragments: Sequence[bytes], txn: TransactionId | None = None
    ) -> CommitResult:
        _refuse_txn(insert.table, txn)
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
        _refuse_txn(merge.table, txn)
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
            self._folder.settle()
            listing = self._listing(newest)
            if gone := sorted({f.path for f in rewrite.replaced} - listing.times.keys()):
                raise TrinityError(
                    "TRANSACTION_CONFLICT",
                    f"'{gone[0]}' of table '{newest.full_name}' was removed meanwhile; compact again.",
                )
            # their place in the order is that of the newest file that they replace (K6)
            replaced = [f.path for f in rewrite.replaced]
            stamp = max(listing.marks[path][0] for path in replaced)
            self._folder.commit(listing, rewrite.target, [(f, stamp) for f in files], replaced)
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

    def _publish(
        self, insert: InsertTableHandle, files: Sequence[DataFile], check: Callable[[Listing], None]
    ) -> CommitResult:
        """Makes staged files part of the folder, in their order, in one commit."""
        newest = replace(insert.table, version=None)

        def attempt() -> CommitResult:
            self._folder.settle()
            listing = self._listing(newest)
            check(listing)
            if not files:
                return CommitResult(listing.version)
            version = max(time.time_ns() // _NS_PER_MS, listing.version + 1)
            # times are the order in the commit
            ordered = [(file, version * _NS_PER_MS + number * 1000) for number, file in enumerate(files)]
            self._folder.commit(listing, insert.target, ordered)
            return commit_result(version, files)

        return self._committed(newest, insert, attempt)

    def _committed(
        self, table: TableHandle, write: InsertTableHandle | RewriteTableHandle, attempt: Callable[[], CommitResult]
    ) -> CommitResult:
        """Runs a commit's loop; what is still staged after it goes."""
        try:
            return commit_loop(table.location, attempt, commit_timeout_s(write.definition.properties))
        finally:
            self._folder.discard(write.target)


@dataclass(frozen=True)
class FolderInsert(InsertTableHandle):
    """With the paths of the files that the folder held: no commit says later which have gone."""

    files: frozenset[str]


def _changes(merge: MergeTableHandle, listing: Listing) -> list[FileChange]:
    """The changes of the folder since a statement began; compactions are among them, as they leave no mark."""
    assert isinstance(merge.insert, FolderInsert)
    pinned = merge.table.version or 0
    same = {path for path, time in listing.times.items() if time <= pinned} & merge.insert.files
    added = [f for f in listing.files if f.path not in same]
    return [FileChange(listing.version, added, same != merge.insert.files)]


def _target(table: TableHandle, definition: TableDefinition) -> FolderTarget:
    statement = uuid.uuid4().hex
    folder = ObjectStore(table.location).path(f"{STAGING}/{statement}")
    target = write_target(folder, definition, storage_schema(definition), statement=statement)
    return FolderTarget(**vars(target))


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


def _check_on_disk(table: TableHandle) -> None:
    """Refuses to write into a bucket, where staged files cannot be moved into their folder (NOT_SUPPORTED)."""
    if not Location.of(table.location).on_disk:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Table '{table.full_name}' is a folder of Parquet files in a bucket, '{table.location}', where several "
            "files cannot come at once: Trinity only reads it. Copy it by CREATE TABLE AS SELECT, and write there.",
        )


def _refuse_txn(table: TableHandle, txn: TransactionId | None) -> None:
    if txn is not None:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Table '{table.full_name}' is a folder of Parquet files, which has no place for a txn; use Delta or "
            "Iceberg, or a table that Trinity makes.",
        )
