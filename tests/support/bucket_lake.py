"""A catalog in a bucket, of each format, and the sessions that use it."""

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
from trinity.storage import AlreadyExists, Location, ObjectStore

FIRST = {"parquet": 0, "delta": 0, "iceberg": 1}
"""Format -> the version of a new table without rows."""
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
"""A path that others would misread, with the characters that the format's own readers support."""


class Server(Protocol):
    """An object store of any kind; see :class:`~tests.support.object_store.ObjectServer`."""

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
    """A catalog ``lake`` in a bucket.

    Attributes:
        fmt: the table format.
        place: the warehouse.
        server: the object store.
        database: the options of the catalog's database, if it has one.
    """

    fmt: str
    place: str
    server: Server = field(repr=False)
    database: Mapping[str, Any]

    def settings(self, **options: Any) -> dict[str, Any]:
        """Return the catalog's settings. Options override the server's own storage options."""
        given = {**self.server.options, **options}
        return {"connector": self.fmt, "warehouse": self.place, **self.database, "storage_options": given}

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables by which another process reaches the store."""
        names = {"endpoint": "AWS_ENDPOINT_URL", "allow_http": "AWS_ALLOW_HTTP", "region": "AWS_REGION"}
        return {names.get(name, f"AWS_{name.upper()}"): str(value) for name, value in self.server.options.items()}

    @property
    def named(self) -> dict[str, Any]:
        """The catalog's settings for a process that reaches the store by :attr:`environment`."""
        return {name: value for name, value in self.settings().items() if name != "storage_options"}

    def connect(self, **options: Any) -> Session:
        """Return a session that has this catalog alone. Options are those of :meth:`settings`."""
        return trinity.connect(catalogs={"lake": self.settings(**options)})


def race(store: ObjectStore, writers: int) -> list[bool]:
    """Let several threads put the same object at once if it is absent. Return whether the put of each succeeded."""

    def wins(number: int) -> bool:
        try:
            store.put_if_absent("name", b"%d" % number)
        except AlreadyExists:
            return False
        return True

    with ThreadPoolExecutor(writers) as threads:
        return list(threads.map(wins, range(writers)))


def bucket_lake(fmt: str, server: Server, bucket: str, database: Mapping[str, Any]) -> BucketLake:
    """Return a catalog at a new place, which no other test uses."""
    return BucketLake(fmt, f"{server.store(bucket)}/{_ODD[fmt]}/{uuid.uuid4().hex}", server, database)


STORES = {"s3": "object_server", "gcs": "google_server", "azure": "azure_server"}
"""Kind of object store -> fixture of its server."""


def lake_in_store(request: pytest.FixtureRequest, folder: Path) -> BucketLake:
    """Return a catalog in a new bucket; the request's parameter is the store and the format, such as ``gcs-delta``."""
    kind, _, fmt = str(request.param).partition("-")
    server: Server = request.getfixturevalue(STORES[kind])
    return bucket_lake(fmt, server, server.new_bucket(), database_of(fmt, folder))


SERVERS = {"iceberg-postgres": "database", "iceberg-rest": "rest_catalog", "iceberg-glue": "glue"}
"""Kind of catalog -> fixture of its server."""


def database_of(kind: str, folder: Path, server: Any = None) -> dict[str, Any]:
    """Return the options that name a catalog's database.

    Args:
        kind: ``parquet`` or ``delta``, which need none; ``iceberg`` on SQLite; or one of :data:`SERVERS`.
        folder: the folder for SQLite's file.
        server: the value of the fixture of :data:`SERVERS`.
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
    """Return the rows of a plain table, read from its listed files without Trinity."""
    files = [Location.of(f.path).for_arrow for f in table.splits(version).files]
    rows = [row for file in files for row in pq.read_table(file, filesystem=server.files).to_pylist()]
    return sorted(rows, key=lambda row: str(row["k"]))


def objects(server: Server, place: str) -> list[str]:
    """Return the names of the objects below a place."""
    selected = pf.FileSelector(Location.of(place).for_arrow, recursive=True, allow_not_found=True)
    return [str(found.path) for found in server.files.get_file_info(selected) if found.type == pf.FileType.File]
