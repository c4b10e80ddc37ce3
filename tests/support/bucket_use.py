"""The use of a bucket: objects that a table's newest version does not need, and requests without an answer."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import read_manifest_list

import trinity
from tests.support.bucket_lake import BucketLake, objects
from tests.support.fault_proxy import LOST, Answer, Request
from tests.support.refusals import refusal
from trinity import Table
from trinity.storage import Location

_LOGS: Final = {
    "parquet": r"_trinity/log/(\d{20}(\.checkpoint)?|_newest)\.json",
    "delta": r"_delta_log/(\d{20}\.(json|crc|checkpoint\.parquet)|_last_checkpoint)",
    "iceberg": r"\b\B",  # none: its metadata names all files that it needs
}
_TRIES: Final = 24
"""Requests for one object, which is read twice; Java's own client also retries when a connection ends."""
_PROBE: Final = "_trinity/probe"
"""The object that tests the store's conditional puts; it stays."""


def unneeded(cloud: BucketLake, table: Table) -> list[str]:
    """Return the names of the objects below a table's location that its newest version does not need, without the
    format's log.

    Raises:
        AssertionError: an object that is needed is missing.
    """
    now = table.splits()
    needed = {path for file in (*now.files, *now.sidecar) for path in file.needs}
    if cloud.fmt == "iceberg":
        needed |= {str(Location.of(uri)) for uri in _metadata(cloud, table)}
    there = {f"s3://{name}" for name in objects(cloud.server, table.location)}
    assert needed <= there
    names = sorted(path.removeprefix(f"{table.location}/") for path in there - needed)
    return [name for name in names if not re.fullmatch(f"{_PROBE}|{_LOGS[cloud.fmt]}", name)]


def check_patience(cloud: BucketLake, answer: Answer | None) -> None:
    """Check that Spark gives up soon on a store that does not deliver data files. By default it tries thirty times and
    more.

    Args:
        lake: the catalog.
        answer: the store's answer to a request for a data file; None for no answer.
    """
    requests: list[Request] = []
    over = threading.Event()

    def denies(request: Request, ask: Any) -> Answer | None:
        if ".parquet" not in unquote(request.path) or request.method not in ("GET", "HEAD"):
            return None
        requests.append(request)
        if answer is None:
            over.wait()
        return answer or LOST

    with trinity.connect(catalogs={"lake": cloud.settings()}, engine="spark") as session:
        session.sql("CREATE TABLE t (k INT, v STRING)")
        session.table("t").append(pa.table({"k": [1], "v": ["a"]}))
        with cloud.server.proxy.faulty(denies):
            try:
                refusal("FILESYSTEM_ERROR", lambda: session.sql("UPDATE t SET v = 'b'"))
            finally:
                over.set()
        often = Counter((request.method, request.path) for request in requests)
        assert 1 < max(often.values()) <= _TRIES, often
        assert [row.v for row in session.table("t").to_df().collect()] == ["a"]


def _metadata(cloud: BucketLake, table: Table) -> Iterator[str]:
    """Yield the metadata file of an Iceberg table, and the files that it names."""
    options = cloud.server.options
    io = PyArrowFileIO(
        {
            "s3.endpoint": options["endpoint"],
            "s3.region": options["region"],
            "s3.access-key-id": options["access_key_id"],
            "s3.secret-access-key": options["secret_access_key"],
        }
    )
    with closing(sqlite3.connect(str(cloud.database["uri"]).removeprefix("sqlite:///"))) as database:
        found = database.execute(
            "SELECT metadata_location FROM iceberg_tables WHERE table_name = ?", [table.name.table]
        )
        [[newest]] = found.fetchall()
    yield newest
    with io.new_input(newest).open() as stream:
        metadata: dict[str, Any] = json.loads(stream.read())
    yield from (entry["metadata-file"] for entry in metadata["metadata-log"])
    yield from (entry["statistics-path"] for entry in metadata["statistics"])
    for snapshot in metadata["snapshots"]:
        yield snapshot["manifest-list"]
        yield from (m.manifest_path for m in read_manifest_list(io.new_input(snapshot["manifest-list"])))
