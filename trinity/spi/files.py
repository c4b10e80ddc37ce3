"""Data files, their deleted rows, and the order of their rows.

A sink reports a file as a fragment; commits record files, and split sources list them.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import Enum
from typing import Any, Final

import pyarrow as pa

from trinity.spi.schema import STAMP


@dataclass(frozen=True)
class Deletes(ABC):
    """The deleted rows of one data file: their number, and the files that record them. Picklable.

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
    """The place of a data file in the merged read (docs/concepts/log-and-base.md)."""

    BASE = "base"
    """Compacted: live rows only, one per key, sorted by key; one file per bucket."""
    LOG = "log"
    """Row versions as they were appended, or folded by a minor compaction."""
    SIDECAR = "sidecar"
    """Rows that must outlive compaction, such as tombstones. The sidecar is read only if there is a log."""


class Origin(str, Enum):
    """The writer of a file. It decides whether the file's commit number orders its rows (L3)."""

    OWN = "own"
    """Trinity."""
    ADDED = "added"
    """Another engine, which wrote new rows in the commit of the file's number."""
    UNSURE = "unsure"
    """Another engine, in the commit of the file's number. The rows may be new, or of any earlier commits."""
    REWRITTEN = "rewritten"
    """Another engine, which rewrote, or may have rewritten, rows of any earlier commits."""


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
    """Statistics of one column in one file. Minimum and maximum are bounds, as a format may cut long text.

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
        rows: number of rows, deleted ones too; 0 when unknown, see ``rows_known``.
        tier: base, log or sidecar.
        commit: commit number: the commit that added the rows; for a file that compaction wrote the highest
            commit that it folded (K6). None in a fragment that no commit has taken yet.
        bucket: the bucket of a file that compaction wrote by bucket; None for other files.
        partition: partition column -> value that all its rows have there, None for NULL.
        stats: column name -> statistics, of key and watermark columns at least.
        column_sizes: stored column path -> compressed bytes.
        rows_known: False when the format's metadata do not say how many rows the file has. Files of other engines may
            lack this. Not part of :meth:`to_dict`.
        origin: the writer of the file. Not part of :meth:`to_dict`.
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
        """Number of rows that are not deleted; only where ``rows_known``."""
        return self.rows - (self.deletes.rows if self.deletes else 0)

    @property
    def needs(self) -> tuple[str, ...]:
        """Paths of all files that a read of this file opens: its own, and those that record its deleted rows."""
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
    """Return the fragment by which a merge sink reports a removed file: a replaced one, or one without rows left."""
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
    """Return a partition value or bound as JSON: as it is if JSON has its type, else an object ``{type: text}``."""
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


# -- stamps: an order of row versions that survives when other engines rewrite the files (L3) ------------
#
# A row change copies the ordering values of the row that it changes, and wins by arrival (K4). When another engine
# rewrites data files, the commit numbers of their rows are lost. So every row carries a stamp, one number for all rows
# of a statement. It consists of the version that the statement was pinned to, whether it is an append or a row change,
# and random bits, which identify the statement. Files have the stamp from the start. The table has the column from its
# first row change on: until then nothing depends on it, and no other engine sees it.
#
# Stamps follow the order of arrival wherever one of two rows of a key is a row change's, since a row change runs again
# when a row of its keys was committed after its version. There is one exception: an append that is pinned before a row
# change's version and committed after it. Such an append is late, and the table remembers it (RowOrder).

MOMENT_UNIT: Final = 1 << 23
"""A stamp divided by this is its moment: twice the version; for an appended row, one more."""
OLDEST: Final = MOMENT_UNIT
"""The stamp that compaction gives to rows without one: older than any row change that it did not fold."""


def append_stamp(version: int) -> int:
    """Return a stamp for the rows of an append that is pinned to a version."""
    return (2 * version + 1) * MOMENT_UNIT + secrets.randbelow(MOMENT_UNIT)


def row_change_stamp(version: int) -> int:
    """Return a stamp for the rows of a row change: later than all that was committed up to its version."""
    return 2 * version * MOMENT_UNIT + secrets.randbelow(MOMENT_UNIT)


def moment_of_append(commit: int) -> int:
    """Return the moment of a row of which only the commit is known: that of an append pinned to the version before."""
    return 2 * commit - 1


def came_after(version: int, files: Iterable[DataFile]) -> bool:
    """Return whether the files may have rows of a row change that was pinned to a later version than an append.

    Args:
        version: the version to which an append is pinned.
        files: the live files of the newest version.
    """
    return any((file.commit or 0) > version and _may_hold_change_after(version, file) for file in files)


def _may_hold_change_after(version: int, file: DataFile) -> bool:
    stats, bounds = file.stats.get(STAMP), file.bounds(STAMP)
    if bounds is None:
        return stats is None or stats.nulls != file.rows
    first, last = (bound // MOMENT_UNIT for bound in bounds)
    appended = first == last and first % 2 == 1
    return not appended and last >= 2 * (version + 1)


@dataclass(frozen=True)
class RowOrder:
    """The order of a table's rows, as far as stamps do not tell it. A format stores it with each commit of Trinity's.

    Attributes:
        late: stamp -> commit number, for late appends.
        strangers: the newest commit by which another engine may have added rows, which have no stamp; 0 for none. A
            full compaction forgets the commits that it folds.
        through: the newest version that the order takes into account.
    """

    late: Mapping[int, int] = field(default_factory=dict)
    strangers: int = 0
    through: int = 0

    def with_late(self, stamp: int, commit: int) -> RowOrder:
        """Return this order with one more late append."""
        return replace(self, late={**self.late, stamp: commit})

    def folded(self, version: int) -> RowOrder:
        """Return this order after a full compaction of a version, which folded all rows up to it."""
        late = {stamp: commit for stamp, commit in self.late.items() if commit > version}
        return replace(self, late=late, strangers=self.strangers if self.strangers > version else 0)

    def to_json(self) -> str:
        """Return a JSON text, which :meth:`from_json` reads."""
        facts = {"late": self.late, "strangers": self.strangers, "through": self.through}
        return json.dumps(facts, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> RowOrder:
        """Return the order that :meth:`to_json` wrote."""
        data = json.loads(text)
        return cls({int(stamp): commit for stamp, commit in data["late"].items()}, data["strangers"], data["through"])
