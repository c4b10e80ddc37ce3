"""A catalog in a bucket, of each format that can be there, and how sessions are opened on it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.fs as pf
import pyarrow.parquet as pq
import pytest

import trinity
from tests.support.fault_proxy import Proxy
from trinity import Column, Session, Table
from trinity.errors import TrinityError
from trinity.storage import AlreadyExists, Location, ObjectStore

FIRST = {"parquet": 0, "delta": 0, "iceberg": 1}
"""The version of a table that was made and has no rows yet."""
COLUMNS = [Column("k", "int"), Column("v", "string")]
ROWS = pa.table({"k": pa.array([1, 2], pa.int32()), "v": ["a", "b"]})
_GLUE: dict[str, Any] = {
    "type": "glue",
    "glue.region": "us-east-1",
    "glue.access-key-id": "somebody",
    "glue.secret-access-key": "of-the-tests-9f3b",
    "glue.max-retries": 1,
}
_ODD = {"parquet": "some where/100%", "delta": "some where/100%", "iceberg": "some where/ünd so"}
"""A path that others would misread, as far as the format's readers do not."""


class Server(Protocol):
    """A store of any kind; see :class:`~tests.support.object_store.ObjectServer`."""

    @property
    def proxy(self) -> Proxy: ...

    @property
    def options(self) -> dict[str, Any]: ...

    @property
    def secret(self) -> str: ...

    def new_bucket(self) -> str: ...

    def store(self, bucket: str) -> str: ...

    @property
    def files(self) -> pf.FileSystem: ...


@dataclass(frozen=True)
class BucketLake:
    """A catalog ``lake``.

    Attributes:
        fmt: its format.
        place: its warehouse.
        server: the store.
        database: what it needs beside the bucket.
    """

    fmt: str
    place: str
    server: Server = field(repr=False)
    database: Mapping[str, Any]

    def settings(self, **options: Any) -> dict[str, Any]:
        """The catalog's settings, told of the store by options other than the server's own."""
        given = {**self.server.options, **options}
        return {"connector": self.fmt, "warehouse": self.place, **self.database, "storage_options": given}

    @property
    def environment(self) -> dict[str, str]:
        """What tells another process of the store."""
        names = {"endpoint": "AWS_ENDPOINT_URL", "allow_http": "AWS_ALLOW_HTTP", "region": "AWS_REGION"}
        return {names.get(name, f"AWS_{name.upper()}"): str(value) for name, value in self.server.options.items()}

    @property
    def named(self) -> dict[str, Any]:
        """The catalog's settings for a process that is told of the store by :attr:`environment`."""
        return {name: value for name, value in self.settings().items() if name != "storage_options"}

    def connect(self, **options: Any) -> Session:
        """A session that has this catalog alone; options as of :meth:`settings`."""
        return trinity.connect(catalogs={"lake": self.settings(**options)})


def race(store: ObjectStore, writers: int) -> list[bool]:
    """Has so many threads put an object ``name`` if there is none, each its number; whether each one has."""

    def wins(number: int) -> bool:
        try:
            store.put_if_absent("name", b"%d" % number)
        except AlreadyExists:
            return False
        return True

    with ThreadPoolExecutor(writers) as threads:
        return list(threads.map(wins, range(writers)))


def bucket_lake(fmt: str, server: Server, bucket: str, database: Mapping[str, Any]) -> BucketLake:
    """A catalog of which nobody else knows."""
    return BucketLake(fmt, f"{server.store(bucket)}/{_ODD[fmt]}/{uuid.uuid4().hex}", server, database)


SERVERS = {"iceberg-postgres": "database", "iceberg-rest": "rest_catalog", "iceberg-glue": "glue"}
"""Kind of a catalog -> fixture of the server that has its names."""


def database_of(kind: str, folder: Path, server: Any = None) -> dict[str, Any]:
    """The options that say where a catalog's names are.

    Args:
        kind: ``parquet`` or ``delta``, which need none; ``iceberg`` on SQLite; one of :data:`SERVERS`.
        folder: where SQLite's file may be.
        server: what the fixture of :data:`SERVERS` gives.
    """
    match kind:
        case "iceberg":
            return {"uri": f"sqlite:///{folder}/catalog.db"}
        case "iceberg-postgres":
            address = "postgresql+psycopg://{user}@{host}:{port}/{dbname}".format(**server)
            return {"uri": address, "catalog-name": uuid.uuid4().hex}
        case "iceberg-rest":
            return {"type": "rest", "uri": server}
        case "iceberg-glue":
            return {**_GLUE, "glue.endpoint": server}
    return {}


def stored(server: Server, table: Table, version: int | None = None) -> list[dict[str, Any]]:
    """The rows of a plain table as another program reads its listed files."""
    files = [Location.of(f.path).for_arrow for f in table.splits(version).files]
    rows = [row for file in files for row in pq.read_table(file, filesystem=server.files).to_pylist()]
    return sorted(rows, key=lambda row: str(row["k"]))


def objects(server: Server, place: str) -> list[str]:
    """The names of the objects below a place."""
    selected = pf.FileSelector(Location.of(place).for_arrow, recursive=True, allow_not_found=True)
    return [str(found.path) for found in server.files.get_file_info(selected) if found.type == pf.FileType.File]


def refusal(code: str, call: Any) -> str:
    """The message with which a call is refused."""
    with pytest.raises(TrinityError) as caught:
        call()
    assert caught.value.code == code, caught.value.message
    return caught.value.message
