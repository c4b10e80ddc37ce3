"""Scans without the rows that are deleted by position (R1): a bit test on the position of each row.

The bits of all files of a scan are one array of BIGINT, which a scalar subquery returns: a literal the planner would
hash and print. The array begins with a hash table, from the last bits of a file's size to the index of its first word:
a number compares much faster than a name, and its last bits cost less than a division. Files whose sizes collide are in
a second table, keyed by a hash of the name. Rows of files without bits get an index past the end, where the array
yields NULL; a condition for them would mention the array again, and each mention costs the planner milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from trinity.engine.reading.data_files import NOTHING_HIDDEN, bitmap_left_out, has_left_out
from trinity.engine.reading.spark_hash import buckets_of
from trinity.hidden import BITS
from trinity.spark.types import arrow_frame
from trinity.spark_names import DataFrame
from trinity.spi import DataFile
from trinity.syntax.quoting import text_literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAME: Final = "name"
_HASHES: Final = 1 << 30
_TABLES: Final = (1 << 10, 1 << 14, 1 << 18)
"""Lengths that a table may have. They are few, since Spark compiles the scan anew for each other number in its plan."""


def without_deleted(
    spark: SparkSession, rows: DataFrame, files: Sequence[DataFile], hidden: Mapping[str, np.ndarray] = NOTHING_HIDDEN
) -> DataFrame:
    """Return the rows of a scan of Parquet files, but for those that are deleted by position, or hidden.

    The rows must have ``_metadata``. Their order and buckets stay.

    Raises:
        TrinityError: BAD_DATA naming a file of deleted rows that is missing or corrupt.
    """
    if not any(has_left_out(f, hidden) for f in files):
        return rows
    bits = bits_of(files, hidden)
    one = pa.ListArray.from_arrays(pa.array([0, len(bits.words)], pa.int32()), bits.words)
    words = arrow_frame(spark, pa.table({BITS: one})).scalar().alias(BITS)
    return rows.select("*", words).where(_not_deleted_predicate(bits)).drop(BITS)


class _Table(NamedTuple):
    """A hash table of files: the remainder of a file's number is its slot; files may collide."""

    slots: np.ndarray
    length: int
    shared: np.ndarray

    @classmethod
    def of(cls, numbers: np.ndarray, lengths: Sequence[int]) -> _Table:
        """Return the shortest table in which different numbers do not collide, or else the longest."""
        if not len(numbers):
            return cls(np.zeros(0, np.int64), 0, np.zeros(0, bool))
        distinct = len(np.unique(numbers))
        length = next((n for n in lengths if len(np.unique(numbers % n)) == distinct), lengths[-1])
        slots = numbers % length
        return cls(slots, length, np.bincount(slots)[slots] > 1)

    def words(self, starts: Sequence[int]) -> pa.Int64Array:
        """Return the words of the table, a slot for each file's own word; NULL in the slot of a collision."""
        words, unknown = np.zeros(self.length, np.int64), np.zeros(self.length, bool)
        words[self.slots], unknown[self.slots[self.shared]] = starts, True
        return pa.array(words, mask=unknown)


@dataclass(frozen=True)
class Bits:
    """The array of a scan, and the lengths of its parts.

    Attributes:
        words: both tables, then the bits of files. A table's slot holds the index of a file's first word; NULL for a
            collision.
        sizes: length of the first table, by the sizes of files.
        names: length of the second table, by hashes of names, for files that collide in the first.
        named: file name -> index of the first word, for files with bits that collide in both.
    """

    words: pa.Int64Array
    sizes: int
    names: int
    named: Mapping[str, int]


def bits_of(
    files: Sequence[DataFile],
    hidden: Mapping[str, np.ndarray] = NOTHING_HIDDEN,
    lengths: Sequence[int] = _TABLES,
) -> Bits:
    """Return the array for a scan of files, with the rows that it leaves out. Each table has one of the lengths."""
    sizes = _Table.of(np.array([f.size for f in files], np.int64), lengths)
    others = list(compress(files, sizes.shared))
    hashed = pa.table({_NAME: pa.array([f.name for f in others], pa.string())})
    names = _Table.of(buckets_of(hashed, [_NAME], _HASHES), lengths)
    starts, bits = _bitmap_layout(files, hidden, sizes.length + names.length)
    tables = sizes.words([starts[f.path] for f in files]), names.words([starts[f.path] for f in others])
    named = {f.name: starts[f.path] for f in compress(others, names.shared) if has_left_out(f, hidden)}
    return Bits(pa.concat_arrays([*tables, pa.array(bits)]), sizes.length, names.length, named)


def _bitmap_layout(
    files: Sequence[DataFile], hidden: Mapping[str, np.ndarray], first: int
) -> tuple[dict[str, int], np.ndarray]:
    """Return (path -> index of the file's first word, the end for a file without bits; all words of the files).

    The words begin at the index ``first`` of the array.
    """
    starts, parts, end = dict[str, int](), [np.zeros(0, np.int64)], first
    for file in files:
        if has_left_out(file, hidden):
            starts[file.path] = end
            parts.append(bitmap_left_out(file, hidden.get(file.path)))
            end += len(parts[-1])
    return {**dict.fromkeys((f.path for f in files), end), **starts}, np.concatenate(parts)


def _not_deleted_predicate(bits: Bits) -> str:
    """Return the predicate as text: each function that Python calls instead costs several calls into the JVM."""
    slots = [f"get({BITS}, CAST(_metadata.file_size & {bits.sizes - 1}L AS INT))"]
    if bits.names:
        slots.append(f"get({BITS}, {bits.sizes} + (hash(_metadata.file_name) & {bits.names - 1}))")
    if bits.named:
        lines = " ".join(f"WHEN {text_literal(name)} THEN {start}L" for name, start in bits.named.items())
        slots.append(f"CASE _metadata.file_name {lines} END")
    word = f"get({BITS}, CAST(coalesce({', '.join(slots)}) + shiftright(_metadata.row_index, 6) AS INT))"
    return f"coalesce(getbit({word}, CAST(_metadata.row_index & 63L AS INT)), 0) = 0"
