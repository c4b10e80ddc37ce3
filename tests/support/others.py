"""Tables that other writers make without Spark: their rows, and the functions that write them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake
from pyarrow import dataset
from pyiceberg.catalog.sql import SqlCatalog

KEYED = {"primary-key": "id", "watermark-key": "ts", "tombstone-key": "deleted"}
FIRST = pa.table(
    {
        "id": pa.array([1, 2, 3, None], pa.int64()),
        "ts": pa.array([10, 10, 10, 10], pa.int64()),
        "deleted": pa.array([False, False, False, False]),
        "v": ["a", "b", "c", "nobody"],
        "p": ["x", "y", "x", "x"],
    }
)
SECOND = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 4], pa.int64()),
        "ts": pa.array([5, 20, 20, 1, 1], pa.int64()),
        "deleted": pa.array([False, False, True, None, None]),
        "v": ["late", "b2", "c2", "d", "d again"],
        "p": ["x", "y", "x", "x", "x"],
    }
)


def delta_rs_by_partition(folder: Path, rows: pa.Table) -> None:
    write_deltalake(str(folder), rows, mode="append", partition_by=["p"])


def pyarrow_dataset(folder: Path, rows: pa.Table) -> None:
    name = f"load-{len(list(folder.iterdir())) if folder.exists() else 0}" + "-{i}.parquet"
    kind = dataset.partitioning(pa.schema([("p", pa.string())]), flavor="hive")
    dataset.write_dataset(
        rows,
        folder,
        format="parquet",
        partitioning=kind,
        basename_template=name,
        existing_data_behavior="overwrite_or_ignore",
    )


def pyiceberg(folder: Path, rows: pa.Table) -> None:
    lake(folder).create_table_if_not_exists("ns.t", rows.schema, location=f"file://{folder}").append(rows)


def lake(folder: Path) -> SqlCatalog:
    catalog = SqlCatalog("others", uri=f"sqlite:///{folder.parent}/others.db", warehouse=f"file://{folder.parent}")
    catalog.create_namespace_if_not_exists("ns")
    return catalog
