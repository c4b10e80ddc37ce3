"""Iceberg's own files, manifests and metadata, on disk before the catalog's commit names them."""

from __future__ import annotations

from typing import BinaryIO

from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

from trinity.storage import Location, ObjectStore

__all__ = ["SyncedFileIO"]


class SyncedFileIO(PyArrowFileIO):
    """PyIceberg's own, but that a local file is synced when it is closed."""

    def new_output(self, location: str) -> PyArrowFile:
        """The file that is about to be written."""
        scheme, _, path = self.parse_location(location, self.properties)
        found = super().new_output(location)
        return _SyncedFile(location, path, found._filesystem) if scheme == "file" else found


class _SyncedFile(PyArrowFile):
    def create(self, overwrite: bool = False) -> BinaryIO:
        file = Location.of(self._path)
        last = file.name.endswith(".metadata.json")  # of a commit's files
        return ObjectStore(file.parent).writer(file.name, new=not overwrite, listed=last)
