"""Delete files of tables that other engines made: by position, by deletion vector, by equality of some columns.

Manifests tell which delete files are about a data file. A delete file is opened only when this process reads such a
data file: in Spark, Iceberg's own reader applies them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
from pyiceberg.manifest import DataFileContent, FileFormat, ManifestContent, ManifestEntry, ManifestFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.puffin import PuffinFile
from pyiceberg.types import NestedField

from trinity.arrays import as_arrow, as_numpy
from trinity.spi import DataFile, Deletes
from trinity.storage import Cache, ObjectStore
from trinity.storage.file_schema import FIELD_ID, in_file
from trinity.storage.location import local_path
from trinity.storage.parquet_files import reporting_unreadable_file, stored_pages
from trinity.storage.position_deletes import FRAME, positions_in_file, unreadable_deletes
from trinity_iceberg.deletes import delete_entries, path_bounds, target_path
from trinity_iceberg.manifests import read_entries
from trinity_iceberg.schema import storage_schema

_KEPT_BYTES: Final = 64 * 1024 * 1024
_REFERENCED: Final = "referenced-data-file"
"""Property of a deletion vector: the data file that it is about."""
_POSITIONS: Final = pa.schema([("file_path", pa.string()), ("pos", pa.int64())])
_BY_POSITION: Final = (DataFileContent.POSITION_DELETES, FileFormat.PARQUET)
_BY_VECTOR: Final = (DataFileContent.POSITION_DELETES, FileFormat.PUFFIN)
_BY_EQUALITY: Final = (DataFileContent.EQUALITY_DELETES, FileFormat.PARQUET)


@dataclass(frozen=True)
class _EqualityDeletes:
    """A file of equality deletes: it deletes the rows of data files that equal one of its rows in all its columns.

    Attributes:
        path: its absolute path.
        columns: its columns.
        in_data: the same columns as the data file has them.
    """

    path: str
    columns: pa.Schema
    in_data: pa.Schema


@dataclass(frozen=True)
class _DeletesOfOthers(Deletes):
    """The deleted rows of a data file. ``rows`` leaves out delete files that may be about other data files too.

    Attributes:
        files: all its delete files, even those that only Iceberg's own reader applies.
        path: absolute path of the data file.
        name: the data file as delete files name it.
        by_position: files of positions, of this data file and maybe others.
        by_vector: files of deletion vectors.
        by_equality: files of equality deletes.
    """

    files: tuple[str, ...]
    path: str
    name: str
    by_position: tuple[str, ...]
    by_vector: tuple[str, ...]
    by_equality: tuple[_EqualityDeletes, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        return self.files

    def positions(self) -> pa.Int64Array:
        nothing = np.empty(0, np.int64)
        found = [
            *(_by_position(path).get(self.name, nothing) for path in self.by_position),
            *(_in_vectors(path, self.name) for path in self.by_vector),
            *(_equal_rows(self.path, file) for file in self.by_equality),
        ]
        return as_arrow(np.unique(np.concatenate([nothing, *found])), pa.int64())


def why_not_applied(table: Table, schema: Schema, manifests: Iterable[ManifestFile]) -> str | None:
    """Return why this process does not apply the delete files of a version; None when it does."""
    for entry in _delete_entries(table, manifests):
        file, kind = entry.data_file, (entry.data_file.content, entry.data_file.file_format)
        if kind not in (_BY_POSITION, _BY_VECTOR, _BY_EQUALITY):
            return f"only Iceberg's own reader, in Spark, reads the delete file '{file.file_path}'"
        if kind == _BY_EQUALITY and _columns(table, schema, entry) is None:
            return f"'{file.file_path}' deletes rows by fields within columns, which only Iceberg's own reader compares"
    return None


def with_deletes_of_others(
    table: Table, schema: Schema, manifests: Sequence[ManifestFile], files: Sequence[DataFile], storage: pa.Schema
) -> list[DataFile]:
    """Return the data files of a version, each with the delete files that apply to it."""
    deletes = _Version(table, schema, _delete_entries(table, manifests), storage)
    if not deletes.entries:
        return list(files)
    data = (m for m in manifests if m.content == ManifestContent.DATA)
    entries = {local_path(e.data_file.file_path): e for m in data for e in read_entries(table.io, m)}
    return [replace(file, deletes=deletes.of(file, entries[file.path])) for file in files]


def _delete_entries(table: Table, manifests: Iterable[ManifestFile]) -> list[ManifestEntry]:
    return [e for m in manifests if m.content != ManifestContent.DATA for e in delete_entries(table, m)]


@dataclass(frozen=True)
class _Version:
    """The delete files of a version. Its attributes are like the arguments of :func:`with_deletes_of_others`."""

    table: Table
    schema: Schema
    entries: Sequence[ManifestEntry]
    storage: pa.Schema

    def of(self, file: DataFile, entry: ManifestEntry) -> Deletes | None:
        """Return the delete files that apply to a data file with this entry; None without any."""
        mine = [e for e in self.entries if _concerns(self.table, e, entry)]
        if not mine:
            return None
        rows = sum(e.data_file.record_count for e in mine if target_path(e) is not None)
        equal = [found for e in _of_kind(mine, _BY_EQUALITY) if (found := self._by_equality(e, file)) is not None]
        positions, vectors = (
            tuple(local_path(e.data_file.file_path) for e in _of_kind(mine, kind))
            for kind in (_BY_POSITION, _BY_VECTOR)
        )
        files, name = tuple(local_path(e.data_file.file_path) for e in mine), entry.data_file.file_path
        return _DeletesOfOthers(rows, files, file.path, name, positions, vectors, tuple(equal))

    def _by_equality(self, entry: ManifestEntry, file: DataFile) -> _EqualityDeletes | None:
        columns = _columns(self.table, self.schema, entry)
        if columns is None:
            return None
        stored = {f.metadata[FIELD_ID]: f for f in self.storage}
        in_data = in_file(pa.schema([stored.get(f.metadata[FIELD_ID], f) for f in columns]), file.partition)
        return _EqualityDeletes(local_path(entry.data_file.file_path), columns, in_data)


def _of_kind(entries: Iterable[ManifestEntry], kind: tuple[DataFileContent, FileFormat]) -> list[ManifestEntry]:
    return [e for e in entries if (e.data_file.content, e.data_file.file_format) == kind]


def _concerns(table: Table, delete: ManifestEntry, data: ManifestEntry) -> bool:
    """Return whether a delete file may be about a data file, as Iceberg's specification of scans says."""
    file, of = delete.data_file, data.data_file
    made, at = delete.sequence_number or 0, data.sequence_number or 0
    if file.content == DataFileContent.POSITION_DELETES:
        low, high = path_bounds(delete)
        name = of.file_path.encode()
        within = (low is None or low <= name[: len(low)]) and (high is None or name[: len(high)] <= high)
        return at <= made and within
    everywhere = table.specs()[file.spec_id].is_unpartitioned()
    return at < made and (everywhere or (file.spec_id == of.spec_id and file.partition == of.partition))


def _columns(table: Table, schema: Schema, entry: ManifestEntry) -> pa.Schema | None:
    """Return the columns that a delete file compares; None when one of them is a nested field."""
    fields: dict[int, NestedField] = {f.field_id: f for s in (*table.metadata.schemas, schema) for f in s.fields}
    wanted = entry.data_file.equality_ids or []
    if not wanted or not all(number in fields for number in wanted):
        return None
    return storage_schema(Schema(*(fields[number].model_copy(update={"required": False}) for number in wanted)))


# -- their contents ---------------------------------------------------------------------------------------


def _bytes(found: Mapping[str, np.ndarray]) -> int:
    return sum(positions.nbytes for positions in found.values())


_positions: Final[Cache[str, Mapping[str, np.ndarray]]] = Cache(_KEPT_BYTES, _bytes)
_vectors: Final[Cache[str, Mapping[str, tuple[int, int]]]] = Cache(1000)
_rows: Final[Cache[tuple[str, pa.Schema], pa.Table]] = Cache(_KEPT_BYTES, lambda rows: int(rows.nbytes))


def _by_position(path: str) -> Mapping[str, np.ndarray]:
    """Return data file -> its deleted positions, from a file of position deletes.

    Raises:
        TrinityError: BAD_DATA for a file that is missing or corrupt.
    """

    def read() -> Mapping[str, np.ndarray]:
        rows = _read(path, _POSITIONS)
        named = rows.column(0).combine_chunks().dictionary_encode()
        numbers, positions = as_numpy(named.indices), as_numpy(rows.column(1))
        return {name: positions[numbers == number] for number, name in enumerate(named.dictionary.to_pylist())}

    return _positions.get(path, read)


def _in_vectors(path: str, name: str) -> np.ndarray:
    """Return the deleted positions of a data file in a file of deletion vectors. Raises as :func:`_by_position`."""

    def read() -> Mapping[str, tuple[int, int]]:
        store = ObjectStore(path)
        try:
            with store.filesystem.open_input_file(store.location.for_arrow) as file:
                blobs = PuffinFile(file.read()).footer.blobs
            return {blob.properties[_REFERENCED]: (blob.offset, blob.length) for blob in blobs}
        except (OSError, ValueError, KeyError) as error:
            raise unreadable_deletes(path, error) from error

    found = _vectors.get(path, read).get(name)
    return np.empty(0, np.int64) if found is None else positions_in_file(path, found[0], found[1] - FRAME)


def _equal_rows(path: str, deletes: _EqualityDeletes) -> np.ndarray:
    """Return the positions of a data file's rows that equal a row of the delete file; NULL equals NULL.

    Raises:
        TrinityError: BAD_DATA for a file of either kind that is missing or corrupt.
    """
    with reporting_unreadable_file(path):
        rows = pa.Table.from_batches(stored_pages(path, deletes.in_data), deletes.in_data)
    gone = _rows.get((deletes.path, deletes.columns), lambda: _read(deletes.path, deletes.columns))
    numbers = np.zeros(len(rows) + len(gone), np.int64)
    for ours, theirs in zip(rows.columns, gone.columns, strict=True):
        both = pa.chunked_array([*ours.chunks, *theirs.cast(ours.type).chunks], ours.type).combine_chunks()
        encoded = both.dictionary_encode(null_encoding="encode")
        numbers = numbers * max(1, len(encoded.dictionary)) + as_numpy(encoded.indices)
        numbers = np.unique(numbers, return_inverse=True)[1]
    return np.flatnonzero(np.isin(numbers[: len(rows)], numbers[len(rows) :]))


def _read(path: str, columns: pa.Schema) -> pa.Table:
    try:
        return pa.Table.from_batches(stored_pages(path, columns), columns)
    except (OSError, MemoryError, pa.ArrowException) as error:
        raise unreadable_deletes(path, error) from error
