"""Data files and their deleted rows: what a sink reports (a fragment), what commits record, what split sources list."""

from __future__ import annotations

import base64
import datetime as dt
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import Enum
from typing import Any, Final

import pyarrow as pa


@dataclass(frozen=True)
class Deletes(ABC):
    """The deleted rows of one data file: which files record them, and how many there are. Picklable.

    The shared class is :class:`trinity.storage.PositionDeletes`. A format that records deletes in its own way has its
    own class.

    Attributes:
        rows: number of deleted rows, each counted once.
    """

    rows: int

    @property
    @abstractmethod
    def paths(self) -> tuple[str, ...]:
        """Absolute paths of the files that record the deletes; vacuum keeps these as long as the data file."""

    @abstractmethod
    def positions(self) -> pa.Int64Array:
        """Return the positions of the deleted rows in the data file, counted from 0, ascending.

        Called on the driver and on executors.

        Raises:
            TrinityError: BAD_DATA naming a file that is missing or corrupt.
        """


class Tier(str, Enum):
    """Where a data file stands in the merged read (docs/concepts/log-and-base.md)."""

    BASE = "base"
    """Compacted: live rows only, one per key, sorted by key; one file per bucket."""
    LOG = "log"
    """Row versions as they were appended, or folded by a minor compaction."""
    SIDECAR = "sidecar"
    """Rows that must outlive compaction, such as tombstones. Read only when there is a log."""


class Origin(str, Enum):
    """Who wrote a file, which decides whether its commit number orders its rows (L3)."""

    OWN = "own"
    """Trinity."""
    ADDED = "added"
    """Another engine wrote new rows, in the commit of that number."""
    UNSURE = "unsure"
    """Another engine wrote it in the commit of that number: new rows, or rows of any earlier commits."""
    REWRITTEN = "rewritten"
    """Another engine rewrote, or may have rewritten, rows of any earlier commits."""


@dataclass(frozen=True)
class Bucket:
    """The part of the key space that a file holds: keys whose Spark murmur3 hash modulo ``count`` is ``index``.

    Attributes:
        index, count: number of the bucket, and how many buckets there are.
        types: types of the key columns when they were hashed, joined by ``;``. An INT hashes differently once it is
            widened to BIGINT.
    """

    index: int
    count: int
    types: str = ""


@dataclass(frozen=True)
class ColumnStats:
    """Statistics of one column in one file. Bounds, not exact values: a format may cut long text.

    NaN does not count, and is no bound. -0.0 is smaller than 0.0.

    Attributes:
        min: a Python value; no non-NULL value is smaller. None when unknown.
        max: a Python value; no non-NULL value is larger. None when unknown.
        nulls: number of NULLs, or None when unknown.
    """

    min: Any = None
    max: Any = None
    nulls: int | None = None


@dataclass(frozen=True)
class DataFile:
    """One Parquet file of a table.

    Attributes:
        path: absolute path or URI, as Spark and pyarrow open it.
        size: bytes.
        rows: number of rows, deleted ones too; 0 when unknown.
        tier: base, log or sidecar.
        commit: commit number: the commit that added the rows; for a file that compaction wrote the highest
            commit that it folded (K6). None in a fragment that no commit has taken yet.
        bucket: the bucket of a file that compaction wrote by bucket; None for other files.
        partition: partition column -> value that all its rows have there, None for NULL.
        stats: column name -> statistics, of key and watermark columns at least.
        column_sizes: stored column path -> compressed bytes.
        rows_known: False when the format's metadata do not say how many rows the file has. Files of other engines may
            lack this. Not part of :meth:`to_dict`.
        origin: who wrote the file. Not part of :meth:`to_dict`.
        deletes: which of its rows are deleted by position; None for none. Not part of :meth:`to_dict`; adapters store
            it separately.

        In a fragment, columns have the names that the file uses. In a split source, they have the names of the
        version's definition (see :attr:`TableDefinition.stored_names`).
    """

    path: str
    size: int
    rows: int
    tier: Tier = Tier.LOG
    commit: int | None = None
    bucket: Bucket | None = None
    partition: Mapping[str, Any] = field(default_factory=dict)
    stats: Mapping[str, ColumnStats] = field(default_factory=dict)
    column_sizes: Mapping[str, int] = field(default_factory=dict)
    rows_known: bool = True
    origin: Origin = Origin.OWN
    deletes: Deletes | None = None

    @property
    def live_rows(self) -> int:
        """Number of rows that are not deleted."""
        return self.rows - (self.deletes.rows if self.deletes else 0)

    @property
    def needs(self) -> tuple[str, ...]:
        """Paths of all files that a read of it opens: its own, and those that record its deleted rows."""
        return (self.path, *(self.deletes.paths if self.deletes else ()))

    @property
    def name(self) -> str:
        """Last part of the path. Within a commit the names sort in arrival order."""
        return self.path.rsplit("/", 1)[-1]

    def bounds(self, column: str) -> tuple[Any, Any] | None:
        """Return (smallest, largest) value of a column in this file; None when unknown, or when all are NULL."""
        if column in self.partition:
            low = high = self.partition[column]
        elif column in self.stats:
            low, high = self.stats[column].min, self.stats[column].max
        else:
            return None
        return None if low is None or high is None else (low, high)

    def at_commit(self, commit: int) -> DataFile:
        """Return this file with a commit number, unless it carries one already (K6)."""
        return self if self.commit is not None else replace(self, commit=commit)

    def moved(self, path: str) -> DataFile:
        """Return this file with another path (absolute to relative and back)."""
        return replace(self, path=path)

    def renamed(self, names: Mapping[str, str]) -> DataFile:
        """Return this file with its partition values, statistics and sizes under other column names.

        Args:
            names: name -> other name; all other columns keep theirs.
        """
        if not names:
            return self
        sizes = {path: path.partition(".") for path in self.column_sizes}
        return replace(
            self,
            partition={names.get(c, c): v for c, v in self.partition.items()},
            stats={names.get(c, c): s for c, s in self.stats.items()},
            column_sizes={
                names.get(head, head) + dot + rest: self.column_sizes[path] for path, (head, dot, rest) in sizes.items()
            },
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready form, which :meth:`from_dict` reads; optional parts are left out when empty."""
        out: dict[str, Any] = {"path": self.path, "size": self.size, "rows": self.rows, "tier": self.tier.value}
        if self.commit is not None:
            out["commit"] = self.commit
        if self.bucket:
            out["bucket"] = [self.bucket.index, self.bucket.count, self.bucket.types]
        if self.partition:
            out["partition"] = {k: encode_value(v) for k, v in self.partition.items()}
        if self.stats:
            out["stats"] = {k: [encode_value(s.min), encode_value(s.max), s.nulls] for k, s in self.stats.items()}
        if self.column_sizes:
            out["column_sizes"] = dict(self.column_sizes)
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DataFile:
        """Return the file that :meth:`to_dict` wrote."""
        return cls(
            path=data["path"],
            size=data["size"],
            rows=data["rows"],
            tier=Tier(data["tier"]),
            commit=data.get("commit"),
            bucket=Bucket(*data["bucket"]) if data.get("bucket") else None,
            partition={k: decode_value(v) for k, v in data.get("partition", {}).items()},
            stats={
                k: ColumnStats(decode_value(low), decode_value(high), nulls)
                for k, (low, high, nulls) in data.get("stats", {}).items()
            },
            column_sizes=data.get("column_sizes", {}),
        )

    def to_fragment(self) -> bytes:
        """Return the fragment (JSON bytes) by which a sink reports this file to ``finish_*``."""
        return json.dumps(self.to_dict(), separators=(",", ":")).encode()


def from_fragments(fragments: list[bytes]) -> list[DataFile]:
    """Return the files that sinks reported, in arrival order."""
    return sorted((DataFile.from_dict(json.loads(f)) for f in fragments), key=lambda f: f.name)


def removal(path: str) -> bytes:
    """Return the fragment by which a merge sink reports a removed file: one that is replaced, or has no row left."""
    return json.dumps({"removed": path}).encode()


def from_merge_fragments(fragments: Sequence[bytes]) -> tuple[list[DataFile], frozenset[str]]:
    """Return (files to add in arrival order, paths of files to remove) from the fragments of merge sinks."""
    found = [json.loads(f) for f in fragments]
    added = sorted((DataFile.from_dict(f) for f in found if "removed" not in f), key=lambda f: f.name)
    return added, frozenset(f["removed"] for f in found if "removed" in f)


def arrival_order(file: DataFile) -> tuple[int, int, str]:
    """Return a sort key: sidecar, base, then log; within each by commit number, then by order in the commit."""
    if file.commit is None:
        raise ValueError(f"{file.path} belongs to no commit yet")
    return (0 if file.tier is Tier.SIDECAR else 1 if file.tier is Tier.BASE else 2, file.commit, file.name)


def encode_value(value: Any) -> Any:
    """Return a partition value or bound as JSON: plain where JSON has the type, else a one-key object that names it."""
    if value is None or isinstance(value, bool | int | str | float):
        return value
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, bytes):
        return {"binary": base64.b64encode(value).decode()}
    if isinstance(value, dt.datetime):
        return {"timestamp": value.isoformat()}
    if isinstance(value, dt.date):
        return {"date": value.isoformat()}
    if isinstance(value, dt.time):
        return {"time": value.isoformat()}
    raise TypeError(f"no JSON form for a value of type {type(value).__name__}")


def decode_value(value: Any) -> Any:
    """Return the value that :func:`encode_value` wrote."""
    if not isinstance(value, dict):
        return value
    [(kind, text)] = value.items()
    return _DECODERS[kind](text)


_DECODERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "decimal": Decimal,
    "binary": base64.b64decode,
    "timestamp": dt.datetime.fromisoformat,
    "date": dt.date.fromisoformat,
    "time": dt.time.fromisoformat,
}
