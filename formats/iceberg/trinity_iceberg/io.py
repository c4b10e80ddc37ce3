"""Iceberg's own files, manifests and metadata, on disk before the catalog's commit names them."""

from __future__ import annotations

import io
import os
from pathlib import Path

from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

from trinity.storage import make_folder, sync_folders

__all__ = ["SyncedFileIO"]


class SyncedFileIO(PyArrowFileIO):
    """PyIceberg's own, but that a local file is synced when it is closed."""

    def new_output(self, location: str) -> PyArrowFile:
        """The file that is about to be written."""
        scheme, _, path = self.parse_location(location, self.properties)
        found = super().new_output(location)
        return _SyncedFile(location, path, found._filesystem) if scheme == "file" else found


class _SyncedFile(PyArrowFile):
    def create(self, overwrite: bool = False) -> _SyncedStream:
        make_folder(os.path.dirname(self._path))
        return _SyncedStream(self._path, "w" if overwrite else "x")


class _SyncedStream(io.BufferedWriter):
    def __init__(self, path: str, mode: str) -> None:
        super().__init__(io.FileIO(path, mode))
        self._path = Path(path)

    def close(self) -> None:
        """Syncs the file; and its folder with the metadata file, which is the last one of a commit."""
        if self.closed:
            return
        self.flush()
        os.fsync(self.fileno())
        super().close()
        if self._path.name.endswith(".metadata.json"):
            sync_folders([self._path.parent])
