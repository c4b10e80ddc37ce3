"""The objects of a table in a bucket that its newest version does not need, as a vacuum is to leave none."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import read_manifest_list

from tests.support.bucket_lake import BucketLake, objects
from trinity.storage import Location
from trinity.table import Table

__all__ = ["unneeded"]

_LOGS: Final = {
    "parquet": r"_trinity/log/\d{20}(\.checkpoint)?\.json",
    "delta": r"_delta_log/(\d{20}\.(json|crc|checkpoint\.parquet)|_last_checkpoint)",
    "iceberg": r"\b\B",  # nothing: its metadata says what it needs
}
_PROBE: Final = "_trinity/probe"
"""Shows that the store has put if absent, and stays."""


def unneeded(lake: BucketLake, table: Table) -> list[str]:
    """Their names below the table; other names than the format's are needed by nobody.

    Raises:
        AssertionError: something that is needed is not there.
    """
    now = table.splits()
    needed = {path for file in (*now.files, *now.sidecar) for path in file.needs}
    if lake.fmt == "iceberg":
        needed |= {str(Location.of(uri)) for uri in _metadata(lake, table)}
    there = {f"s3://{name}" for name in objects(lake.server, table.location)}
    assert needed <= there
    names = sorted(path.removeprefix(f"{table.location}/") for path in there - needed)
    return [name for name in names if not re.fullmatch(f"{_PROBE}|{_LOGS[lake.fmt]}", name)]


def _metadata(lake: BucketLake, table: Table) -> Iterator[str]:
    """What an Iceberg table's metadata names, itself first."""
    options = lake.server.options
    io = PyArrowFileIO(
        {
            "s3.endpoint": options["endpoint"],
            "s3.region": options["region"],
            "s3.access-key-id": options["access_key_id"],
            "s3.secret-access-key": options["secret_access_key"],
        }
    )
    with closing(sqlite3.connect(str(lake.database["uri"]).removeprefix("sqlite:///"))) as database:
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
