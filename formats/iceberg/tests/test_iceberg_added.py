"""Files that another engine adds to a table of Trinity's as they are, by ``add_files``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.adapter import KEYED, append, code_of, stored
from tests.support.iceberg_lake import with_pyiceberg
from trinity.spi import DataFile, TableHandle
from trinity_iceberg import IcebergConnector


@pytest.fixture
def handle(lake: IcebergConnector) -> TableHandle:
    """Make a keyed table that is partitioned by the first column of its key."""
    return lake.metadata.create_table(dataclasses.replace(KEYED, partition_by=("id",)))


def add(lake: IcebergConnector, handle: TableHandle, rows: dict[str, Any]) -> str:
    """Add a file in partition 7 that has some columns, and a mapping of names, as ``add_files`` does."""
    path = Path(handle.location) / "data" / "theirs.parquet"
    pq.write_table(pa.table(rows), path)
    theirs = with_pyiceberg(lake, handle)
    with theirs.transaction() as changes:
        changes.set_properties({"schema.name-mapping.default": theirs.schema().name_mapping.model_dump_json()})
    file = DataFile(str(path), path.stat().st_size, 1, partition={"id": 7})
    lake.metadata.finish_insert(lake.metadata.begin_insert(handle), [file.to_fragment()])
    return path.name


def test_values_in_metadata_alone_are_refused(lake: IcebergConnector, handle: TableHandle) -> None:
    append(lake, handle, (1, "a"))
    kept = lake.metadata.get_splits(handle).version
    name = add(lake, handle, {"v": ["theirs"]})
    calls: list[Callable[[], object]] = [
        lambda: lake.metadata.get_splits(handle),
        lambda: append(lake, handle, (2, "b")),
        lambda: lake.metadata.begin_merge(handle, {}),
        lambda: lake.metadata.begin_rewrite(handle, ()),
    ]
    for call in calls:
        code, message = code_of(call)
        assert code == "NOT_SUPPORTED"
        assert name in message
        assert "column 'id'" in message
        assert "rewrite_data_files" in message
    assert len(lake.metadata.get_splits(dataclasses.replace(handle, version=kept)).files) == 1


def test_a_file_that_has_all_columns_is_read(lake: IcebergConnector, handle: TableHandle) -> None:
    append(lake, handle, (1, "a"))
    add(lake, handle, {"id": pa.array([7], pa.int64()), "v": ["theirs"]})
    append(lake, handle, (2, "b"))
    assert sorted(row["id"] for row in stored(lake, handle)) == [1, 2, 7]
