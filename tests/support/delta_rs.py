"""delta-rs, which reads and writes a bucket without Trinity, and commits by conditional puts as well."""

from __future__ import annotations

from typing import Any

import deltalake
import pyarrow as pa

from tests.support.bucket_lake import BucketLake
from trinity import Table


def by_delta_rs(table: Table, cloud: BucketLake, version: int | None = None) -> deltalake.DeltaTable:
    """Return the table as delta-rs opens it."""
    return deltalake.DeltaTable(table.location, version=version, storage_options=_known(cloud))


def append_by_delta_rs(cloud: BucketLake, place: str, first: int, **options: Any) -> None:
    """Append two rows, or those of the option ``rows``, by delta-rs, which makes the table if it does not exist."""
    rows = options.pop("rows", pa.table({"k": [first, first + 1], "v": ["a", f"v{first}"]}))
    often = deltalake.CommitProperties(max_commit_retries=100)  # it gives up after 15 lost races
    known = _known(cloud)
    deltalake.write_deltalake(place, rows, mode="append", storage_options=known, commit_properties=often, **options)


def _known(cloud: BucketLake) -> dict[str, str]:
    return {f"aws_{name}": str(value) for name, value in cloud.server.options.items()}
