"""The operations of a store: each can be made to fail, or to wait for its turn."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, BinaryIO, Final, Protocol, TypeVar, cast

import pyarrow as pa
from pyarrow.fs import FileInfo, FileSystem, FileSystemHandler, PyFileSystem

from trinity.storage import Entry, Stat
from trinity.storage.entries import Objects
from trinity.storage.local_objects import LocalObjects

T = TypeVar("T")

STOPS: Final = frozenset(("crash before", "crash after"))
READING: Final = frozenset(("error",))
CHANGING: Final = STOPS | {"error", "error after"}
"""Kinds of faults of an operation that changes something, and must not be done twice."""
REPEATABLE: Final = CHANGING | {"twice"}
PUTTING: Final = CHANGING | {"unknown"}


class OperationRunner(Protocol):
    """An executor of the operations of a store."""

    @property
    def over(self) -> bool:
        """True once the process has ended: closing files afterwards has no effect."""

    def do(
        self,
        verb: str,
        what: str,
        kinds: frozenset[str],
        act: Callable[[], T],
        torn: Callable[[], object] | None = None,
    ) -> T:
        """Do an operation.

        Args:
            verb: name of the operation, such as ``put``.
            what: the objects that it concerns.
            kinds: kinds of faults that it can have.
            act: does the operation.
            torn: does a part of the operation.
        """


def _short(path: str) -> str:
    """Return the end of a path, which identifies an object of a table."""
    return "/".join(path.rstrip("/").split("/")[-2:])


@dataclass
class Operations:
    """The objects of a store; a runner does each operation on them.

    Attributes:
        inner: the objects.
        runner: does the operations, or makes them fail.
    """

    inner: Objects
    runner: OperationRunner

    @cached_property
    def filesystem(self) -> FileSystem:
        return PyFileSystem(_Files(self.inner.filesystem, self.runner))

    # -- reading ----------------------------------------------------------------------------------------

    def exists(self, path: str) -> bool:
        return self._read("look for", path, lambda: self.inner.exists(path))

    def is_folder(self, path: str) -> bool:
        return self._read("look for", path, lambda: self.inner.is_folder(path))

    def stat(self, path: str) -> Stat | None:
        return self._read("look at", path, lambda: self.inner.stat(path))

    def read(self, path: str) -> bytes:
        return self._read("read", path, lambda: self.inner.read(path))

    def list(self, root: str, prefix: str, after: str | None) -> Iterable[Entry]:
        return self._read("list", f"{root}/{prefix}", lambda: [*self.inner.list(root, prefix, after)])

    def names_in(self, folder: str) -> Sequence[str]:
        return self._read("list", folder, lambda: self.inner.names_in(folder))

    def walk(self, root: str, hidden: str, endings: tuple[str, ...]) -> Iterator[tuple[str, Stat]]:
        return iter(self._read("walk", root, lambda: [*self.inner.walk(root, hidden, endings)]))

    def _read(self, verb: str, path: str, act: Callable[[], T]) -> T:
        return self.runner.do(verb, _short(path), READING, act)

    # -- writing ----------------------------------------------------------------------------------------

    def put_new(self, path: str, data: bytes) -> None:
        torn = (lambda: self._begin_put(path, data)) if isinstance(self.inner, LocalObjects) else None
        self.runner.do("put", _short(path), PUTTING, lambda: self.inner.put_new(path, data), torn)

    def _begin_put(self, path: str, data: bytes) -> None:
        """Leave the remains of an interrupted put on a disk: a part, under a name that begins with a dot."""
        folder, _, name = path.rpartition("/")
        with self.inner.writer(f"{folder}/.{name}.{uuid.uuid4().hex}", new=True, listed=False) as stream:
            stream.write(data[: len(data) // 2])

    def replace(self, path: str, data: bytes, *, sync: bool) -> None:
        self.runner.do("replace", _short(path), REPEATABLE, lambda: self.inner.replace(path, data, sync=sync))

    def remove(self, paths: Iterable[str]) -> None:
        if found := [*paths]:
            half = found[: len(found) // 2]
            torn = (lambda: self.inner.remove(half)) if half else None
            self.runner.do("delete", ", ".join(map(_short, found)), REPEATABLE, lambda: self.inner.remove(found), torn)

    def remove_below(self, folder: str) -> None:
        self.runner.do("delete all below", _short(folder), REPEATABLE, lambda: self.inner.remove_below(folder))

    def make_folder(self, path: str, *, sync: bool) -> None:
        self.runner.do("make folder", _short(path), REPEATABLE, lambda: self.inner.make_folder(path, sync=sync))

    def writer(self, path: str, *, new: bool, listed: bool) -> BinaryIO:
        def put(data: bytes) -> None:
            with self.inner.writer(path, new=new, listed=listed) as stream:
                stream.write(data)

        return cast(BinaryIO, _Stream(self.runner, path, put))

    def move(self, path: str, new: str) -> None:
        self.runner.do("move", f"{_short(path)} to {_short(new)}", CHANGING, lambda: self.inner.move(path, new))

    def set_modified(self, path: str, modified_ns: int) -> None:
        self.runner.do("date", _short(path), REPEATABLE, lambda: self.inner.set_modified(path, modified_ns))

    def sync(self, path: str) -> None:
        self.runner.do("sync", _short(path), REPEATABLE, lambda: self.inner.sync(path))

    def sync_folders(self, folders: Iterable[str]) -> None:
        found = [*folders]
        self.runner.do("sync", ", ".join(map(_short, found)), REPEATABLE, lambda: self.inner.sync_folders(found))


class _Stream:
    """A stream into an object, whose bytes are written once it is closed: whole, the first half of them, or not."""

    def __init__(self, runner: OperationRunner, path: str, put: Callable[[bytes], object]) -> None:
        self.closed = False
        self._runner, self._path, self._put = runner, path, put
        self._data = bytearray()

    def write(self, data: bytes) -> int:
        self._data += data
        return len(data)

    def tell(self) -> int:
        return len(self._data)

    def flush(self) -> None:
        """Do nothing: the data are written at the end."""

    def close(self) -> None:
        if self.closed or self._runner.over:
            return
        self.closed = True
        data = bytes(self._data)
        half = data[: len(data) // 2]
        self._runner.do("write", _short(self._path), CHANGING, lambda: self._put(data), lambda: self._put(half))

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Files(FileSystemHandler):  # type: ignore[misc]
    """pyarrow's file system of a store: opening and writing files are operations, other calls are passed on."""

    def __init__(self, inner: FileSystem, runner: OperationRunner) -> None:
        self.inner, self.runner = inner, runner

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Files) and self.inner == other.inner

    __hash__ = None  # type: ignore[assignment]

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return self.runner.do("open", _short(path), READING, lambda: self.inner.open_input_stream(path))

    def open_input_file(self, path: str) -> pa.NativeFile:
        return self.runner.do("open", _short(path), READING, lambda: self.inner.open_input_file(path))

    def open_output_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        def put(data: bytes) -> None:
            with self.inner.open_output_stream(path) as stream:
                stream.write(data)

        return pa.PythonFile(_Stream(self.runner, path, put), mode="w")

    def open_append_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        return self.inner.open_append_stream(path)

    def get_type_name(self) -> str:
        return f"watched {self.inner.type_name}"

    def get_file_info(self, paths: list[str]) -> list[FileInfo]:
        return cast("list[FileInfo]", self.inner.get_file_info(paths))

    def get_file_info_selector(self, selector: Any) -> list[FileInfo]:
        return cast("list[FileInfo]", self.inner.get_file_info(selector))

    def create_dir(self, path: str, recursive: bool) -> None:
        self.inner.create_dir(path, recursive=recursive)

    def delete_dir(self, path: str) -> None:
        self.inner.delete_dir(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        self.inner.delete_dir_contents(path, missing_dir_ok=missing_dir_ok)

    def delete_root_dir_contents(self) -> None:
        self.inner.delete_dir_contents("", accept_root_dir=True)

    def delete_file(self, path: str) -> None:
        self.inner.delete_file(path)

    def move(self, src: str, dest: str) -> None:
        self.inner.move(src, dest)

    def copy_file(self, src: str, dest: str) -> None:
        self.inner.copy_file(src, dest)

    def normalize_path(self, path: str) -> str:
        return str(self.inner.normalize_path(path))
