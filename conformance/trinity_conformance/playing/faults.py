"""Has an operation of storage, a call of the adapter's metadata, or a task of its sinks go wrong.

A process that ends is played in this one: the operation raises :class:`Crashed`, which nothing catches, and no
operation after it has any effect, so that nothing is tidied up. Errors, lost answers and
repeated requests are what a store may give by the contract of :class:`~trinity.storage.ObjectStore`: a put is whole or
not at all, and one of which nobody can say anything is COMMIT_STATE_UNKNOWN.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NoReturn, TypeVar, cast

import pyarrow as pa
from pyarrow.fs import FileInfo, FileSystem, FileSystemHandler, PyFileSystem

from trinity.storage import Entry, Stat
from trinity.storage.entries import Objects
from trinity.storage.errors import OutcomeUnknown
from trinity.storage.watching import watched_by
from trinity_conformance.playing.traces import Fault

if TYPE_CHECKING:
    from trinity.spi import Connector

__all__ = ["Crashed", "Injection", "inject"]

T = TypeVar("T")

_STOPS: Final = frozenset(("crash before", "crash after"))
_READ: Final = frozenset(("error",))
_CHANGED: Final = _STOPS | {"error", "error after"}
"""What can happen to an operation that changes something, and must not be done twice."""
_REPEATED: Final = _CHANGED | {"twice"}
_PUT: Final = _CHANGED | {"unknown"}
_COMMITS: Final = (
    "finish_insert", "finish_merge", "finish_rewrite", "finish_resolve", "truncate", "vacuum",
)  # fmt: skip
"""The calls that commit."""
_POINTS: Final = frozenset(("put", "replace", "move"))
"""The operations of a store by which a commit may take effect."""
_ELSEWHERE: Final = "commit"
"""The operation by which one takes effect elsewhere, as in a database."""


class Crashed(BaseException):
    """The process has ended, as far as the adapter can tell."""


@dataclass
class Injection:
    """A fault that is injected into one of the operations of a step.

    Attributes:
        fault: what goes wrong; None for nothing.
        operation: the one that went wrong, in words; empty as long as none did.
        seen: (operation, what can happen to it) of all, in their order.
        at_commit: True once an operation by which a commit may take effect was seen within a call that commits.
        at_point: True when the operation that went wrong was such.
    """

    fault: Fault | None = None
    operation: str = ""
    seen: list[tuple[str, frozenset[str]]] = field(default_factory=list)
    at_commit: bool = False
    at_point: bool = False
    _within: int = 0
    _dead: bool = False
    _mutex: Any = field(default_factory=threading.RLock)
    """One that its holder may take again, as a stream may be closed, and counted, whenever memory is tidied up."""

    def do(
        self,
        verb: str,
        what: str,
        kinds: frozenset[str],
        act: Callable[[], T],
        torn: Callable[[], object] | None = None,
    ) -> T:
        """Do an operation, or have it go wrong.

        Args:
            verb: what it does.
            what: to what.
            kinds: what can happen to it.
            act: does it.
            torn: does a part of it.
        """
        kind = self._turn(verb, what, kinds | ({"torn"} if torn else set()))
        if kind == "crash before":
            self._die()
        if kind == "torn" and torn is not None:
            torn()
            self._die()
        if kind == "unknown":
            raise OutcomeUnknown("no answer came, and nobody can be asked")
        if kind == "error":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        done = act()
        if kind == "crash after":
            self._die()
        if kind == "twice":
            return act()
        if kind == "error after":
            if "unknown" in kinds:
                raise OutcomeUnknown("no answer came, and nobody can be asked")
            raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
        return done

    def commit(self, what: str, act: Callable[[], T]) -> T:
        """Do a commit that is no operation of a store; the process may end before or after it."""
        return self.do(_ELSEWHERE, what, _STOPS, act)

    def repeats(self, task: str) -> bool:
        """Return whether a task of the sinks is run twice."""
        return self._turn("run", task, frozenset(("twice",))) == "twice"

    @property
    def over(self) -> bool:
        """True once the process has ended: what is closed afterwards has no effect."""
        return self._dead

    @contextmanager
    def within_commit(self) -> Iterator[None]:
        """Note that a call that commits is under way."""
        self._within += 1
        try:
            yield
        finally:
            self._within -= 1

    def _turn(self, verb: str, what: str, kinds: frozenset[str]) -> str:
        """Return what happens to the next operation; empty for nothing."""
        with self._mutex:
            if self._dead:
                raise Crashed("the process has ended")
            within = self._within > 0
            self.at_commit = self.at_commit or (within and verb in _POINTS)
            point = within and (verb in _POINTS or verb == _ELSEWHERE)
            fault = self.fault
            number = sum(fault is not None and fault.kind in could for _, could in self.seen)
            self.seen.append((f"{verb} {what}", kinds))
            if fault is None or fault.kind not in kinds or fault.at != number:
                return ""
            self.operation, self.at_point = f"{fault.kind}: {verb} {what}", point
            return fault.kind

    def _die(self) -> NoReturn:
        self._dead = True
        raise Crashed("the process has ended")


@contextmanager
def inject(connector: Connector, fault: Fault | None) -> Iterator[Injection]:
    """Number the operations of an adapter within the block, and have one go wrong."""
    found = Injection(fault)
    with ExitStack() as stack:
        stack.enter_context(watched_by(lambda objects: _Objects(objects, found), found.commit))
        for call in _COMMITS:
            stack.enter_context(_instead(connector.metadata, call, lambda method, name: _call(found, method, name)))
        for task in ("create_page_sink", "create_merge_sink", "create_delete_sink"):
            stack.enter_context(_instead(connector.sinks, task, lambda make, name: _task(found, make)))
        yield found


@contextmanager
def _instead(of: object, name: str, wrapped: Callable[[Callable[..., Any], str], Callable[..., Any]]) -> Iterator[None]:
    """Replace a method of an object within the block."""
    setattr(of, name, wrapped(getattr(of, name), name))
    try:
        yield
    finally:
        delattr(of, name)


def _call(injection: Injection, method: Callable[..., Any], name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        recorded = options.get("txn") is not None or (name in ("finish_insert", "finish_merge") and len(arguments) > 2)
        kinds = _STOPS | {"twice"} if recorded else _STOPS

        def commit() -> Any:
            with injection.within_commit():
                return method(*arguments, **options)

        if not recorded:
            return injection.do("call", name, kinds, commit)
        answers: list[Any] = []
        injection.do("call", name, kinds, lambda: answers.append(commit()))
        return answers[0]

    return call


def _task(injection: Injection, make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a maker of sinks, of which one may be made twice: a task that ran again, and whose first files stay."""

    def made(*arguments: Any) -> Any:
        if not injection.repeats("a task of the sinks"):
            return make(*arguments)
        return _Twice(make(*arguments), make(*arguments))

    return made


class _Twice:
    """A sink whose task runs twice: all that is asked of it is asked of both runs, and the second one answers."""

    def __init__(self, *runs: Any) -> None:
        self._runs = runs

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *arguments: [getattr(run, name)(*arguments) for run in self._runs][-1]


# -- operations of storage ------------------------------------------------------------------------------


def _short(path: str) -> str:
    """Return the end of a path, which is what tells objects of a table apart."""
    return "/".join(path.rstrip("/").split("/")[-2:])


@dataclass
class _Objects:
    """The objects of a store, each operation of which may go wrong."""

    inner: Objects
    injection: Injection

    @cached_property
    def filesystem(self) -> FileSystem:
        return PyFileSystem(_Files(self.inner.filesystem, self.injection))

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
        return self.injection.do(verb, _short(path), _READ, act)

    # -- writing ----------------------------------------------------------------------------------------

    def put_new(self, path: str, data: bytes) -> None:
        self.injection.do("put", _short(path), _PUT, lambda: self.inner.put_new(path, data))

    def replace(self, path: str, data: bytes, *, sync: bool) -> None:
        self.injection.do("replace", _short(path), _REPEATED, lambda: self.inner.replace(path, data, sync=sync))

    def remove(self, paths: Iterable[str]) -> None:
        if found := [*paths]:
            half = found[: len(found) // 2]
            torn = (lambda: self.inner.remove(half)) if half else None
            self.injection.do(
                "delete", ", ".join(map(_short, found)), _REPEATED, lambda: self.inner.remove(found), torn
            )

    def remove_below(self, folder: str) -> None:
        self.injection.do("delete all below", _short(folder), _REPEATED, lambda: self.inner.remove_below(folder))

    def make_folder(self, path: str, *, sync: bool) -> None:
        self.injection.do("make folder", _short(path), _REPEATED, lambda: self.inner.make_folder(path, sync=sync))

    def writer(self, path: str, *, new: bool, listed: bool) -> BinaryIO:
        def put(data: bytes) -> None:
            with self.inner.writer(path, new=new, listed=listed) as stream:
                stream.write(data)

        return cast(BinaryIO, _Stream(self.injection, path, put))

    def move(self, path: str, new: str) -> None:
        self.injection.do("move", f"{_short(path)} to {_short(new)}", _CHANGED, lambda: self.inner.move(path, new))

    def set_modified(self, path: str, modified_ns: int) -> None:
        self.injection.do("date", _short(path), _REPEATED, lambda: self.inner.set_modified(path, modified_ns))

    def sync(self, path: str) -> None:
        self.injection.do("sync", _short(path), _REPEATED, lambda: self.inner.sync(path))

    def sync_folders(self, folders: Iterable[str]) -> None:
        found = [*folders]
        self.injection.do("sync", ", ".join(map(_short, found)), _REPEATED, lambda: self.inner.sync_folders(found))


class _Stream:
    """A stream into an object, whose bytes are written once it is closed: whole, the first half of them, or not."""

    def __init__(self, injection: Injection, path: str, put: Callable[[bytes], object]) -> None:
        self.closed = False
        self._injection, self._path, self._put = injection, path, put
        self._data = bytearray()

    def write(self, data: bytes) -> int:
        self._data += data
        return len(data)

    def tell(self) -> int:
        return len(self._data)

    def flush(self) -> None:
        """Nothing is written before the end."""

    def close(self) -> None:
        if self.closed or self._injection.over:
            return
        self.closed = True
        data = bytes(self._data)
        half = data[: len(data) // 2]
        self._injection.do("write", _short(self._path), _CHANGED, lambda: self._put(data), lambda: self._put(half))

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
    """pyarrow's file system of a store: what opens and writes files may go wrong, all else is passed on."""

    def __init__(self, inner: FileSystem, injection: Injection) -> None:
        self.inner, self.injection = inner, injection

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Files) and self.inner == other.inner

    __hash__ = None  # type: ignore[assignment]

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return self.injection.do("open", _short(path), _READ, lambda: self.inner.open_input_stream(path))

    def open_input_file(self, path: str) -> pa.NativeFile:
        return self.injection.do("open", _short(path), _READ, lambda: self.inner.open_input_file(path))

    def open_output_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        def put(data: bytes) -> None:
            with self.inner.open_output_stream(path) as stream:
                stream.write(data)

        return pa.PythonFile(_Stream(self.injection, path, put), mode="w")

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
