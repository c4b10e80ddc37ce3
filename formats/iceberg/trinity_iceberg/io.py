"""Iceberg's own files, manifests and metadata, which have to be stored before the catalog's commit names them.

On a disk they are synced. In a bucket they are objects that go through the storage seam like all others, so that only
the seam knows how to reach the bucket.
"""

from __future__ import annotations

import re
from types import TracebackType
from typing import BinaryIO, Final

import pyarrow as pa
from pyiceberg.io import InputFile, OutputFile
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

from trinity.storage import Cache, Location, ObjectStore, in_bucket

__all__ = ["SyncedFileIO"]

_KEPT: Final = 32 * 1024 * 1024
"""Bytes of objects that a process keeps: a commit builds on the one before, whose files it would read again."""
_UNIQUE: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Part of a name that is unique."""


class SyncedFileIO(PyArrowFileIO):
    """PyIceberg's own, except that a local file is synced when it is closed, and that objects go through the seam."""

    def new_input(self, location: str) -> InputFile:  # type: ignore[override]
        """Return the file to read."""
        return _Object(location) if in_bucket(location) else super().new_input(location)

    def new_output(self, location: str) -> OutputFile:  # type: ignore[override]
        """Return the file to write."""
        if in_bucket(location):
            return _Object(location)
        scheme, _, path = self.parse_location(location, self.properties)
        found = super().new_output(location)
        return _SyncedFile(location, path, found._filesystem) if scheme == "file" else found

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Delete a file."""
        name = location if isinstance(location, str) else location.location
        if in_bucket(name):
            _Object(name).remove()
        else:
            super().delete(name)


class _SyncedFile(PyArrowFile):
    def create(self, overwrite: bool = False) -> BinaryIO:
        file = Location.of(self._path)
        last = file.name.endswith(".metadata.json")  # the last of a commit's files
        return ObjectStore(file.parent).writer(file.name, new=not overwrite, listed=last)


class _Object(InputFile, OutputFile):
    """An object: read by one request, and put by one."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        place = Location.of(location)
        self._store, self._name = ObjectStore(place.parent), place.name
        self._path = str(place)

    def __len__(self) -> int:
        if (known := _kept.peek(self._path)) is not None:
            return len(known)
        found = self._store.stat(self._name)
        if found is None:
            raise FileNotFoundError(self._path)
        return found.size

    def exists(self) -> bool:
        return self._store.exists(self._name)

    def open(self, seekable: bool = True) -> pa.BufferReader:
        def get() -> bytes:
            return self._store.get(self._name)

        return pa.BufferReader(_kept.get(self._path, get) if _UNIQUE.search(self._name) else get())

    def to_input_file(self) -> InputFile:
        return self

    def create(self, overwrite: bool = False) -> _Upload:
        """Return a stream into the object. Names have ids in them, so none overwrites another object."""
        return _Upload(self)

    def put(self, data: bytes) -> None:
        self._store.put(self._name, data)
        if _UNIQUE.search(self._name):
            _kept.put(self._path, data)

    def remove(self) -> None:
        self._store.delete([self._name])
        _kept.drop(lambda path: path == self._path)


class _Upload:
    """A stream whose bytes are put when it is closed, and never after an error."""

    def __init__(self, of: _Object) -> None:
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
