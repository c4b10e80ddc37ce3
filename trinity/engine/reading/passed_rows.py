"""The rows that a merged read passes over, found once for a version and remembered: the read is then a scan.

A file never changes, and a row that is superseded stays so while commits only append. So what is known of a version
holds for the next one, too, of which only the keys of its new files are looked up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from trinity.engine.appending.run_sinks import run_on_spark
from trinity.engine.reading.arrow_fold import narrow_rows
from trinity.engine.reading.arrow_keys import Keys
from trinity.engine.reading.base_buckets import layers, well_bucketed
from trinity.engine.reading.by_place import is_searchable, may_go_by_place
from trinity.engine.reading.pruning import may_share_keys
from trinity.engine.reading.scan import tiers
from trinity.engine.reading.superseded import ASIDE, LOG, Search, Stored, in_threads, opened
from trinity.engine.spark.remote import is_alone, parallelism
from trinity.errors import TrinityError
from trinity.merge.spec import MergeSpec
from trinity.secrets import logger
from trinity.spark_names import PySparkException
from trinity.spi import DataFile, Deletes, SplitSource, arrival_order
from trinity.storage import Cache, Location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Outlook", "forget"]

_HELD: Final = 256 * 1024 * 1024
"""Bytes of bits that the process remembers, of all tables."""
_MOST_LOOKED_AT: Final = 8_000_000
"""Base rows whose keys and ordering are read from a disk sooner than Spark folds a few keys: some hundred MB."""
_ROWS_HELD: Final = 256 * 1024 * 1024
"""Bytes of keys and ordering columns that it keeps, where it searches itself: the next commit's keys meet them, too."""

_File = tuple[str, Deletes | None]
_log: Final = logger(__name__)


@dataclass(frozen=True)
class _Version:
    """Facts that tell the merged rows of a version apart from those of others of the table.

    Attributes:
        spec: the table's options.
        storage: key, ordering columns and marks of deletion as they are stored.
        base: base and sidecar.
        log: in arrival order.
    """

    spec: MergeSpec
    storage: pa.Schema
    base: frozenset[_File]
    log: tuple[_File, ...]

    def goes_on(self, other: _Version) -> bool:
        """True when the other one is this one with further appends, or with none."""
        same = (self.spec, self.base) == (other.spec, other.base) and self.storage.equals(other.storage)
        return same and other.log[: len(self.log)] == self.log


@dataclass(frozen=True)
class _Known:
    version: _Version
    passed: Mapping[str, np.ndarray] = field(default_factory=dict)


def _bytes(known: _Known) -> int:
    return sum(words.nbytes for words in known.passed.values())


_memory: Final[Cache[tuple[str, str], _Known]] = Cache(_HELD, _bytes)
_rows: Final[Cache[tuple[str, pa.Schema], pa.Table]] = Cache(_ROWS_HELD, lambda rows: int(rows.nbytes))


@dataclass(frozen=True)
class Outlook:
    """A version whose merged read may pass over rows by their places, and what of these is known.

    Attributes:
        splits: the version.
        version: what tells it apart.
        base: its base files.
        earlier: the log whose keys have been looked for, in arrival order.
        later: the log that came after it.
        passed_before: path of a file -> the bits of the rows that are known for it.
        only: the keys that are read; None for all.
    """

    splits: SplitSource
    version: _Version
    base: Sequence[DataFile]
    earlier: Sequence[DataFile]
    later: Sequence[DataFile]
    passed_before: Mapping[str, np.ndarray]
    only: pa.Table | None = None

    @classmethod
    def of(cls, splits: SplitSource, spec: MergeSpec, least: int | None = None) -> Outlook | None:
        """The outlook of a version with a log; None where it cannot be read so, or has fewer base rows."""
        base, log = tiers(splits.files)
        if not may_go_by_place(splits, spec, base, log, least):
            return None
        log = sorted(log, key=arrival_order)
        version = _version(splits, spec, base, log)
        known = _memory.peek(_table(splits))
        if known is None or not known.version.goes_on(version):
            return cls(splits, version, base, (), log, {})
        middle = len(known.version.log)
        return cls(splits, version, base, log[:middle], log[middle:], known.passed)

    def of_keys(self, keys: pa.Table, files: Sequence[DataFile]) -> Outlook:
        """The outlook of a read of these keys alone, all of whose rows are in some files of the version."""
        paths = {f.path for f in files}
        base, earlier, later = ([f for f in part if f.path in paths] for part in (self.base, self.earlier, self.later))
        return replace(self, base=base, earlier=earlier, later=later, only=keys)

    @property
    def is_known(self) -> bool:
        """True when the keys of all of the log have been looked for."""
        return not self.later

    @property
    def is_searchable(self) -> bool:
        """True when what is not known yet is worth a search."""
        return is_searchable(len(self.later)) and (self.only is None or self._is_soon_read)

    @property
    def _is_soon_read(self) -> bool:
        """True when key and ordering columns of the base are read, for one read, sooner than some keys are joined."""
        return sum(f.rows for f in self.base) <= _MOST_LOOKED_AT and all(Location.of(f.path).on_disk for f in self.base)

    def passed(self, spark: SparkSession | None) -> Mapping[str, np.ndarray] | None:
        """Path of a file -> the bits of the rows that the read passes over.

        What is not known yet is looked for, without Spark here, and remembered unless only some keys are read. None
        where that fails.
        """
        passed = self.passed_before
        if self.later:
            found = _found(spark, self)
            if found is None:
                return None
            passed = _together(passed, found)
        if self.only is None:
            _memory.put(_table(self.splits), _Known(self.version, passed))
        return passed


def _table(splits: SplitSource) -> tuple[str, str]:
    return splits.definition.full_name, splits.definition.id


def forget() -> None:
    """Forgets what is known of all tables, so that their next reads are first ones."""
    _memory.drop(lambda _: True)
    _rows.drop(lambda _: True)


def _version(splits: SplitSource, spec: MergeSpec, base: Sequence[DataFile], log: Sequence[DataFile]) -> _Version:
    names = [name for name in spec.sidecar_columns if name in splits.storage.names]
    storage = pa.schema([splits.storage.field(name) for name in names])
    stands = frozenset((f.path, f.deletes) for f in (*base, *splits.sidecar))
    return _Version(spec, storage, stands, tuple((f.path, f.deletes) for f in log))


def _found(spark: SparkSession | None, outlook: Outlook) -> dict[str, np.ndarray] | None:
    """The bits that come to those of the earlier log; None when a job that searches fails.

    A join needs no Python on executors. Where the search runs in this process, its errors are those of the read.
    """
    splits, version = outlook.splits, outlook.version
    touched = may_share_keys(outlook.base, outlook.later, splits.definition)
    files = [*touched, *outlook.earlier, *outlook.later]
    buckets = well_bucketed(layers(outlook.base, splits.definition)[0], splits.definition)
    stored = [
        Stored(number, f.path, f.rows, f.deletes, f.bucket.index if f.bucket and buckets else None)
        for number, f in enumerate(files, LOG + 1)
    ]
    aside = [Stored(ASIDE, f.path, f.rows, f.deletes) for f in splits.sidecar]
    middle, last = len(touched), len(touched) + len(outlook.earlier)
    search = Search(
        version.spec,
        version.storage,
        (*aside, *stored[middle:last]),
        tuple(stored[last:]),
        {f.number: f for f in stored[:middle]},
        buckets,
        _stored_keys(version, outlook.only),
    )
    fragments = _searched(spark, search, splits.definition.full_name)
    if fragments is None:
        return None
    bits = opened(fragments)
    return {files[number - LOG - 1].path: words for number, words in bits.items()}


def _stored_keys(version: _Version, keys: pa.Table | None) -> Keys | None:
    key = version.spec.key
    kinds = pa.schema([version.storage.field(name) for name in key])
    return None if keys is None else Keys.of(keys.cast(kinds), key)[0]


def _searched(spark: SparkSession | None, search: Search, table: str) -> list[bytes] | None:
    """The fragments of a search: by a job, or here where this process is all that there is of Spark, without one.

    None for a job that fails.
    """
    stop = len(search.base) + 1
    if spark is None:
        return in_threads(search, min(pa.cpu_count(), stop), _kept_rows)
    tasks = min(parallelism(spark), stop)
    if is_alone(spark):
        return in_threads(search, tasks, _kept_rows)
    try:
        return run_on_spark(search, spark.range(LOG, stop, 1, tasks))
    except (TrinityError, PySparkException) as error:
        _log.info("'%s' is read by a join: %s", table, error)
        return None


def _kept_rows(path: str, storage: pa.Schema, names: Sequence[str]) -> pa.Table:
    wanted = pa.schema([storage.field(name) for name in names])
    return _rows.get((path, wanted), lambda: narrow_rows(path, storage, names))


def _together(known: Mapping[str, np.ndarray], found: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    both = {path: words | known[path] if path in known else words for path, words in found.items()}
    return {**known, **both}
