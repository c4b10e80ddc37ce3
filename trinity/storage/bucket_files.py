"""A bucket as a pyarrow file system, through the obstore client that all other requests use.

It is for kinds of stores whose options Arrow's own clients do not support. It only opens and writes files; Trinity uses
no other method of a file system.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from pyarrow import PythonFile
from pyarrow.fs import FileInfo, FileSelector, FileSystemHandler, FileType, PyFileSystem

from trinity.errors import TrinityError
from trinity.storage.errors import reporting_store_errors
from trinity.storage.location import Location

if TYPE_CHECKING:
    from obstore.store import ObjectStore


def bucket_files(store: str, client: ObjectStore) -> PyFileSystem:
    """Return the file system of a bucket; paths are ``bucket/key`` (:attr:`~trinity.storage.Location.for_arrow`)."""
    return PyFileSystem(_Files(store, client))


class _Files(FileSystemHandler):  # type: ignore[misc]
    def __init__(self, store: str, client: ObjectStore) -> None:
        self._store = store
        self._client = client

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Files) and (self._store, self._client) == (other._store, other._client)

    __hash__ = None  # type: ignore[assignment]

    def get_type_name(self) -> str:
        return "trinity"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[FileInfo]:
        return [self._info(path) for path in paths]

    def open_input_file(self, path: str) -> PythonFile:
        return PythonFile(_Reading(self._location(path), self._client), mode="r")

    def open_input_stream(self, path: str) -> PythonFile:
        return self.open_input_file(path)

    def open_output_stream(self, path: str, metadata: Any) -> PythonFile:
        return PythonFile(_Writing(self._location(path), self._client), mode="w")

    def _location(self, path: str) -> Location:
        return Location(f"/{path.partition('/')[2]}", self._store)

    def _info(self, path: str) -> FileInfo:
        import obstore

        location = self._location(path)
        try:
            with reporting_store_errors(str(location)):
                found = obstore.head(self._client, location.key)
        except FileNotFoundError:
            return FileInfo(path, FileType.NotFound)
        return FileInfo(path, FileType.File, size=found["size"], mtime=found["last_modified"])

    def get_file_info_selector(self, selector: FileSelector) -> NoReturn:
        _unused(selector)

    def create_dir(self, path: str, recursive: bool) -> NoReturn:
        _unused(path, recursive)

    def delete_dir(self, path: str) -> NoReturn:
        _unused(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> NoReturn:
        _unused(path, missing_dir_ok)

    def delete_root_dir_contents(self) -> NoReturn:
        _unused()

    def delete_file(self, path: str) -> NoReturn:
        _unused(path)

    def move(self, src: str, dest: str) -> NoReturn:
        _unused(src, dest)

    def copy_file(self, src: str, dest: str) -> NoReturn:
        _unused(src, dest)

    def open_append_stream(self, path: str, metadata: Any) -> NoReturn:
        _unused(path, metadata)


def _unused(*args: object) -> NoReturn:
    raise NotImplementedError(*args)


class _Reading:
    """A file object through which pyarrow reads an object in parts."""

    def __init__(self, location: Location, client: ObjectStore) -> None:
        import obstore

        self._path = str(location)
        with reporting_store_errors(self._path):
            self._file = obstore.open_reader(client, location.key)
        self.closed = False

    def read(self, size: int = -1) -> Any:
        with reporting_store_errors(self._path):
            return memoryview(self._file.readall() if size < 0 else self._file.read(size))

    def seek(self, offset: int, whence: int = 0) -> int:
        with reporting_store_errors(self._path):
            return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def size(self) -> int:
        return self._file.size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._file.close()


class _Writing:
    """A file object through which pyarrow writes an object, which appears whole once it is closed."""

    def __init__(self, location: Location, client: ObjectStore) -> None:
        import obstore

        self._path = str(location)
        with reporting_store_errors(self._path):
            self._file = obstore.open_writer(client, location.key)
        self.closed = False

    def write(self, data: Any) -> int:
        with reporting_store_errors(self._path):
            return self._file.write(bytes(data))

    def flush(self) -> None:
        """Do nothing: parts are sent when they are large enough."""

    def tell(self) -> int:
        raise NotImplementedError

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            try:
                with reporting_store_errors(self._path):
                    self._file.close()
            except FileNotFoundError as error:
                raise TrinityError("FILESYSTEM_ERROR", f"'{self._path}' cannot be written: {error}.") from error
