"""Reads and writes of Iceberg's own files, manifests and metadata, through the storage seam like all other files.

They have to be stored before the catalog's commit names them, so on a disk they are synced.
"""

from __future__ import annotations

import re
from types import TracebackType
from typing import BinaryIO, Final

import pyarrow as pa
from pyiceberg.io import FileIO, InputFile, OutputFile

from trinity.storage import Cache, Location, ObjectStore

_KEPT: Final = 32 * 1024 * 1024
"""How many bytes of objects a process keeps: a commit would else read the files of the commit before again."""
_UNIQUE: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Part of a name that is unique."""


class SyncedFileIO(FileIO):
    """PyIceberg's interface to files, by the storage seam. PyIceberg's own implementation takes a second to load."""

    def new_input(self, location: str) -> InputFile:
        """Return the file to read."""
        return StoredFile(location)

    def new_output(self, location: str) -> OutputFile:
        """Return the file to write."""
        return StoredFile(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Delete a file."""
        StoredFile(location if isinstance(location, str) else location.location).remove()


class StoredFile(InputFile, OutputFile):
    """A file that is read whole. In a bucket one request reads it, and one puts it."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        file_location = Location.of(location)
        self._store, self._name = ObjectStore(file_location.parent), file_location.name
        self._path = str(file_location)
        self._kept = not file_location.on_disk and _UNIQUE.search(self._name) is not None

    def __len__(self) -> int:
        """Return the number of bytes. Raises FileNotFoundError."""
        if (known := _kept.peek(self._path)) is not None:
            return len(known)
        found = self._store.stat(self._name)
        if found is None:
            raise FileNotFoundError(self._path)
        return found.size

    def exists(self) -> bool:
        """Return whether the file exists."""
        return self._store.exists(self._name)

    def open(self, seekable: bool = True) -> pa.BufferReader:
        """Return the file's bytes. Raises FileNotFoundError."""

        def get() -> bytes:
            return self._store.get(self._name)

        return pa.BufferReader(_kept.get(self._path, get) if self._kept else get())

    def to_input_file(self) -> InputFile:
        """Return this file, to be read."""
        return self

    def create(self, overwrite: bool = False) -> BinaryIO | _Upload:
        """Return a stream into the file. In a bucket ``overwrite`` is ignored: names have ids, so none exists twice."""
        if not self._store.on_disk:
            return _Upload(self)
        last = self._name.endswith(".metadata.json")  # the last of a commit's files
        return self._store.writer(self._name, new=not overwrite, listed=last)

    def put(self, data: bytes) -> None:
        """Put the file's bytes."""
        self._store.put(self._name, data)
        if self._kept:
            _kept.put(self._path, data)

    def remove(self) -> None:
        """Delete the file, if it exists."""
        self._store.delete([self._name])
        _kept.drop(lambda path: path == self._path)


class _Upload:
    """A stream whose bytes are put when it is closed; nothing is put if its block ends with an error."""

    def __init__(self, of: StoredFile) -> None:
        self._of = of
        self._data = bytearray()
        self._closed = False

    def write(self, b: bytes) -> int:
        self._data += b
        return len(b)

    def tell(self) -> int:
        return len(self._data)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._of.put(bytes(self._data))

    def __enter__(self) -> _Upload:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()


_kept: Final[Cache[str, bytes]] = Cache(_KEPT, len)
