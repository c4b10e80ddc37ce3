"""The contents of a folder of Parquet files: files in their order, columns, and partitions named by folders."""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from trinity.clock import now_ms
from trinity.errors import TrinityError
from trinity.spi import Column, ColumnStats, DataFile, TableDefinition, TableHandle, WriteTarget, arrow_type, type_text
from trinity.storage import CommitRaced, ObjectStore, after_commit
from trinity.storage.errors import system_trouble
from trinity.storage.foreign import foreign_definition
from trinity.storage.old_calendar import statistics_of_others
from trinity.storage.parquet_files import parquet_footer
from trinity_parquet.arrival import NS_PER_MS, Mark, file_name, walk
from trinity_parquet.claims import AT_ONCE, STAGING, Claim, Claims, Stage

_NUMBERED: Final = 64
"""How many states of a folder a process remembers, to number each differently."""
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_INTEGER: Final = re.compile(r"[+-]?\d+")
_DECIMAL: Final = re.compile(r"[+-]?\d+\.\d*")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True)
class Listing:
    """The contents of a folder at one moment.

    Attributes:
        name: schema and name of the table.
        files: in arrival order, all of one commit.
        times: path -> arrival time of the file, nanoseconds since the epoch.
        columns: the columns of the files, then the partition columns.
        partition_by: names of the partition columns, which the names of subfolders give.
        version: the newest file's time, milliseconds since the epoch; or a higher number, where this process has seen
            other files under that one, since ``cp -p`` adds files that are older than the present ones.
        marks: path -> mark of the file.
        claim: number of the newest commit of a Trinity writer.
        settled: whether that commit is complete.
    """

    name: tuple[str, str]
    files: tuple[DataFile, ...]
    times: Mapping[str, int]
    columns: tuple[Column, ...]
    partition_by: tuple[str, ...]
    version: int
    marks: Mapping[str, Mark]
    claim: int
    settled: bool

    @cached_property
    def id(self) -> str:
        """The hash of the folder's contents."""
        return hashlib.sha256(repr(sorted(self.marks.items())).encode()).hexdigest()

    @cached_property
    def definition(self) -> TableDefinition:
        """The table's definition."""
        return foreign_definition(self.name, self.columns, self.partition_by, {})

    @property
    def txns(self) -> Mapping[str, int]:
        """Nothing: a folder has no place for transactions."""
        return {}


@dataclass(frozen=True)
class _Found:
    """A file with the facts of its footer."""

    path: str
    mark: Mark
    rows: int
    schema: pa.Schema
    stats: Mapping[str, ColumnStats]
    folders: Mapping[str, str | None]

    @property
    def arrived_ns(self) -> int:
        return self.mark[0]


class _Gone(Exception):
    """The error for a file that was listed and no longer exists."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class Folder:
    """A folder of Parquet files. It remembers the footers that it has read."""

    def __init__(self, location: str) -> None:
        self._store = ObjectStore(location)
        self._known: dict[tuple[str, Mark], _Found] = {}
        self._numbered: OrderedDict[int, Mapping[str, Mark]] = OrderedDict()
        self._claims = Claims(self._store)

    def list(self, table: TableHandle) -> Listing:
        """List the contents of the folder of a table.

        Raises:
            TrinityError: TABLE_NOT_FOUND when there is no file; BAD_DATA for a file that is no Parquet file;
                TYPE_MISMATCH where files disagree about a column; NOT_SUPPORTED for a type that Trinity does not have.
        """
        name = table.full_name
        found, claim, stage = self._settled_files(name)
        if not found:
            raise TrinityError("TABLE_NOT_FOUND", f"Table '{name}': folder '{self._store.root}' holds no Parquet file.")
        kinds = _partition_types(name, found)
        partition = [Column(column, _kind_name(kind)) for column, kind in kinds.items()]
        taken = {c.lower() for c in kinds}
        columns = [c for c in _columns(name, found) if c.name.lower() not in taken]
        marks = {f.path: f.mark for f in found}
        version = self._number(found[-1].arrived_ns // NS_PER_MS, marks)
        return Listing(
            (table.schema, table.table),
            tuple(_data_file(f, kinds, version) for f in found),
            {f.path: f.arrived_ns for f in found},
            (*columns, *partition),
            tuple(kinds),
            version,
            marks,
            claim.number,
            stage is Stage.DONE,
        )

    def commit(
        self,
        listing: Listing,
        target: WriteTarget,
        files: Sequence[DataFile],
        replaced: Sequence[str] = (),
    ) -> int:
        """Make staged files part of the folder, and remove others: all or nothing.

        Files that replace others get the position of the newest replaced one in the order (K6).

        Returns:
            the time of the commit, milliseconds since the epoch: now, or later than every file of the folder.

        Raises:
            CommitRaced: another writer's commit came between.
            TrinityError: TRANSACTION_CONFLICT for a staged file that is gone; NOT_SUPPORTED for one that is too large
                to move.
        """
        if not listing.settled:
            raise CommitRaced(f"another writer is adding files to '{self._store.root}'")
        at_ms = max(self._staged_ms(target, files), listing.version + 1)
        arrived_ns = max((listing.times[path] for path in replaced), default=None)
        moves, staged, number = {}, ObjectStore(target.folder), listing.claim + 1
        for count, file in enumerate(files):
            at_ns = at_ms * NS_PER_MS + count * 1000 if arrived_ns is None else arrived_ns
            if self._store.on_disk:
                self._store.set_modified(file.path, at_ns)
            if target.sync:
                self._store.sync(file.path)
            partition, slash, _ = staged.relative(file.path).rpartition("/")
            name = file_name(self._store, number, target.statement, count, at_ns)
            moves[self._store.relative(file.path)] = f"{partition}{slash}{name}"
        gone = {self._store.relative(path): listing.marks[path] for path in replaced}
        claim = Claim(number, target.statement, moves, gone)
        self._claims.put(claim)
        what = f"Commit {claim.number} of '{self._store.root}' is left for the next reader or writer to complete"
        after_commit(what, lambda: self._claims.complete(claim))
        return at_ms

    def settle(self) -> None:
        """Complete the commit of a crashed writer."""
        self._claims.settle()

    def discard(self, target: WriteTarget) -> None:
        """Remove the staged files of a target, unless a commit needs them."""
        self._claims.discard(target.statement)

    def _staged_ms(self, target: WriteTarget, files: Sequence[DataFile]) -> int:
        """Check the staged files, and return the current time in milliseconds since the epoch.

        In a bucket this is the time of the last staged file: the store's clock decides.
        """
        there = {entry.path: entry for entry in self._store.list(f"{STAGING}/{target.statement}")}
        for name in (self._store.relative(file.path) for file in files):
            if name not in there:
                raise TrinityError(
                    "TRANSACTION_CONFLICT",
                    f"'{self._store.path(name)}', written by this statement, was removed meanwhile. Run the statement "
                    "again.",
                )
            if (longest := self._store.longest_move) is not None and there[name].size > longest:
                raise TrinityError(
                    "NOT_SUPPORTED",
                    f"'{self._store.path(name)}' has {there[name].size} bytes, and this store copies files of at most "
                    f"{longest} into the folder. Write fewer rows at once.",
                )
        if self._store.on_disk:
            return now_ms()
        return max((entry.modified_ms for entry in there.values()), default=0)

    def _number(self, modified_ms: int, marks: Mapping[str, Mark]) -> int:
        while self._numbered.setdefault(modified_ms, marks) != marks:
            modified_ms += 1
        while len(self._numbered) > _NUMBERED:
            self._numbered.popitem(last=False)
        return modified_ms

    def _settled_files(self, name: str) -> tuple[Sequence[_Found], Claim, Stage]:
        """Return the files in arrival order, all or none of each commit, and the newest claim with its stage."""
        claims, missed = self._claims, set[str]()
        claim = claims.known()
        while True:
            if claims.stage(claim) is Stage.MOVING:
                # a reader without permission to write sees the folder as it was before the commit
                with contextlib.suppress(OSError, TrinityError):
                    claims.complete(claim, removing=False)
            stage, replaced = claims.stage(claim), claims.replaced
            try:
                found = sorted(self._files(name, claim, stage), key=lambda f: (f.arrived_ns, f.path))
            except _Gone as gone:  # a compaction removed it: the next listing lacks it
                if gone.path in missed:
                    raise TrinityError("BAD_DATA", f"'{gone.path}' of table '{name}' cannot be read.") from gone
                missed.add(gone.path)
                claim = claims.newest()
                continue
            newest = claims.newest()
            if newest.number == claim.number and claims.stage(newest) is stage and claims.replaced == replaced:
                return found, claim, stage
            claim = newest

    def _files(self, name: str, claim: Claim, stage: Stage) -> Iterable[_Found]:
        before = self._known
        keys = [key for key in walk(self._store) if not self._claims.hides(claim, stage, *key)]
        unread = [key for key in keys if key not in before]
        read = dict(zip(unread, self._read_all(name, unread), strict=True))
        self._known = {key: before.get(key) or read[key] for key in keys}
        return self._known.values()

    def _read_all(self, name: str, keys: Iterable[tuple[str, Mark]]) -> Iterable[_Found]:
        """Return files with their footers; in a bucket, where each is a request or two, in parallel."""
        if self._store.on_disk:
            return [self._read(name, *key) for key in keys]
        with ThreadPoolExecutor(AT_ONCE) as readers:
            return list(readers.map(lambda key: self._read(name, *key), keys))

    def _read(self, name: str, below: str, mark: Mark) -> _Found:
        path = self._store.path(below)
        try:
            footer = parquet_footer(path)
            schema = _instants(footer, footer.schema.to_arrow_schema().remove_metadata())
        except (pa.ArrowException, OSError, MemoryError) as error:
            if not self._store.exists(below):
                raise _Gone(path) from error
            damaged = TrinityError("BAD_DATA", f"'{path}' of table '{name}' is no Parquet file: {error}.")
            raise system_trouble(error, path) or damaged from error
        _check_names(name, path, "has columns", schema.names)
        plain = [f.name for f in schema if not (pa.types.is_nested(f.type) or pa.types.is_floating(f.type))]
        parts = [_hive(part) for part in below.split("/")[:-1] if "=" in part]
        _check_names(name, path, "lies in folders", [column for column, _ in parts])
        stats = statistics_of_others(footer, tuple(plain))
        return _Found(path, mark, footer.num_rows, schema, stats, dict(parts))


def _check_names(table: str, path: str, what: str, names: Sequence[str]) -> None:
    """Refuse names of columns that differ in case alone, or not at all. Raises DUPLICATE_COLUMN_NAME."""
    lower = [name.lower() for name in names]
    if twice := [name for name in names if lower.count(name.lower()) > 1]:
        raise TrinityError(
            "DUPLICATE_COLUMN_NAME",
            f"'{path}' of table '{table}' {what} named '{twice[0]}' and '{twice[1]}', which is one name to Trinity; "
            "write it with other names.",
        )


def _instants(footer: pq.FileMetaData, schema: pa.Schema) -> pa.Schema:
    """Return a schema with INT96 columns as instants, as Spark reads them; Arrow has them in nanoseconds, zoneless."""
    columns = (footer.schema.column(i) for i in range(footer.num_columns))
    int96_paths = {column.path for column in columns if column.physical_type == "INT96"}
    return pa.schema([f.with_type(arrow_type("timestamp")) if f.name in int96_paths else f for f in schema])


def foreign_format(store: ObjectStore) -> str | None:
    """Return the table format that manages a folder, or None."""
    if store.is_folder("_delta_log"):
        return "delta"
    return (
        "iceberg"
        if any(name.endswith((".metadata.json", ".metadata.json.gz")) for name in store.names("metadata"))
        else None
    )


def _hive(part: str) -> tuple[str, str | None]:
    name, _, value = part.partition("=")
    return unquote(name), None if value == _NULL else unquote(value)


def _data_file(found: _Found, kinds: Mapping[str, type], version: int) -> DataFile:
    partition = {c: None if found.folders[c] is None else _typed(found.folders[c] or "", k) for c, k in kinds.items()}
    stats = {c: s for c, s in found.stats.items() if c not in kinds}
    return DataFile(found.path, found.mark[1], found.rows, commit=version, partition=partition, stats=stats)


# -- partitions -------------------------------------------------------------------------------------------


def _partition_types(name: str, found: Sequence[_Found]) -> dict[str, type]:
    """Return partition column -> int, float, dt.date or str: the narrowest type of all values, as Spark infers it."""
    names = tuple(found[0].folders)
    for file in found:
        if tuple(file.folders) != names:
            raise TrinityError(
                "BAD_DATA",
                f"Table '{name}' has files in partitions ({', '.join(names)}), and '{file.path}' in "
                f"({', '.join(file.folders)}); a folder has one partitioning.",
            )
    return {c: _guess([v for f in found if (v := f.folders[c]) is not None]) for c in names}


def _guess(values: Sequence[str]) -> type:
    for kind, pattern in ((int, _INTEGER), (float, _DECIMAL), (dt.date, _DATE)):
        if values and all(pattern.fullmatch(v) or (kind is float and _INTEGER.fullmatch(v)) for v in values):
            return kind if all(_typed(v, kind) is not None for v in values) else str
    return str


def _typed(text: str, kind: type) -> Any:
    try:
        if kind is dt.date:
            return dt.date.fromisoformat(text)
        if kind is int and not -(2**63) <= int(text) < 2**63:
            return None
        return kind(text)
    except ValueError:
        return None


def _kind_name(kind: type) -> str:
    return {int: "bigint", float: "double", dt.date: "date"}.get(kind, "string")


# -- columns ----------------------------------------------------------------------------------------------


def _columns(name: str, found: Sequence[_Found]) -> list[Column]:
    """Return the columns of all files, in order of first appearance, each of a type that holds every file's values."""
    fields: dict[str, pa.Field] = {}
    for file in found:
        for field in file.schema:
            fields[field.name.lower()] = _merged(name, file, fields.get(field.name.lower()), field)
    return [Column(field.name, type_text(field.type)) for field in fields.values()]


def _merged(name: str, file: _Found, before: pa.Field | None, field: pa.Field) -> pa.Field:
    field = pa.field(before.name if before else field.name, _plain(name, file, field))
    if before is None or before.type == field.type:
        return field
    try:
        found = pa.unify_schemas([pa.schema([f]) for f in _both_decimals(before, field)], promote_options="permissive")
        if not pa.types.is_decimal256(found.field(0).type):  # has more digits than a column
            return found.field(0)
    except pa.ArrowException as error:
        raise _mismatch(name, file, before, field) from error
    raise _mismatch(name, file, before, field)


def _mismatch(name: str, file: _Found, before: pa.Field, field: pa.Field) -> TrinityError:
    return TrinityError(
        "TYPE_MISMATCH",
        f"Column '{field.name}' of table '{name}' is of type {field.type} in '{file.path}', and {before.type} in "
        "other files; write the files with one type.",
    )


_DIGITS: Final = {8: 10, 16: 10, 32: 10, 64: 20}
"""Bits of an integer -> precision of the decimal as which Spark reads it from files."""


def _both_decimals(*fields: pa.Field) -> list[pa.Field]:
    """Return two fields, the integer as a decimal if the other is one: Arrow's own conversion has too few digits."""
    if not any(pa.types.is_decimal(f.type) for f in fields):
        return list(fields)
    return [
        f.with_type(pa.decimal128(_DIGITS[f.type.bit_width], 0)) if pa.types.is_integer(f.type) else f for f in fields
    ]


def _plain(name: str, file: _Found, field: pa.Field) -> pa.DataType:
    """Return the type that Spark reads a field as: no dictionaries, no large or unsigned types.

    Raises:
        TrinityError: NOT_SUPPORTED for a type that Spark does not read.
    """
    if pa.types.is_null(field.type):
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Column '{field.name}' in '{file.path}' of table '{name}' has no type, as all its values are NULL; write "
            "the file with the type that the column has in others.",
        )
    if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Column '{field.name}' in '{file.path}' of table '{name}' is in nanoseconds, which Spark does not read; "
            "write microseconds.",
        )
    try:
        return arrow_type(type_text(field.type))
    except TrinityError as error:
        raise TrinityError(
            "NOT_SUPPORTED", f"Column '{field.name}' in '{file.path}' of table '{name}': {error.message}"
        ) from error
