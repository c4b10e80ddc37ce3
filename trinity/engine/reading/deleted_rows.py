"""Scans without the rows that are deleted by position (R1): a bit test on the place of each row.

The bits of all files of a scan are one array of BIGINT, which Spark has from a scalar subquery: a literal the planner
would hash and print. In front of the bits is a table by which a row finds those of its file, by the file's size:
comparing a number is much cheaper than comparing a name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
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
    "bits_of",
    "leaves_out",
    "of_distinct_sizes",
    "without_deleted",
    "words_left_out",
    "words_of",
]

_BITS: Final = "_trinity_bits"
_NONE: Final = -1
"""In the table: of a file without deleted rows."""
_BY_NAME: Final = -2
"""In the table: of files that have one size, and are told by their names."""
_MOST_GROUPS: Final = 4
"""Scans of one read: each costs some milliseconds."""
_LONGEST_TABLE: Final = 1 << 20
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
    bits, places, names = bits_of(files, passed)
    # (first its own length: a number in the plan would have Spark compile the scan anew for each number of files)
    words = np.concatenate([[places], bits])
    one = pa.ListArray.from_arrays(pa.array([0, len(words)], pa.int32()), pa.array(words))
    bits_of_all = arrow_frame(spark, pa.table({_BITS: one})).scalar().alias(_BITS)
    return rows.select("*", bits_of_all).where(_stays(names)).drop(_BITS)


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


def bits_of(
    files: Sequence[DataFile], passed: Mapping[str, np.ndarray] = NOTHING_PASSED
) -> tuple[np.ndarray, int, dict[str, int]]:
    """(the array, the length of its table, file name -> place of the bits for files that are told by their names).

    The table has at the file's size modulo its length the place of the file's first word, -1 for a file without
    deleted rows, -2 for files that are told by their names.
    """
    table, alike = _table_of(files)
    parts, at, names = [table], len(table), dict[str, int]()
    for file in files:
        if not leaves_out(file, passed):
            continue
        if file.size in alike:
            names[file.name] = at
        else:
            table[file.size % len(table)] = at
        parts.append(words_left_out(file, passed.get(file.path)))
        at += len(parts[-1])
    return np.concatenate(parts), len(table), names


def _stays(names: dict[str, int]) -> str:
    """The predicate, as text: each function that Python calls is some calls into the JVM."""
    start = f"get({_BITS}, CAST(1 + _metadata.file_size % get({_BITS}, 0) AS INT))"
    if names:
        lines = " ".join(f"WHEN {text_literal(name)} THEN {at}L" for name, at in names.items())
        start = (
            f"CASE WHEN {start} <> {_BY_NAME}L THEN {start} ELSE CASE _metadata.file_name {lines} ELSE {_NONE}L END END"
        )
    word = f"get({_BITS}, CAST(1 + {start} + shiftright(_metadata.row_index, 6) AS INT))"
    bit = f"{word} & shiftleft(1L, CAST(_metadata.row_index & 63L AS INT))"
    return f"({start}) < 0 OR ({bit}) = 0"


def _table_of(files: Sequence[DataFile]) -> tuple[np.ndarray, set[int]]:
    """A table in which each size has a place of its own, its remainder by the length; and sizes of several files."""
    counts = Counter(f.size for f in files)
    alike = {size for size, count in counts.items() if count > 1}
    sizes = np.fromiter(counts, np.int64, len(counts))
    length = len(sizes)
    while len(np.unique(sizes % length)) < len(sizes) and length < _LONGEST_TABLE:
        length += 1 + length // 64
    if length >= _LONGEST_TABLE:  # sizes that no table of this kind keeps apart
        alike = set(counts)
    table = np.full(length, _NONE, np.int64)
    table[[size % length for size in alike]] = _BY_NAME
    return table, alike


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
