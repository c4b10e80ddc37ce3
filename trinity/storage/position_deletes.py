"""Deleted rows as Parquet files of positions, in the layout of Iceberg's position delete files.

They are for formats without files of this kind. Each row is (``file_path``, ``pos``): a data file, and the position of
a deleted row in it. A file that Trinity writes has all positions of one data file, in order; a later one replaces it.
Also the encoding of Delta's deletion vectors.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from trinity.arrays import as_arrow, as_numpy
from trinity.errors import TrinityError
from trinity.spi import DataFile, Deletes, DeleteSink, RewriteTableHandle, SinkId
from trinity.storage.errors import system_trouble
from trinity.storage.file_schema import FIELD_ID
from trinity.storage.location import Location
from trinity.storage.parquet_files import open_parquet
from trinity.storage.parquet_sink import OWN_ENDING, SinkFile, attempt_id, file_errors, file_name, sync_folders_of
from trinity.storage.store import ObjectStore

DELETES: Final = "_trinity/deletes"
"""Folder of a table's files of positions, below the table's."""

_PATH: Final = "file_path"
_POS: Final = "pos"
_SCHEMA: Final = pa.schema(
    [
        pa.field(_PATH, pa.string(), nullable=False, metadata={FIELD_ID: b"2147483546"}),
        pa.field(_POS, pa.int64(), nullable=False, metadata={FIELD_ID: b"2147483545"}),
    ]
)
"""Columns and field ids of the Iceberg specification."""


@dataclass(frozen=True)
class PositionDeletes(Deletes):
    """Deleted rows in files of positions.

    Attributes:
        files: absolute paths of the files.
        of: the data file's name in these files; None if they are about this data file only.
    """

    files: tuple[str, ...]
    of: str | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        return self.files

    def positions(self) -> pa.Int64Array:
        found = [self._read(path) for path in self.files]
        return as_arrow(np.unique(np.concatenate(found)), pa.int64())

    def _read(self, path: str) -> np.ndarray:
        try:
            with open_parquet(path) as file:
                rows = file.read([_POS] if self.of is None else [_PATH, _POS])
            positions: np.ndarray = as_numpy(rows.column(_POS))
        except (OSError, MemoryError, pa.ArrowException, KeyError) as error:
            raise unreadable_deletes(path, error) from error
        if self.of is None:
            return positions
        mine: np.ndarray = as_numpy(pc.equal(rows.column(_PATH), self.of))
        return np.compress(mine, positions)

    def to_dict(self, store: ObjectStore) -> dict[str, Any]:
        """Return a JSON-ready form with paths relative to a table's store, which :meth:`from_dict` reads."""
        found: dict[str, Any] = {"rows": self.rows, "files": [store.relative(path) for path in self.files]}
        return found if self.of is None else {**found, "of": self.of}

    @classmethod
    def from_dict(cls, store: ObjectStore, data: Mapping[str, Any]) -> PositionDeletes:
        """Return the deleted rows that :meth:`to_dict` wrote."""
        return cls(data["rows"], tuple(store.path(name) for name in data["files"]), data.get("of"))


def with_earlier(file: DataFile, positions: pa.Int64Array) -> np.ndarray:
    """Return positions together with those that are deleted in the file already, ascending, each once."""
    before = [] if file.deletes is None else [as_numpy(file.deletes.positions())]
    return np.unique(np.concatenate([*before, as_numpy(positions)]))


def named_files(path: str) -> dict[str, int]:
    """Return data file -> number of its deleted rows in a file of positions.

    Raises:
        TrinityError: BAD_DATA for a file that is missing or corrupt.
    """
    try:
        with open_parquet(path) as file:
            found = pc.value_counts(file.read([_PATH]).column(_PATH))
    except (OSError, MemoryError, pa.ArrowException, KeyError) as error:
        raise unreadable_deletes(path, error) from error
    return {line["values"]: line["counts"] for line in found.to_pylist()}


@dataclass(frozen=True)
class DeletesFragment:
    """A delete sink's report about one data file.

    Attributes:
        of: the data file's path.
        deletes: all its deleted rows, earlier ones too.
        size: bytes of the files that record them.
    """

    of: str
    deletes: Deletes
    size: int


def unreadable_deletes(path: str, error: Exception) -> TrinityError:
    """Return the error for deleted rows that cannot be read: BAD_DATA, unless the system had trouble."""
    if (trouble := system_trouble(error, path)) is not None:
        return trouble
    what = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read ({error})"
    return TrinityError(
        "BAD_DATA",
        f"'{path}', which says what rows of a data file are deleted, {what}; restore it from a copy, or read "
        "an older version.",
    )


def deletes_of_fragments(fragments: Sequence[bytes]) -> list[DeletesFragment]:
    """Return the reports of :class:`PositionDeleteSink`, one for each data file."""
    found: dict[str, DeletesFragment] = {}
    for data in map(json.loads, fragments):
        new = DeletesFragment(data["of"], PositionDeletes(data["rows"], (data["path"],)), data["size"])
        if (other := found.get(new.of)) is not None:  # two sinks deleted rows of this file
            both = PositionDeletes(0, (*other.deletes.paths, *new.deletes.paths))
            new = DeletesFragment(new.of, replace(both, rows=len(both.positions())), other.size + new.size)
        found[new.of] = new
    return list(found.values())


class PositionDeleteSink(DeleteSink):
    """A sink that writes a file of positions for each data file."""

    encoding: ClassVar[str] = "DELTA_BINARY_PACKED"
    """Parquet's encoding of the positions: about a byte each."""
    ending: ClassVar[str] = OWN_ENDING
    """The ending of the files' names."""

    def __init__(self, rewrite: RewriteTableHandle, sink: SinkId) -> None:
        self._target = replace(rewrite.target, folder=f"{rewrite.table.location}/{DELETES}", ending=self.ending)
        self._sink = sink
        self._attempt = attempt_id()
        self._store = ObjectStore(self._target.folder)
        self._written: list[DeletesFragment] = []

    def delete_rows(self, file: DataFile, positions: pa.Int64Array) -> None:
        """Write the file's positions, with those that were deleted before."""
        gone = with_earlier(file, positions)
        name = file_name(self._target, self._sink, SinkFile(self._attempt, len(self._written)))
        path = self._store.path(name)
        # noted before it is written, so that an abort removes it
        self._written.append(DeletesFragment(file.path, PositionDeletes(len(gone), (path,)), 0))
        with file_errors(path):
            self._store.make_folder(sync=self._target.sync)
            self._write(path, self.data_file_name(file), gone)
            if self._target.sync:
                self._store.sync(name)
            size = self._store.stat(name)
        self._written[-1] = replace(self._written[-1], size=size.size if size else 0)

    def data_file_name(self, file: DataFile) -> str:
        """Return the name of a data file within a file of positions."""
        return file.path

    def finish(self) -> list[bytes]:
        """Sync the folders of the files, and return the fragments."""
        if self._written:
            sync_folders_of(self._target, [path for f in self._written for path in f.deletes.paths])
        return [
            json.dumps({"of": f.of, "rows": f.deletes.rows, "path": f.deletes.paths[0], "size": f.size}).encode()
            for f in self._written
        ]

    def abort(self) -> None:
        """Remove the files."""
        try:
            self._store.delete(self._store.relative(path) for f in self._written for path in f.deletes.paths)
        except TrinityError:
            return

    def _write(self, path: str, named: str, positions: np.ndarray) -> None:
        rows = pa.table([pa.repeat(pa.scalar(named), len(positions)), as_arrow(positions)], schema=_SCHEMA)
        pq.write_table(
            rows,
            Location.of(path).for_arrow,
            filesystem=self._store.filesystem,
            compression="zstd",
            use_dictionary=[_PATH],
            column_encoding={_POS: self.encoding},
        )


FRAME: Final = 8
"""Bytes around a deletion vector in a file: its length before it, its checksum after it."""
_MAGIC: Final = struct.pack("<I", 1681511377)
"""The first bytes of a vector."""


def vector_of(positions: np.ndarray) -> bytes:
    """Return the deletion vector of positions."""
    from pyroaring import BitMap64

    bits = BitMap64(positions.astype(np.uint64))
    bits.run_optimize()
    return _MAGIC + bytes(bits.serialize())


def in_frame(vector: bytes) -> bytes:
    """Return a deletion vector with its frame, as it lies in a file."""
    return len(vector).to_bytes(4, "big") + vector + zlib.crc32(vector).to_bytes(4, "big")


def positions_in(vector: bytes) -> np.ndarray:
    """Return the positions of a deletion vector, ascending. Raises ValueError for other bytes."""
    from pyroaring import BitMap64

    if vector[: len(_MAGIC)] != _MAGIC:
        raise ValueError("it is no bitmap that is known")
    return np.asarray(BitMap64.deserialize(vector[len(_MAGIC) :]).to_array()).astype(np.int64)


def positions_in_file(path: str, offset: int, size: int) -> np.ndarray:
    """Return the positions of a deletion vector in a file.

    Args:
        path: the file.
        offset: byte at which the vector's frame begins.
        size: bytes of the vector, without the frame.

    Raises:
        TrinityError: BAD_DATA for a file that is missing or damaged.
    """
    try:
        with ObjectStore(path).filesystem.open_input_file(Location.of(path).for_arrow) as file:
            found = bytes(file.read_at(size + FRAME, offset))
        length, vector, check = found[:4], found[4:-4], found[-4:]
        if length != size.to_bytes(4, "big") or check != zlib.crc32(vector).to_bytes(4, "big"):
            raise ValueError("its checksum is another one")
        return positions_in(vector)
    except (OSError, MemoryError, ValueError) as error:
        raise unreadable_deletes(path, error) from error
