"""Scans without the rows that are deleted by position (R1): a bit test on the place of each row.

The bits of all files of a scan are one array of BIGINT, which Spark has from a scalar subquery: a literal the planner
would hash and print. In front of them is a table by which a row finds those of its file, by the last bits of the file's
size: comparing a number is much cheaper than comparing a name, and dividing one is not cheap either. Rows of files
without bits look behind the array, where there is NULL: each mention of the array costs the planner milliseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from trinity.engine.spark.types import arrow_frame
from trinity.merge.quoting import text_literal
from trinity.spi import DataFile, Deletes
from trinity.storage import Cache

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "NOTHING_PASSED",
    "Bits",
    "bits_of",
    "leaves_out",
    "of_distinct_sizes",
    "without_deleted",
    "words_left_out",
    "words_of",
]

_BITS: Final = "_trinity_bits"
_BY_NAME: Final = -1
"""In the table: of files that have one size, and are told by their names."""
_MOST_GROUPS: Final = 4
"""Scans of one read: each costs some milliseconds."""
_TABLES: Final = (1 << 10, 1 << 14, 1 << 18)
"""Lengths of a table. They are few, because for each number in a plan Spark compiles the scan anew."""
NOTHING_PASSED: Final[Mapping[str, np.ndarray]] = {}
_words: Final[Cache[tuple[Deletes, int], np.ndarray]] = Cache(256)


def without_deleted(
    spark: SparkSession, rows: DataFrame, files: Sequence[DataFile], passed: Mapping[str, np.ndarray] = NOTHING_PASSED
) -> DataFrame:
    """The rows of a scan of Parquet files, but for those that are deleted by position.

    Args:
        spark: the session.
        rows: the scan, with its ``_metadata``; order and buckets stay.
        files: all files of the scan.
        passed: path of a file -> :func:`words_of` further rows that are left out.

    Raises:
        TrinityError: BAD_DATA naming a file of deleted rows that is missing or corrupt.
    """
    if not any(leaves_out(f, passed) for f in files):
        return rows
    bits = bits_of(files, passed)
    one = pa.ListArray.from_arrays(pa.array([0, len(bits.words)], pa.int32()), pa.array(bits.words))
    words = arrow_frame(spark, pa.table({_BITS: one})).scalar().alias(_BITS)
    return rows.select("*", words).where(_stays(bits)).drop(_BITS)


def of_distinct_sizes(files: Sequence[DataFile]) -> list[list[DataFile]]:
    """The files in groups within which their sizes tell them apart, but for the last one where there are many.

    Small commits have sizes in common; in a scan of its own each group does without the names of its files.
    """
    seen, groups = Counter[int](), list[list[DataFile]]()
    for file in files:
        number = min(seen[file.size], _MOST_GROUPS - 1)
        if number == len(groups):
            groups.append([])
        groups[number].append(file)
        seen[file.size] += 1
    return groups


def leaves_out(file: DataFile, passed: Mapping[str, np.ndarray]) -> bool:
    """True when a read leaves a row of the file out."""
    return file.path in passed or bool(file.deletes and file.deletes.rows)


@dataclass(frozen=True)
class Bits:
    """The array of a scan.

    Attributes:
        words: table, then bits of files.
        table: length of the table. At the remainder of a file's size by it is the place of the file's first word; -1
            where files are told by their names.
        names: file name -> that place, of those files that have bits.
    """

    words: np.ndarray
    table: int
    names: Mapping[str, int]


def bits_of(files: Sequence[DataFile], passed: Mapping[str, np.ndarray] = NOTHING_PASSED) -> Bits:
    """The array of a scan of files, with the rows that it leaves out."""
    length, alike = _told_apart(files)
    marked = [f for f in files if leaves_out(f, passed)]
    parts = [words_left_out(f, passed.get(f.path)) for f in marked]
    places = length + np.cumsum([0, *map(len, parts)])
    table = np.full(length, places[-1], np.int64)
    table[[size % length for size in alike]] = _BY_NAME
    names = dict[str, int]()
    for file, place in zip(marked, places.tolist(), strict=False):  # (the last place is the end)
        if file.size in alike:
            names[file.name] = place
        else:
            table[file.size % length] = place
    return Bits(np.concatenate([table, *parts]), length, names)


def _stays(bits: Bits) -> str:
    """The predicate, as text: each function that Python calls is some calls into the JVM."""
    place = f"get({_BITS}, CAST(_metadata.file_size & {bits.table - 1}L AS INT))"
    if bits.names:
        lines = " ".join(f"WHEN {text_literal(name)} THEN {at}L" for name, at in bits.names.items())
        by_name = f"CASE _metadata.file_name {lines} ELSE {len(bits.words)}L END"
        place = f"CASE WHEN {place} <> {_BY_NAME}L THEN {place} ELSE {by_name} END"
    word = f"get({_BITS}, CAST({place} + shiftright(_metadata.row_index, 6) AS INT))"
    return f"coalesce(getbit({word}, CAST(_metadata.row_index & 63L AS INT)), 0) = 0"


def _told_apart(files: Sequence[DataFile]) -> tuple[int, set[int]]:
    """(length of a table; sizes that share their place in it)."""
    sizes = np.array([f.size for f in files], np.int64)
    distinct = len(np.unique(sizes))
    length = next((n for n in _TABLES if len(np.unique(sizes % n)) == distinct), _TABLES[-1])
    shared = np.bincount(sizes % length)[sizes % length] > 1
    return length, set(sizes[shared].tolist())


def words_left_out(file: DataFile, passed: np.ndarray | None) -> np.ndarray:
    """The bits of the rows that a read leaves out of a file, which has some: deleted ones, and further ones."""
    if file.deletes is None or not file.deletes.rows:
        assert passed is not None
        return passed
    deletes = file.deletes
    words = _words.get((deletes, file.rows), lambda: words_of(deletes.positions().to_numpy(), file.rows))
    return words if passed is None else words | passed


def words_of(places: np.ndarray, rows: int) -> np.ndarray:
    """The bits of a file with so many rows: that of row n is bit n % 64 of word n // 64."""
    marks = np.zeros(-(-rows // 64) * 64, np.uint8)
    marks[places] = 1
    return np.packbits(marks, bitorder="little").view("<i8").astype(np.int64)
