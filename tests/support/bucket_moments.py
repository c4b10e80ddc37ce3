"""The states of a bucket during a call: the ones that a killed process can leave.

A process can be killed before a request is sent, or after it took effect, also before its answer has arrived. Requests
that only read leave the store unchanged, so the states before and after each of the others are all there are.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import obstore
from obstore.store import S3Store

from tests.support.bucket_lake import BucketLake
from tests.support.fault_proxy import Answer, Request

_JOURNALS = ("", "-journal", "-wal")


@dataclass(frozen=True)
class Moment:
    """The state of a warehouse at one moment.

    Attributes:
        where: the request that was about to be sent, or had taken effect.
        objects: name -> bytes of all objects below the warehouse.
        database: name -> bytes of the files of the catalog's database, if it has one.
    """

    where: str
    objects: dict[str, bytes] = field(repr=False)
    database: dict[str, bytes] = field(repr=False)

    @property
    def state(self) -> tuple[dict[str, bytes], dict[str, bytes]]:
        """The objects and the database, without the name of the moment."""
        return self.objects, self.database


class Moments:
    """The states of a warehouse, recorded one by one, each of which can be put back.

    Args:
        lake: a catalog of Parquet or Delta, or of Iceberg with a database in a file.
    """

    def __init__(self, cloud: BucketLake) -> None:
        bucket, _, self._below = cloud.place.removeprefix("s3://").partition("/")
        known: Any = {name: value for name, value in cloud.server.options.items() if name != "allow_http"}
        self._store: Any = S3Store(bucket, config=known, client_options={"allow_http": True})
        database = str(cloud.database.get("uri", "")).removeprefix("sqlite:///")
        self._database = Path(database) if database else None
        self._mutex = threading.Lock()
        self._bytes: dict[str, bytes] = {}  # by MD5, which is the store's e-tag
        self.found: list[Moment] = []

    def take(self, where: str) -> None:
        """Record the state of the warehouse, unless it is the same as the last one recorded."""
        moment = Moment(where, {name: self._read(name, tag) for name, tag in self._listed().items()}, self._files())
        if not self.found or self.found[-1].state != moment.state:
            self.found.append(moment)

    def around(self, request: Request, ask: Callable[[], Answer]) -> Answer | None:
        """Record the states before and after a request that writes, while no other request is served."""
        if request.method in ("GET", "HEAD"):
            return None
        with self._mutex:
            moment = f"{request.method} {request.path.partition('?')[0].rpartition(self._below)[2] or request.path}"
            self.take(f"before {moment}")
            answer = ask()
            self.take(f"after {moment}")
            return answer

    def put_back(self, moment: Moment) -> Moment:
        """Restore the warehouse to a recorded state."""
        there = self._listed()
        if gone := [name for name in there if name not in moment.objects]:
            obstore.delete(self._store, gone)
        for name, data in moment.objects.items():
            if there.get(name) != hashlib.md5(data).hexdigest():
                obstore.put(self._store, name, data)
        if self._database:
            for ending in _JOURNALS:
                Path(f"{self._database}{ending}").unlink(missing_ok=True)
            for name, data in moment.database.items():
                self._database.with_name(name).write_bytes(data)
        return moment

    def _listed(self) -> dict[str, str]:
        """Return name -> e-tag of the objects below the warehouse."""
        pages = obstore.list(self._store, self._below)
        return {meta["path"]: str(meta["e_tag"]).strip('"') for page in pages for meta in page}

    def _read(self, name: str, tag: str) -> bytes:
        if tag not in self._bytes:
            self._bytes[tag] = bytes(obstore.get(self._store, name).bytes())
        return self._bytes[tag]

    def _files(self) -> dict[str, bytes]:
        if self._database is None:
            return {}
        files = [Path(f"{self._database}{ending}") for ending in _JOURNALS]
        return {file.name: file.read_bytes() for file in files if file.exists()}


@contextlib.contextmanager
def watched(cloud: BucketLake) -> Iterator[Moments]:
    """Record the states of a warehouse during the block, from its beginning to its end."""
    moments = Moments(cloud)
    moments.take("begin")
    with cloud.server.proxy.faulty(moments.around):
        yield moments
    moments.take("end")
