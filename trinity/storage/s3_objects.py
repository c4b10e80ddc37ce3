"""The objects of an S3 bucket, by obstore; data files are opened by Arrow's own client.

There are no folders, nothing is renamed and nothing synced: an object that was put is there for everybody. All answers
are those of the newest state; each is one request, but for listings of many objects.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NoReturn
from urllib.parse import urlsplit

from trinity.errors import TrinityError
from trinity.storage.entries import Entry, Stat
from trinity.storage.errors import AlreadyExists
from trinity.storage.location import Location
from trinity.storage.s3_errors import plain_text, s3_trouble, without_conditional_put
from trinity.storage.s3_options import S3Options, options_of

if TYPE_CHECKING:
    from obstore.store import S3Store
    from pyarrow.fs import FileSystem

__all__ = ["S3Objects"]

_ATTEMPTS: Final = 6
_PATIENCE: Final = timedelta(seconds=18)
"""The time for which a request is made again, so that an error is told within half a minute."""
_SILENCE: Final = timedelta(seconds=10)
_AT_ONCE: Final = 1000
"""Objects that one request deletes."""

_proven: set[tuple[str, S3Options]] = set()
_proving = threading.Lock()


class S3Objects:
    """See :class:`~trinity.storage.entries.Objects`; paths are the texts of locations.

    Args:
        root: a location in the bucket, below which there is permission to write.
    """

    def __init__(self, root: Location) -> None:
        self._root = root

    @property
    def _client(self) -> S3Store:
        return _client(self._root.bucket, options_of(self._root.bucket).resolved())

    @property
    def filesystem(self) -> FileSystem:
        return _filesystem(options_of(self._root.bucket).resolved())

    # -- reading ----------------------------------------------------------------------------------------

    def exists(self, path: str) -> bool:
        return self.stat(path) is not None

    def is_folder(self, path: str) -> bool:
        with _told(path):
            pages = self._client.list(f"{_key(path)}/".lstrip("/") or None, chunk_size=1)
            return any(len(page) for page in pages)

    def stat(self, path: str) -> Stat | None:
        import obstore

        with _told(path), suppress(FileNotFoundError):
            found = obstore.head(self._client, _key(path))
            return Stat(found["size"], int(found["last_modified"].timestamp()) * 10**9, found["e_tag"] or "")
        return None

    def read(self, path: str) -> bytes:
        import obstore

        with _told(path):
            return bytes(obstore.get(self._client, _key(path)).bytes())

    def list(self, root: str, prefix: str, after: str | None) -> Iterator[Entry]:
        below = _key(f"{root}/{prefix}" if prefix else root)
        top = f"{_key(root)}/".lstrip("/")
        with _told(root):
            for page in self._client.list(below or None, offset=f"{top}{after}" if after else None):
                for meta in page:
                    name = str(meta["path"]).removeprefix(top)
                    yield Entry(name, meta["size"], int(meta["last_modified"].timestamp() * 1000))

    def names_in(self, folder: str) -> Sequence[str]:
        with _told(folder):
            found = self._client.list_with_delimiter(_key(folder) or None)
        objects = [str(meta["path"]) for meta in found["objects"]]
        return [path.rpartition("/")[2] for path in (*objects, *found["common_prefixes"])]

    def walk(self, root: str, hidden: str, endings: tuple[str, ...]) -> Iterator[tuple[str, Stat]]:
        for entry in self.list(root, "", None):
            parts = entry.path.split("/")
            if entry.path.endswith(endings) and not any(part[:1] in hidden for part in parts):
                yield f"{root}/{entry.path}", Stat(entry.size, entry.modified_ms * 10**6, "")

    # -- writing ----------------------------------------------------------------------------------------

    def put_new(self, path: str, data: bytes) -> None:
        self._prove()
        try:
            done = self._put_new(path, data)
        except TrinityError as error:
            if error.code != "FILESYSTEM_ERROR" or not self._is_ours(path, data):
                raise
            return
        if not done and not self._is_ours(path, data):
            raise AlreadyExists(path.rpartition("/")[2])

    def _put_new(self, path: str, data: bytes) -> bool:
        """Puts an object; False when there is one."""
        import obstore
        from obstore.exceptions import AlreadyExistsError, BaseError

        try:
            obstore.put(self._client, _key(path), data, mode="create")
        except AlreadyExistsError:
            return False
        except BaseError as error:
            if "ConditionalRequestConflict" in plain_text(error):  # another one is being put at this moment
                return False
            raise s3_trouble(error, path) from error
        return True

    def _is_ours(self, path: str, data: bytes) -> bool:
        """True when what is there is what was to be put: by a request whose answer was lost."""
        try:
            return self.read(path) == data
        except (FileNotFoundError, TrinityError):
            return False

    def _prove(self) -> None:
        """Refuses a store that would put over what is there. Once for each bucket and way to reach it.

        The object that shows it stays: the next process finds it there, and one that is killed leaves nothing else.
        """
        known = self._root.bucket, options_of(self._root.bucket).resolved()
        with _proving:
            if known in _proven:
                return
            probe = str(self._root.join("_trinity", "probe"))
            try:
                if self._put_new(probe, b"1") and self._put_new(probe, b"2"):
                    self.remove([probe])
                    raise without_conditional_put(probe)
            except TrinityError as error:
                raise _lacking(error, probe) from error
            _proven.add(known)

    def replace(self, path: str, data: bytes, *, sync: bool) -> None:
        import obstore

        with _told(path):
            obstore.put(self._client, _key(path), data)

    def remove(self, paths: Iterable[str]) -> None:
        import obstore

        left = list(paths)
        for start in range(0, len(left), _AT_ONCE):
            some = left[start : start + _AT_ONCE]
            with _told(some[0]), suppress(FileNotFoundError):
                obstore.delete(self._client, [_key(path) for path in some])

    def remove_below(self, folder: str) -> None:
        with suppress(TrinityError):
            self.remove(f"{folder}/{entry.path}" for entry in list(self.list(folder, "", None)))

    def make_folder(self, path: str, *, sync: bool) -> None:
        """Nothing: names need no folders."""

    def writer(self, path: str, *, new: bool, listed: bool) -> BinaryIO:
        raise _unsupported(path, "a stream into an object")

    def move(self, path: str, new: str) -> None:
        raise _unsupported(path, "another name for an object")

    def set_modified(self, path: str, modified_ns: int) -> None:
        raise _unsupported(path, "another time for an object")

    def sync(self, path: str) -> None:
        """Nothing: an object that was put lasts."""

    def sync_folders(self, folders: Iterable[str]) -> None:
        """Nothing."""


def _key(path: str) -> str:
    return Location.of(path).key


@contextmanager
def _told(path: str) -> Iterator[None]:
    """Tells obstore's errors as Trinity's; a missing object is a FileNotFoundError."""
    from obstore.exceptions import BaseError

    try:
        yield
    except BaseError as error:
        raise s3_trouble(error, path) from error


def _lacking(error: TrinityError, probe: str) -> TrinityError:
    known = "NotImplemented" in error.message or "501" in error.message
    return without_conditional_put(probe) if known else error


def _unsupported(path: str, what: str) -> NoReturn:
    raise TrinityError("NOT_SUPPORTED", f"'{path}': S3 does not have {what}, which this would need.")


@lru_cache(maxsize=64)
def _client(bucket: str, options: S3Options) -> S3Store:
    from obstore.store import S3Store

    given: dict[str, Any] = {
        "endpoint": options.endpoint,
        "region": options.region or "us-east-1",
        "access_key_id": options.access_key_id,
        "secret_access_key": options.secret_access_key,
        "session_token": options.session_token,
        "virtual_hosted_style_request": options.virtual_hosted_style,
        "skip_signature": options.anonymous or None,
    }
    return S3Store(
        bucket,
        config={name: value for name, value in given.items() if value is not None},  # type: ignore[arg-type]
        client_options={
            "allow_http": bool(options.allow_http),
            "connect_timeout": timedelta(seconds=5),
            "read_timeout": _SILENCE,
            "timeout": timedelta(minutes=10),
        },
        retry_config={
            "max_retries": _ATTEMPTS,
            "retry_timeout": _PATIENCE,
            "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=3), "base": 2},
        },
    )


@lru_cache(maxsize=64)
def _filesystem(options: S3Options) -> FileSystem:
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem

    address = urlsplit(options.endpoint or "")
    return S3FileSystem(
        access_key=options.access_key_id,
        secret_key=options.secret_access_key,
        session_token=options.session_token,
        anonymous=options.anonymous,
        region=options.region or "us-east-1",
        scheme=address.scheme or "https",
        endpoint_override=f"{address.netloc}{address.path.rstrip('/')}" or None,
        force_virtual_addressing=options.virtual_hosted_style,
        connect_timeout=5,
        request_timeout=_SILENCE.total_seconds(),
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
        allow_delayed_open=True,  # a small file is one request instead of three
    )
