"""Proof that the suite finds faults of adapters: the in-memory format with a fault in its metadata or its sinks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from trinity.memory import MemoryConnector, MemoryFormat, MemoryMetadata
from trinity.spi import (
    ColumnStats,
    CommitOperation,
    CommitResult,
    Connector,
    ConnectorContext,
    DataFile,
    Format,
    HistoryEntry,
    InsertTableHandle,
    MergeTableHandle,
    PageSink,
    PageSinkProvider,
    RewriteTableHandle,
    SinkId,
    SplitSource,
    TableDefinition,
    TableHandle,
    Tier,
    TransactionId,
    VacuumResult,
    WriteTarget,
)
from trinity.storage import Entry, ObjectStore, ParquetSinkProvider, TableVersion, delete_orphans
from trinity.storage.conflicts import FileChange
from trinity_conformance.mutants.floats import FLOAT_BOUNDS, FloatsHaveBoundsInFooters
from trinity_conformance.mutants.shared import SHARED, SharedFormat
from trinity_conformance.mutants.stored import STORED

_ALL: Final = 2**62


@dataclass(frozen=True)
class AdapterMutant:
    """A format with one fault: the in-memory one, or one whose tables several processes open.

    Attributes:
        fault: what is wrong, and the rule.
        metadata, sinks: the classes of its metadata and its sinks, if it is an in-memory format.
        shared: the format itself, if several processes can open its tables; else None.
    """

    fault: str
    metadata: type[MemoryMetadata] = MemoryMetadata
    sinks: type[PageSinkProvider] = ParquetSinkProvider
    shared: type[SharedFormat] | None = None

    def adapter(self) -> type[Format]:
        """Return the format with the fault."""
        if self.shared is not None:
            return self.shared
        metadata, sinks = self.metadata, self.sinks

        class Faulty(MemoryFormat):
            def create(self, catalog: str, options: Mapping[str, Any], context: ConnectorContext) -> Connector:
                return _Faulty(catalog, metadata, sinks)

        return Faulty


class _Faulty(MemoryConnector):
    def __init__(self, catalog: str, metadata: type[MemoryMetadata], sinks: type[PageSinkProvider]) -> None:
        super().__init__(catalog)
        self.metadata, self.sinks = metadata(catalog, self._folder), sinks()


# -- what is listed -------------------------------------------------------------------------------------


class _Listed(MemoryMetadata):
    """Metadata that change what they list."""

    def get_splits(self, table: TableHandle) -> SplitSource:
        return self.shown(super().get_splits(table))

    def shown(self, splits: SplitSource) -> SplitSource:
        """Return what is listed instead."""
        return replace(splits, files=tuple(map(self.file, splits.files)))

    def file(self, file: DataFile) -> DataFile:
        """Return a file as it is listed."""
        return replace(file, stats={name: self.stats(found) for name, found in file.stats.items()})

    def stats(self, found: ColumnStats) -> ColumnStats:
        """Return statistics as they are listed."""
        return found


class CommitsInReverse(_Listed):
    """Older commits count as later (against K4)."""

    def shown(self, splits: SplitSource) -> SplitSource:
        return replace(splits, files=tuple(replace(f, commit=splits.version - (f.commit or 0)) for f in splits.files))


class CommitNumbersByHalves(_Listed):
    """Two commits share a commit number (against K4)."""

    def file(self, file: DataFile) -> DataFile:
        return replace(file, commit=(file.commit or 0) // 2)


class TombstonesForgotten(_Listed):
    """The tombstones of a compaction are not listed (against U4)."""

    def shown(self, splits: SplitSource) -> SplitSource:
        return replace(splits, sidecar=())


class LastFileOfTenMissing(_Listed):
    """A listing ends after ten files (against L1)."""

    def shown(self, splits: SplitSource) -> SplitSource:
        return replace(splits, files=splits.files[:10])


class TextBoundsCut(_Listed):
    """The largest text of a file is cut after 16 characters, and not rounded up (against L9)."""

    def stats(self, found: ColumnStats) -> ColumnStats:
        return replace(found, max=found.max[:16]) if isinstance(found.max, str) else found


class TextBoundsRoundedByOneByte(_Listed):
    """The largest text is cut after 32 characters, and its last one is taken for ASCII (against L9)."""

    def stats(self, found: ColumnStats) -> ColumnStats:
        if not isinstance(found.max, str) or len(found.max) <= 16:
            return found
        return replace(found, max=found.max[:15] + chr(ord(found.max[15]) % 128 + 1))


class TimeBoundsInMilliseconds(_Listed):
    """The largest time of a file is cut to milliseconds (against L9)."""

    def stats(self, found: ColumnStats) -> ColumnStats:
        if not isinstance(found.max, datetime):
            return found
        return replace(found, max=found.max.replace(microsecond=found.max.microsecond // 1000 * 1000))


class BoundsOfLongsAsFloats(_Listed):
    """Bounds of BIGINT go through floating point (against L9)."""

    def stats(self, found: ColumnStats) -> ColumnStats:
        if not isinstance(found.max, int) or isinstance(found.max, bool):
            return found
        return replace(found, min=int(float(found.min)), max=int(float(found.max)))


class BoundsOfDecimalsAsFloats(_Listed):
    """Bounds of DECIMAL go through floating point (against L9)."""

    def stats(self, found: ColumnStats) -> ColumnStats:
        if not isinstance(found.max, Decimal):
            return found
        return replace(found, min=Decimal(float(found.min)), max=Decimal(float(found.max)))


class BoundsOfBytesCut(_Listed):
    """The largest bytes of a file are cut after 16 of them, and not rounded up (against L9)."""

    def stats(self, found: ColumnStats) -> ColumnStats:
        return replace(found, max=found.max[:16]) if isinstance(found.max, bytes) else found


class NullsUncounted(_Listed):
    """Files are said to have no NULLs (against L9)."""

    def stats(self, found: ColumnStats) -> ColumnStats:
        return replace(found, nulls=0)


class BoundsUnderOldNames(MemoryMetadata):
    """Bounds stand under the names that columns had when the file was written (against L9)."""

    def get_splits(self, table: TableHandle) -> SplitSource:
        files = tuple(f for f in self.load_version(table).files if f.tier is not Tier.SIDECAR)
        return replace(super().get_splits(table), files=files)


class BucketsOfToday(_Listed):
    """Buckets are said to be of the types that the key has now (against K5)."""

    def shown(self, splits: SplitSource) -> SplitSource:
        types = ";".join(splits.definition.column(name).type for name in splits.definition.primary_key)
        files = (replace(f, bucket=replace(f.bucket, types=types)) if f.bucket else f for f in splits.files)
        return replace(splits, files=tuple(files))


class NullPartitionAsText(_Listed):
    """A partition of NULL is listed as Hive's text (against L9)."""

    def file(self, file: DataFile) -> DataFile:
        named = {n: "__HIVE_DEFAULT_PARTITION__" if v is None else v for n, v in file.partition.items()}
        return replace(file, partition=named)


class PartitionsStripped(_Listed):
    """Blanks around a partition's text are lost (against L9)."""

    def file(self, file: DataFile) -> DataFile:
        return replace(file, partition={n: v.strip() if isinstance(v, str) else v for n, v in file.partition.items()})


class NullTextIsNull(_Listed):
    """A partition of the text null is listed as NULL (against L9)."""

    def file(self, file: DataFile) -> DataFile:
        return replace(file, partition={n: None if v == "null" else v for n, v in file.partition.items()})


class EmptyPartitionIsNull(_Listed):
    """A partition of empty text is listed as NULL (against L9)."""

    def file(self, file: DataFile) -> DataFile:
        return replace(file, partition={n: None if v == "" else v for n, v in file.partition.items()})


# -- which version is read ------------------------------------------------------------------------------


class PastIsNewest(MemoryMetadata):
    """Every version reads as the newest one (against L10)."""

    def get_splits(self, table: TableHandle) -> SplitSource:
        return super().get_splits(replace(table, version=None))


class PastByOne(MemoryMetadata):
    """Every earlier version reads as the one after it (against L10)."""

    def read_version(self, table: TableHandle, number: int) -> TableVersion:
        return super().read_version(table, min(number + 1, self.newest_version(table)))


class PastHasPresentColumns(MemoryMetadata):
    """Earlier versions have the columns of today (against L10)."""

    def read_version(self, table: TableHandle, number: int) -> TableVersion:
        newest = super().read_version(table, self.newest_version(table))
        return replace(super().read_version(table, number), definition=newest.definition)


class StaleSnapshot(MemoryMetadata):
    """The first read after each commit is of the version before (against L7)."""

    def __init__(self, catalog: str, folder: str) -> None:
        super().__init__(catalog, folder)
        self._seen: dict[str, int] = {}

    def get_splits(self, table: TableHandle) -> SplitSource:
        newest = self.newest_version(table)
        cached = self._seen.get(table.location, newest)
        self._seen[table.location] = newest
        return super().get_splits(table if table.version is not None else replace(table, version=cached))


class NewestAsText(MemoryMetadata):
    """The newest version is the last one by the text of its number: 9 after 10 (against L10)."""

    def newest_version(self, table: TableHandle) -> int:
        return int(max(map(str, range(super().newest_version(table) + 1))))


class VacuumedVersionsAreTried(MemoryMetadata):
    """A version that vacuum removed is read all the same, until a file is missing (against L10)."""

    def load_version(self, table: TableHandle) -> TableVersion:
        return super().load_version(table) if table.version is None else self.read_version(table, table.version)


class HistoryInSeconds(MemoryMetadata):
    """Times of commits are cut to seconds (against L10)."""

    def history(self, table: TableHandle) -> list[HistoryEntry]:
        return [replace(e, timestamp_ms=e.timestamp_ms // 1000 * 1000) for e in super().history(table)]


class HistoryInAnotherZone(MemoryMetadata):
    """Times of commits are two hours ahead (against L10)."""

    def history(self, table: TableHandle) -> list[HistoryEntry]:
        hours = timedelta(hours=2) // timedelta(milliseconds=1)
        return [replace(e, timestamp_ms=e.timestamp_ms + hours) for e in super().history(table)]


class HistoryWithoutTheNewest(MemoryMetadata):
    """The newest commit is not in the history (against L10)."""

    def history(self, table: TableHandle) -> list[HistoryEntry]:
        return super().history(table)[:-1] or super().history(table)


class AppendsListedAsRewrites(MemoryMetadata):
    """The history says of appends that they left the rows as they were (against C3)."""

    def history(self, table: TableHandle) -> list[HistoryEntry]:
        return [replace(e, same_rows=e.operation == CommitOperation.APPEND) for e in super().history(table)]


# -- what is committed ----------------------------------------------------------------------------------


class _Written(MemoryMetadata):
    """Metadata that change what they write."""

    def write_version(self, table: TableHandle, version: TableVersion) -> None:
        before = self.read_version(table, version.number - 1)
        super().write_version(table, self.instead(version, before))

    def instead(self, version: TableVersion, before: TableVersion) -> TableVersion:
        """Return what is written instead of a version."""
        return version


class CompactionUnderItsOwnNumber(_Written):
    """Compacted files count as written by the compaction (against K6)."""

    def instead(self, version: TableVersion, before: TableVersion) -> TableVersion:
        known = {f.path for f in before.files}
        new = version.number if version.operation == CommitOperation.COMPACT else None
        return replace(version, files=tuple(
            replace(f, commit=new) if new and f.path not in known else f for f in version.files
        ))  # fmt: skip


class CompactionForgetsTransactions(_Written):
    """A compaction forgets the recorded transactions (against L4)."""

    def instead(self, version: TableVersion, before: TableVersion) -> TableVersion:
        return replace(version, txns={}) if version.operation == CommitOperation.COMPACT else version


class VacuumForgetsTransactions(_Written):
    """A vacuum forgets the recorded transactions (against L4)."""

    def instead(self, version: TableVersion, before: TableVersion) -> TableVersion:
        return replace(version, txns={}) if version.operation == CommitOperation.VACUUM else version


class TruncateForgetsTransactions(_Written):
    """TRUNCATE forgets the recorded transactions (against L4)."""

    def instead(self, version: TableVersion, before: TableVersion) -> TableVersion:
        return replace(version, txns={}) if version.operation == CommitOperation.TRUNCATE else version


class TenthForgetsTransactions(_Written):
    """Each tenth version sums up those before it, and forgets the recorded transactions (against L4)."""

    def instead(self, version: TableVersion, before: TableVersion) -> TableVersion:
        return version if version.number % 10 else replace(version, txns={})


class TransactionsOfAllTogether(_Written):
    """The highest transaction of any application is that of all (against L4)."""

    def instead(self, version: TableVersion, before: TableVersion) -> TableVersion:
        return replace(
            version, txns=dict.fromkeys((*version.txns, "other", "app"), max(version.txns.values(), default=0))
        )


class _Recorded(_Written):
    """Metadata that record other transactions."""

    def instead(self, version: TableVersion, before: TableVersion) -> TableVersion:
        return replace(version, txns={a: number for name, n in version.txns.items() for a, number in self.txn(name, n)})

    def txn(self, application: str, number: int) -> list[tuple[str, int]]:
        """Return what is recorded for a transaction."""
        raise NotImplementedError


class ApplicationsWithoutCase(_Recorded):
    """Applications are told apart without regard to case (against L4)."""

    def txn(self, application: str, number: int) -> list[tuple[str, int]]:
        return [(name, number) for name in (application.lower(), application.title(), application)]


class TransactionsInHalfTheBits(_Recorded):
    """The number of a transaction is kept in 32 bits (against L4)."""

    def txn(self, application: str, number: int) -> list[tuple[str, int]]:
        return [(application, (number + 2**31) % 2**32 - 2**31)]


class TransactionsAsFloats(_Recorded):
    """The number of a transaction goes through floating point (against L4)."""

    def txn(self, application: str, number: int) -> list[tuple[str, int]]:
        return [(application, int(float(number)))]


class TransactionsOfAllSchemas(MemoryMetadata):
    """Transactions are recorded by the name of a table, without its schema (against L4)."""

    def __init__(self, catalog: str, folder: str) -> None:
        super().__init__(catalog, folder)
        self._txns: dict[str, Mapping[str, int]] = {}

    def read_version(self, table: TableHandle, number: int) -> TableVersion:
        return replace(super().read_version(table, number), txns=self._txns.get(table.table, {}))

    def write_version(self, table: TableHandle, version: TableVersion) -> None:
        super().write_version(table, version)
        self._txns[table.table] = version.txns


class DroppedTransactionsComeBack(MemoryMetadata):
    """A new table has the transactions of a dropped one of its name (against L4)."""

    def __init__(self, catalog: str, folder: str) -> None:
        super().__init__(catalog, folder)
        self._left: dict[str, Mapping[str, int]] = {}

    def drop_table(self, table: TableHandle) -> None:
        self._left[table.full_name] = self._newest(table).txns
        super().drop_table(table)

    def create_table(self, definition: TableDefinition) -> TableHandle:
        made = super().create_table(definition)
        [first] = self._versions[made.location]
        self._versions[made.location] = [replace(first, txns=self._left.pop(made.full_name, {}))]
        return made


class RenamedTableForgetsTransactions(MemoryMetadata):
    """A table that gets another name forgets its transactions (against L4)."""

    def rename_table(self, table: TableHandle, schema: str, name: str) -> TableHandle:
        renamed = super().rename_table(table, schema, name)
        versions = self._versions[renamed.location]
        versions[-1] = replace(versions[-1], txns={})
        return renamed


class AppendUndoesDeletes(_Written):
    """The next append forgets which rows were deleted by position (against R1)."""

    def instead(self, version: TableVersion, before: TableVersion) -> TableVersion:
        if version.operation != CommitOperation.APPEND:
            return version
        return replace(version, files=tuple(replace(f, deletes=None) for f in version.files))


class TruncateKeepsTombstones(_Written):
    """TRUNCATE leaves the tombstones (against M12)."""

    def instead(self, version: TableVersion, before: TableVersion) -> TableVersion:
        if version.operation != CommitOperation.TRUNCATE:
            return version
        return replace(version, files=(*version.files, *(f for f in before.files if f.tier is Tier.SIDECAR)))


class RestoreKeepsLaterFiles(_Written):
    """A restore leaves the files that came later (against L11)."""

    def instead(self, version: TableVersion, before: TableVersion) -> TableVersion:
        return replace(version, files=before.files) if version.operation == CommitOperation.RESTORE else version


class RemovedStaysRemoved(_Written):
    """A file that was removed once is in no later version, a restored one too (against L11)."""

    def instead(self, version: TableVersion, before: TableVersion) -> TableVersion:
        live = {f.path for f in before.files}
        kept = tuple(f for f in version.files if f.path in live)
        return replace(version, files=kept) if version.operation == CommitOperation.RESTORE else version


class RestoredFilesAreNew(_Written):
    """Files that a restore brings back count as written by it (against L11)."""

    def instead(self, version: TableVersion, before: TableVersion) -> TableVersion:
        live, new = {f.path for f in before.files}, version.number
        files = tuple(f if f.path in live else replace(f, commit=new) for f in version.files)
        return replace(version, files=files) if version.operation == CommitOperation.RESTORE else version


class RestoreForgetsTransactions(_Written):
    """A restore forgets the transactions that were recorded since (against L11)."""

    def instead(self, version: TableVersion, before: TableVersion) -> TableVersion:
        return replace(version, txns={}) if version.operation == CommitOperation.RESTORE else version


class _InTwoSteps(MemoryMetadata):
    """Metadata that remove files in one version, and add others in the next."""

    operation: CommitOperation

    def write_version(self, table: TableHandle, version: TableVersion) -> None:
        if version.operation != self.operation:
            super().write_version(table, version)
            return
        before = {f.path for f in self.read_version(table, version.number - 1).files}
        kept = tuple(f for f in version.files if f.path in before)
        super().write_version(table, replace(version, files=kept))
        super().write_version(table, replace(version, number=version.number + 1, timestamp_ms=version.timestamp_ms + 1))

    def finish_rewrite(
        self, rewrite: RewriteTableHandle, fragments: Sequence[bytes], *, replace_sidecar: bool
    ) -> CommitResult:
        done = super().finish_rewrite(rewrite, fragments, replace_sidecar=replace_sidecar)
        return replace(done, version=self.newest_version(rewrite.table))

    def finish_merge(
        self, merge: MergeTableHandle, fragments: Sequence[bytes], txn: TransactionId | None = None
    ) -> CommitResult:
        return replace(super().finish_merge(merge, fragments, txn), version=self.newest_version(merge.table))


class CompactionInTwoSteps(_InTwoSteps):
    """A compaction removes files in one commit, and adds the new ones in the next (against L6)."""

    operation = CommitOperation.COMPACT


class MergeInTwoSteps(_InTwoSteps):
    """A row change removes files in one commit, and adds the new ones in the next (against L6)."""

    operation = CommitOperation.MERGE


class LastWriterWins(MemoryMetadata):
    """A commit that lost the race overwrites the other one (against L7)."""

    def write_version(self, table: TableHandle, version: TableVersion) -> None:
        del self._of(table)[version.number :]
        super().write_version(table, version)

    def load_version(self, table: TableHandle) -> TableVersion:
        return super().load_version(table)

    def commit(self, change: Any) -> CommitResult:
        pinned, newest = change.table.version, self._newest(change.table)
        if change.operation == CommitOperation.APPEND and pinned is not None and pinned < newest.number:
            del self._of(change.table)[pinned + 1 :]
        return super().commit(change)


class ConflictsOverlooked(MemoryMetadata):
    """A row change overlooks what was committed since it began (against L7)."""

    def changes_since(self, pinned: TableHandle, newest: TableVersion) -> list[FileChange] | None:
        return []


class ConstraintsOverlooked(MemoryMetadata):
    """Rows are committed that break a constraint which was added meanwhile (against M6)."""

    def finish_insert(
        self, insert: InsertTableHandle, fragments: Sequence[bytes], txn: TransactionId | None = None
    ) -> CommitResult:
        now = self.get_table_definition(replace(insert.table, version=None))
        return super().finish_insert(replace(insert, definition=now), fragments, txn)


class ChecksForgotten(MemoryMetadata):
    """A new table forgets its CHECK constraints (against L8)."""

    def create_table(self, definition: TableDefinition) -> TableHandle:
        return super().create_table(replace(definition, checks=()))


class SchemasGoWithTables(MemoryMetadata):
    """A schema that is dropped takes its tables with it (against L8)."""

    def drop_schema(self, schema: str) -> None:
        for name in self.list_tables(schema):
            if (table := self.get_table(schema, name)) is not None:
                self.drop_table(table)
        super().drop_schema(schema)


class SortOrderForgotten(MemoryMetadata):
    """A new table forgets one of its properties (against U8)."""

    def create_table(self, definition: TableDefinition) -> TableHandle:
        kept = {k: v for k, v in definition.properties.items() if not k.endswith("sort-order")}
        return super().create_table(replace(definition, properties=kept))


class _Declared(_Written):
    """Metadata that store another definition than they are given."""

    def instead(self, version: TableVersion, before: TableVersion) -> TableVersion:
        return replace(version, definition=self.definition(version.definition, before.definition))

    def create_table(self, definition: TableDefinition) -> TableHandle:
        return super().create_table(self.definition(definition, definition))

    def definition(self, given: TableDefinition, before: TableDefinition) -> TableDefinition:
        """Return the definition that is stored."""
        raise NotImplementedError


class CommentsForgotten(_Declared):
    """Comments of columns are not stored (against L3)."""

    def definition(self, given: TableDefinition, before: TableDefinition) -> TableDefinition:
        return replace(given, columns=tuple(replace(column, comment=None) for column in given.columns))


class DefaultsForgotten(_Declared):
    """DEFAULTs of columns are not stored (against L3)."""

    def definition(self, given: TableDefinition, before: TableDefinition) -> TableDefinition:
        return replace(given, columns=tuple(replace(column, default=None) for column in given.columns))


class PropertiesOfCreation(_Declared):
    """Properties stay those of the new table (against L3)."""

    def definition(self, given: TableDefinition, before: TableDefinition) -> TableDefinition:
        return replace(given, properties=before.properties)


class PropertiesNeverGo(_Declared):
    """A property that is taken away stays (against L3)."""

    def definition(self, given: TableDefinition, before: TableDefinition) -> TableDefinition:
        return replace(given, properties={**before.properties, **given.properties})


# -- transactions and results ---------------------------------------------------------------------------


class _Inserted(MemoryMetadata):
    """Metadata that change an append."""

    def finish_insert(
        self, insert: InsertTableHandle, fragments: Sequence[bytes], txn: TransactionId | None = None
    ) -> CommitResult:
        return self.inserted(insert, list(fragments), txn)

    def inserted(self, insert: InsertTableHandle, fragments: list[bytes], txn: TransactionId | None) -> CommitResult:
        """Commit otherwise."""
        return super().finish_insert(insert, fragments, txn)


class TransactionsIgnored(_Inserted):
    """Transactions are not recorded (against L4)."""

    def inserted(self, insert: InsertTableHandle, fragments: list[bytes], txn: TransactionId | None) -> CommitResult:
        return super().inserted(insert, fragments, None)


class LowerTransactionsPass(_Inserted):
    """Only the very transaction that was recorded last is skipped, and no lower one (against L4)."""

    def recorded_txn(self, table: TableHandle, application: str) -> int | None:
        return None

    def inserted(self, insert: InsertTableHandle, fragments: list[bytes], txn: TransactionId | None) -> CommitResult:
        recorded = None if txn is None else MemoryMetadata.recorded_txn(self, insert.table, txn[0])
        lower = txn is not None and recorded is not None and txn[1] < recorded
        return super().inserted(insert, fragments, None if lower else txn)


class TransactionInASecondCommit(_Inserted):
    """A transaction is recorded in a commit of its own, after the rows (against L4)."""

    def inserted(self, insert: InsertTableHandle, fragments: list[bytes], txn: TransactionId | None) -> CommitResult:
        recorded = None if txn is None else self.recorded_txn(insert.table, txn[0])
        if txn is None or (recorded is not None and txn[1] <= recorded):
            return super().inserted(insert, fragments, txn)
        done = super().inserted(insert, fragments, None)
        return replace(done, version=super().inserted(insert, [], txn).version)


class NothingIsAVersion(_Inserted):
    """An append without files makes a version (against L4)."""

    def inserted(self, insert: InsertTableHandle, fragments: list[bytes], txn: TransactionId | None) -> CommitResult:
        done = super().inserted(insert, fragments, txn)
        return done if fragments or txn else _with_nothing(self, insert.table, CommitOperation.APPEND)


class TruncatingNothingIsAVersion(MemoryMetadata):
    """TRUNCATE of an empty table makes a version (against M12)."""

    def truncate(self, table: TableHandle, txn: TransactionId | None = None) -> CommitResult:
        if self._newest(table).files:
            return super().truncate(table, txn)
        return _with_nothing(self, table, CommitOperation.TRUNCATE)


class RestoringNothingIsAVersion(MemoryMetadata):
    """A restore of what is there makes a version (against L11)."""

    def restore(
        self, table: TableHandle, change: Callable[[TableDefinition, TableDefinition], TableDefinition]
    ) -> CommitResult:
        done = super().restore(table, change)
        return _with_nothing(self, table, CommitOperation.RESTORE) if done.skipped else done


def _with_nothing(metadata: MemoryMetadata, table: TableHandle, operation: CommitOperation) -> CommitResult:
    """Commit a version that is as the newest one."""
    next_version = metadata.load_version(replace(table, version=None)).next(operation)
    metadata.write_version(table, next_version)
    return CommitResult(next_version.number)


class NothingForgetsTransactions(_Inserted):
    """An append without files does not record its transaction (against L4)."""

    def inserted(self, insert: InsertTableHandle, fragments: list[bytes], txn: TransactionId | None) -> CommitResult:
        return super().inserted(insert, fragments, txn if fragments else None)


class OrphansCounted(_Inserted):
    """All files of the statement in the folder are committed, those of failed tasks too (against L6)."""

    def inserted(self, insert: InsertTableHandle, fragments: list[bytes], txn: TransactionId | None) -> CommitResult:
        known = {json.loads(fragment)["path"] for fragment in fragments}
        store, first = ObjectStore(insert.target.folder), json.loads(fragments[0]) if fragments else {}
        for name, about in store.walk(".parquet", hidden=""):
            if insert.target.statement in name and store.path(name) not in known and first:
                fragments = [*fragments, json.dumps({**first, "path": store.path(name), "size": about.size}).encode()]
        return super().inserted(insert, fragments, txn)


class _ChangedResult(MemoryMetadata):
    """Metadata whose commits return another result."""

    def commit(self, change: Any) -> CommitResult:
        return self.result(super().commit(change))

    def result(self, done: CommitResult) -> CommitResult:
        """Return the result that callers are given."""
        return done


class RowsAreFiles(_ChangedResult):
    """The result counts files for rows (against L4)."""

    def result(self, done: CommitResult) -> CommitResult:
        return replace(done, rows=done.files)


class BytesUntold(_ChangedResult):
    """The result tells no bytes (against L4)."""

    def result(self, done: CommitResult) -> CommitResult:
        return replace(done, bytes=0)


class VersionBefore(_ChangedResult):
    """The result tells the version before the commit (against L10)."""

    def result(self, done: CommitResult) -> CommitResult:
        return replace(done, version=max(0, done.version - 1))


class SkippedUntold(_ChangedResult):
    """A retry is not reported as skipped (against L4)."""

    def result(self, done: CommitResult) -> CommitResult:
        return replace(done, skipped=False)

    def recorded_txn(self, table: TableHandle, application: str) -> int | None:
        return None


# -- compaction and vacuum ------------------------------------------------------------------------------


class ResolveDeletesNothing(MemoryMetadata):
    """A resolve forgets the positions of deleted rows (against R1)."""

    def finish_resolve(
        self, rewrite: RewriteTableHandle, fragments: Sequence[bytes], deletes: Sequence[bytes]
    ) -> CommitResult:
        return super().finish_resolve(rewrite, fragments, [])


class VacuumTakesWhatThePastNeeds(MemoryMetadata):
    """A vacuum removes files that a version within the retention needs (against L10)."""

    def delete_unneeded(self, table: TableHandle, older_than_ms: int) -> list[Entry]:
        needed = {path for file in self._newest(table).files for path in file.needs}
        return delete_orphans(ObjectStore(table.location), needed, _ALL)


class VacuumTakesTombstones(MemoryMetadata):
    """A vacuum removes the files with the tombstones (against U4)."""

    def delete_unneeded(self, table: TableHandle, older_than_ms: int) -> list[Entry]:
        files = [f for v in self._readable(table) for f in v.files if f.tier is not Tier.SIDECAR]
        return delete_orphans(ObjectStore(table.location), {p for f in files for p in f.needs}, older_than_ms)


class VacuumWithoutRetention(MemoryMetadata):
    """A vacuum takes all old versions, whatever is to be kept (against L10)."""

    def vacuum(self, table: TableHandle, older_than_ms: int) -> VacuumResult:
        return super().vacuum(table, _ALL)


class VacuumCountsFromCreation(MemoryMetadata):
    """A version is old by when it was made, and not by when the next one replaced it (against L10)."""

    def vacuum(self, table: TableHandle, older_than_ms: int) -> VacuumResult:
        younger = [entry.timestamp_ms for entry in self.history(table) if entry.timestamp_ms >= older_than_ms]
        return super().vacuum(table, min(younger, default=older_than_ms))


class VacuumLeavesOrphans(MemoryMetadata):
    """A vacuum leaves files that no version needs (against L6)."""

    def delete_unneeded(self, table: TableHandle, older_than_ms: int) -> list[Entry]:
        return []


# -- sinks ----------------------------------------------------------------------------------------------


class _OtherPages(PageSink):
    """A sink that changes its pages."""

    def __init__(self, inner: PageSink, change: Callable[[pa.RecordBatch], pa.RecordBatch]) -> None:
        self._inner, self._change = inner, change

    def append_page(self, page: pa.RecordBatch) -> None:
        self._inner.append_page(self._change(page))

    def finish(self) -> list[bytes]:
        return self._inner.finish()

    def abort(self) -> None:
        self._inner.abort()


class _Values(ParquetSinkProvider):
    """Sinks that change the values of a kind of columns."""

    def create_page_sink(self, target: WriteTarget, sink: SinkId) -> PageSink:
        return _OtherPages(super().create_page_sink(target, sink), self.page)

    def page(self, page: pa.RecordBatch) -> pa.RecordBatch:
        """Return the page that is written."""
        columns = [self.column(array) if self.concerns(array.type) else array for array in page.columns]
        return pa.RecordBatch.from_arrays(columns, schema=page.schema)

    def concerns(self, kind: pa.DataType) -> bool:
        """Return whether columns of a type are changed."""
        return False

    def column(self, array: pa.Array) -> pa.Array:
        """Return a changed column."""
        return array


class OrderAsText(ParquetSinkProvider):
    """Files of a commit sort by the text of their task's number: 10 before 2 (against K4)."""

    def create_page_sink(self, target: WriteTarget, sink: SinkId) -> PageSink:
        by_text = sorted(range(1000), key=str)
        return super().create_page_sink(target, replace(sink, order=by_text.index(sink.order)))


class OrderInReverse(ParquetSinkProvider):
    """Files of a commit sort against their tasks (against K4)."""

    def create_page_sink(self, target: WriteTarget, sink: SinkId) -> PageSink:
        return super().create_page_sink(target, replace(sink, order=999_999 - sink.order))


class LastRowLost(_Values):
    """The last row of a page is lost if the page has more than eight (against L1)."""

    def page(self, page: pa.RecordBatch) -> pa.RecordBatch:
        return page.slice(0, page.num_rows - 1) if page.num_rows > 8 else page


class EmptyTextIsNull(_Values):
    """Empty text is stored as NULL (against L1)."""

    def concerns(self, kind: pa.DataType) -> bool:
        return bool(pa.types.is_string(kind))

    def column(self, array: pa.Array) -> pa.Array:
        return pc.if_else(pc.equal(array, ""), pa.scalar(None, array.type), array)


class TimesInMilliseconds(_Values):
    """Times are stored in milliseconds (against L1)."""

    def concerns(self, kind: pa.DataType) -> bool:
        return bool(pa.types.is_timestamp(kind))

    def column(self, array: pa.Array) -> pa.Array:
        return pc.floor_temporal(array, unit="millisecond").cast(array.type)


class TimesShifted(_Values):
    """Times without a zone are stored an hour later (against L1)."""

    def concerns(self, kind: pa.DataType) -> bool:
        return bool(pa.types.is_timestamp(kind) and kind.tz is None)

    def column(self, array: pa.Array) -> pa.Array:
        return pc.add(array, pa.scalar(timedelta(hours=1), pa.duration("us"))).cast(array.type)


_METADATA: Final[tuple[type[MemoryMetadata], ...]] = (
    CommitsInReverse, CommitNumbersByHalves, TombstonesForgotten, LastFileOfTenMissing, TextBoundsCut,
    TextBoundsRoundedByOneByte, TimeBoundsInMilliseconds, BoundsOfLongsAsFloats, BoundsOfDecimalsAsFloats,
    BoundsOfBytesCut, *FLOAT_BOUNDS, NullsUncounted, BoundsUnderOldNames, BucketsOfToday,
    NullPartitionAsText, PartitionsStripped, NullTextIsNull, EmptyPartitionIsNull,
    PastIsNewest, PastByOne, PastHasPresentColumns,
    StaleSnapshot, NewestAsText, VacuumedVersionsAreTried, HistoryInSeconds, HistoryInAnotherZone,
    HistoryWithoutTheNewest, AppendsListedAsRewrites,
    CompactionUnderItsOwnNumber, CompactionForgetsTransactions, VacuumForgetsTransactions, TruncateForgetsTransactions,
    TenthForgetsTransactions, TransactionsOfAllTogether, ApplicationsWithoutCase, TransactionsInHalfTheBits,
    TransactionsAsFloats, TransactionsOfAllSchemas, DroppedTransactionsComeBack, RenamedTableForgetsTransactions,
    AppendUndoesDeletes, TruncateKeepsTombstones, RestoreKeepsLaterFiles, RemovedStaysRemoved, RestoredFilesAreNew,
    RestoreForgetsTransactions,
    CompactionInTwoSteps, MergeInTwoSteps, LastWriterWins, ConflictsOverlooked, ConstraintsOverlooked, ChecksForgotten,
    SchemasGoWithTables, SortOrderForgotten, CommentsForgotten, DefaultsForgotten, PropertiesOfCreation,
    PropertiesNeverGo,
    TransactionsIgnored, LowerTransactionsPass, TransactionInASecondCommit, OrphansCounted,
    NothingIsAVersion, NothingForgetsTransactions, TruncatingNothingIsAVersion, RestoringNothingIsAVersion,
    RowsAreFiles, BytesUntold, VersionBefore, SkippedUntold, ResolveDeletesNothing,
    VacuumTakesWhatThePastNeeds, VacuumTakesTombstones, VacuumWithoutRetention,
    VacuumCountsFromCreation, VacuumLeavesOrphans,
)  # fmt: skip
_SINKS: Final[tuple[type[ParquetSinkProvider], ...]] = (
    OrderAsText, OrderInReverse, LastRowLost, EmptyTextIsNull, TimesInMilliseconds, TimesShifted,
    FloatsHaveBoundsInFooters,
)  # fmt: skip

ADAPTER_MUTANTS: Final[Mapping[str, AdapterMutant]] = {
    **{c.__name__: AdapterMutant(c.__doc__ or "", metadata=c) for c in (*_METADATA, *STORED)},
    **{c.__name__: AdapterMutant(c.__doc__ or "", sinks=c) for c in _SINKS},
    **{c.__name__: AdapterMutant(c.__doc__ or "", shared=c) for c in SHARED},
}
"""Name -> an adapter with one fault."""
