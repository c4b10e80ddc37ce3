"""Folders of Parquet files that others write: one version, its rows ordered by arrival time, path and position."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from trinity.errors import TrinityError
from trinity.spi import (
    NATIVE_FILE,
    NATIVE_ROW,
    CommitOperation,
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
    storage_schema,
)
from trinity.storage import Attempt, Change, FileChange, Location, ObjectStore, commit_change, on_newest, write_target
from trinity.storage.file_schema import with_partition_values
from trinity.storage.foreign import SingleTable
from trinity.storage.location import file_uri
from trinity.storage.parquet_sink import OWN_ENDING
from trinity.storage.spark_files import read_files, spark_schema
from trinity.syntax.quoting import quoted
from trinity_parquet.arrival import Mark
from trinity_parquet.claims import STAGING
from trinity_parquet.folder import Folder, Listing
from trinity_parquet.sink import FolderTarget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class FolderTable(SingleTable):
    """The metadata of one folder. Its version is the time of the newest file, milliseconds since the epoch."""

    def __init__(self, location: str) -> None:
        self._folder = Folder(location)

    # -- versions -----------------------------------------------------------------------------------------

    def get_splits(self, table: TableHandle) -> SplitSource:
        listing = self._listing(table)
        definition = listing.definition
        storage = with_partition_values(storage_schema(definition), definition.partition_columns)
        scan = _FolderScan(table.location, storage)
        return SplitSource(
            listing.version, listing.version, definition, storage, listing.files, native=scan, commit=listing.id
        )

    def history(self, table: TableHandle) -> list[HistoryEntry]:
        listing = self._listing(replace(table, version=None))
        details = {"added_files": len(listing.files), "added_rows": sum(f.rows for f in listing.files)}
        return [HistoryEntry(listing.version, listing.version, CommitOperation.APPEND, details, listing.id)]

    # -- appends ------------------------------------------------------------------------------------------

    def begin_insert(self, table: TableHandle) -> InsertTableHandle:
        listing = self._folder.list(table)
        if table.version not in (None, listing.version):
            raise TrinityError(
                "TRANSACTION_CONFLICT",
                f"Files of '{table.full_name}' came or went since version {table.version} was read; run the statement "
                "again.",
            )
        pinned, definition = replace(table, version=listing.version), listing.definition
        return FolderInsert(pinned, definition, _target(table, definition), frozenset(listing.marks.items()))

    def recorded_txn(self, table: TableHandle, application: str) -> int | None:
        return None

    def commit(self, change: Change) -> CommitResult:
        """Make staged files part of the folder. They are discarded if the commit is known to have failed."""
        begun = change.rewrite or change.insert
        assert begun is not None  # a folder is not truncated
        try:
            if change.txn is not None:
                raise TrinityError(
                    "NOT_SUPPORTED",
                    f"Table '{change.table.full_name}' is a folder of Parquet files, which has no place for a txn; use "
                    "Delta or Iceberg, or a table that Trinity makes.",
                )
            done = on_newest(
                change.table, begun.definition, lambda newest: commit_change(self._attempt(newest), change)
            )
        except Exception as error:
            if not (isinstance(error, TrinityError) and error.code == "COMMIT_STATE_UNKNOWN"):
                self._folder.discard(begun.target)
            raise
        if not change.files:
            self._folder.discard(begun.target)
        return done

    # -- compaction ---------------------------------------------------------------------------------------

    def begin_rewrite(self, table: TableHandle, replaced: Sequence[DataFile]) -> RewriteTableHandle:
        insert = self.begin_insert(replace(table, version=None))
        return RewriteTableHandle(insert.table, insert.definition, insert.target, tuple(replaced))

    # -- helpers ------------------------------------------------------------------------------------------

    def _listing(self, table: TableHandle) -> Listing:
        listing = self._folder.list(table)
        if table.version not in (None, listing.version):
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"Table '{table.full_name}' is a folder of Parquet files, which has no version {table.version}: the "
                f"oldest and only readable one is {listing.version}.",
            )
        return listing

    def _attempt(self, newest: TableHandle) -> _Attempt:
        """Return an attempt on the folder as it is now, after completing a commit that is under way."""
        listing = self._listing(newest)
        if not listing.settled:
            self._folder.settle()
            listing = self._listing(newest)
        return _Attempt(newest, listing, self._folder)


@dataclass(frozen=True)
class _Attempt(Attempt[Listing]):
    """An attempt at a commit to ``folder``."""

    folder: Folder

    def live(self) -> Collection[DataFile]:
        return self.newest.files

    def changes(self, merge: MergeTableHandle) -> list[FileChange] | None:
        """Return the change since a statement began. Compactions are part of it: a folder does not record them."""
        assert isinstance(merge.insert, FolderInsert)
        same = merge.insert.files & self.newest.marks.items()
        paths = {path for path, _ in same}
        added = [f for f in self.newest.files if f.path not in paths]
        return [FileChange(self.newest.version, added, same != merge.insert.files)]

    def check_files(self, change: Change) -> None:
        """Check nothing: ``put`` checks all staged files at once."""

    def put(self, change: Change) -> int:
        if change.rewrite is not None:
            replaced = [f.path for f in change.rewrite.replaced]
            self.folder.commit(self.newest, change.rewrite.target, change.files, replaced)
            with contextlib.suppress(TrinityError):
                return self.folder.list(self.table).version
        if change.insert is None or not change.files:
            return self.newest.version
        return self.folder.commit(self.newest, change.insert.target, change.files)


@dataclass(frozen=True)
class FolderInsert(InsertTableHandle):
    """An insert with the files that the folder held as it began, since no commit records later removals."""

    files: frozenset[tuple[str, Mark]]


def _target(table: TableHandle, definition: TableDefinition) -> FolderTarget:
    statement = uuid.uuid4().hex
    folder = ObjectStore(table.location).path(f"{STAGING}/{statement}")
    target = write_target(folder, definition, storage_schema(definition), statement=statement)
    return FolderTarget(**vars(replace(target, ending=OWN_ENDING)))


@dataclass(frozen=True)
class _FolderScan(NativeScan):
    """A scan that reads files by column name, and partition columns from folder names, as Spark does."""

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
    def not_local(self) -> str | None:
        return None

    @property
    def files_stay(self) -> bool:
        return False

    @property
    def as_written(self) -> bool:
        return True
