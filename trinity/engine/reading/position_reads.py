"""Reads that leave hidden rows out by their positions: what is known of the version.

A hidden row is a stored row that no merged read shows, since it wins no key or deletes the row. All here is decided by
statistics, without Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow as pa

from trinity.engine.reading.files import tiers
from trinity.engine.reading.local.limits import NotLocal, why_not_by_position
from trinity.merge.spec import MergeSpec
from trinity.spi import DataFile, Deletes, SplitSource
from trinity.storage import Cache, Location

__all__ = ["PositionReadState", "forget_positions"]

LEAST_ROWS: Final = 10_000
"""Base rows from which a search costs less than the join that it spares."""
_MOST_FILES: Final = 256
"""Files of the log of which nothing is known, up to which Spark searches: each of its tasks opens all of them."""
_MOST_LOOKED_AT: Final = 8_000_000
"""Base rows whose keys and ordering are read from a disk sooner than Spark folds a few keys: some hundred MB."""
_REMEMBERED_BYTES: Final = 256 * 1024 * 1024
"""Bytes of bits that the process remembers, of all tables."""

_File = tuple[str, Deletes | None]


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

    @classmethod
    def of(cls, splits: SplitSource, spec: MergeSpec, base: Sequence[DataFile], log: Sequence[DataFile]) -> _Version:
        names = [name for name in spec.sidecar_columns if name in splits.storage.names]
        storage = pa.schema([splits.storage.field(name) for name in names])
        stands = frozenset((f.path, f.deletes) for f in (*base, *splits.sidecar))
        return cls(spec, storage, stands, tuple((f.path, f.deletes) for f in log))

    def continues_in(self, other: _Version) -> bool:
        """Return True when the other one is this one with further appends, or with none."""
        same = (self.spec, self.base) == (other.spec, other.base) and self.storage.equals(other.storage)
        return same and other.log[: len(self.log)] == self.log


@dataclass(frozen=True)
class _Known:
    version: _Version
    hidden: Mapping[str, np.ndarray] = field(default_factory=dict)


def _bytes(known: _Known) -> int:
    return sum(words.nbytes for words in known.hidden.values())


_memory: Final[Cache[tuple[str, str], _Known]] = Cache(_REMEMBERED_BYTES, _bytes)


@dataclass(frozen=True)
class PositionReadState:
    """A version whose hidden rows can be marked by their positions, and what is known of them.

    Attributes:
        splits: the version.
        version: what tells it apart.
        base: its base files.
        earlier: the log whose keys have been looked for, in arrival order.
        later: the log that came after it.
        known: path of a file -> the bits of the hidden rows that are known.
        only: the keys that are read; None for all.
    """

    splits: SplitSource
    version: _Version
    base: Sequence[DataFile]
    earlier: Sequence[DataFile]
    later: Sequence[DataFile]
    known: Mapping[str, np.ndarray]
    only: pa.Table | None = None

    @classmethod
    def of(cls, splits: SplitSource, spec: MergeSpec, *, remembered: bool = True) -> PositionReadState | NotLocal:
        """Return the state of a version with a log, or why it cannot be read so.

        Args:
            splits: the version.
            spec: its table's options.
            remembered: False for the state of a first read, of which nothing is known.
        """
        base, log = tiers(splits.files)
        if (why := why_not_by_position(splits, spec, base, log)) is not None:
            return why
        log = splits.in_arrival_order(log)
        version = _Version.of(splits, spec, base, log)
        stays = splits.native is None or splits.native.files_stay
        known = _memory.peek(_table(splits)) if remembered and stays else None
        if known is None or not known.version.continues_in(version):
            return cls(splits, version, base, (), log, {})
        middle = len(known.version.log)
        return cls(splits, version, base, log[:middle], log[middle:], known.hidden)

    def of_keys(self, keys: pa.Table, files: Sequence[DataFile]) -> PositionReadState:
        """Return the state of a read of these keys alone, all of whose rows are in some files of the version.

        A key with NULL in it is none (K1).
        """
        paths = {f.path for f in files}
        base, earlier, later = ([f for f in part if f.path in paths] for part in (self.base, self.earlier, self.later))
        return replace(self, base=base, earlier=earlier, later=later, only=keys.drop_null())

    @property
    def is_known(self) -> bool:
        """True when the keys of all of the log have been looked for."""
        return not self.later

    @property
    def beats_a_join(self) -> bool:
        """True when the base is so large that a search costs less than the join that it spares."""
        return sum(f.rows for f in self.base) >= LEAST_ROWS

    @property
    def is_soon_opened(self) -> bool:
        """True when the files of which nothing is known are so few that every task of Spark's may open them."""
        return len(self.later) <= _MOST_FILES

    @property
    def why_not_searched(self) -> NotLocal | None:
        """Why what is not known yet is not worth a search; None where it is."""
        if self.only is not None and not self._is_soon_read:
            return NotLocal("its base is too large, or too far away, for a look at a few keys")
        return None

    @property
    def _is_soon_read(self) -> bool:
        """True when key and ordering columns of the base are read, for one read, sooner than some keys are joined."""
        return sum(f.rows for f in self.base) <= _MOST_LOOKED_AT and all(Location.of(f.path).on_disk for f in self.base)

    def remember(self, hidden: Mapping[str, np.ndarray]) -> None:
        """Remember the hidden rows of the version, unless only some keys were read."""
        if self.only is None:
            _memory.put(_table(self.splits), _Known(self.version, hidden))


def _table(splits: SplitSource) -> tuple[str, str]:
    return splits.definition.full_name, splits.definition.id


def forget_positions() -> None:
    """Forget what is known of all tables, so that their next reads are first ones."""
    _memory.drop(lambda _: True)
