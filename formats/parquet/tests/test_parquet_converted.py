"""A folder of Trinity's that is made another format's table in place (CONVERT TO DELTA): both keep their files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, convert_to_deltalake, write_deltalake

import trinity
from tests.support.refusals import refused
from trinity import Column, Table

OPTIONS = {"watermark-key": "w", "tombstone-key": "gone"}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Make a table in which keys 0 and 2 are live, and 1 is deleted; it has a base and a sidecar, and no log."""
    columns = [Column("k", "bigint"), Column("w", "bigint"), Column("gone", "boolean")]
    session = trinity.connect(tmp_path / "w", engine="local")
    made = session.create_table("parquet.default.t", columns, primary_key=["k"], properties=OPTIONS)
    for w in (1, 2):
        put_kept(made, *((k, w) for k in range(3)))
    made.delete([1])
    made.compact(full=True)
    made.vacuum("0 seconds")
    return made


def put_kept(table: Table, *rows: tuple[int, int]) -> None:
    table.upsert([{"k": k, "w": w, "gone": False} for k, w in rows])


def keys(found: pa.Table) -> list[int]:
    return sorted(found["k"].to_pylist())


def test_a_folder_is_converted_to_delta(table: Table) -> None:
    convert_to_deltalake(table.location)
    write_deltalake(table.location, pa.table({"k": [7], "w": [1], "gone": [False]}), mode="append", schema_mode="merge")
    put_kept(table, (1, 1), (9, 1))
    table.compact(full=True)
    assert keys(table.to_arrow()) == [0, 2, 9]
    for call in (lambda: table.vacuum("0 seconds"), lambda: table.session.drop_table(str(table.name))):
        with refused("NOT_SUPPORTED", "'parquet.default.t'", "_delta_log", "'_trinity'"):
            call()
    theirs = DeltaTable(table.location)
    assert keys(theirs.to_pyarrow_table()) == [0, 2, 7]
    shutil.rmtree(Path(table.location, "_delta_log"))
    assert table.vacuum("0 seconds").files > 0
    assert keys(table.to_arrow()) == [0, 2, 9]
    table.session.drop_table(str(table.name))
    assert not Path(table.location).exists()


def test_the_folder_is_left_to_the_other_table(table: Table) -> None:
    convert_to_deltalake(table.location)
    shutil.rmtree(Path(table.location, "_trinity"))
    with refused("TABLE_NOT_FOUND", "t"):
        table.session.table(str(table.name))
    assert keys(DeltaTable(table.location).to_pyarrow_table()) == [0, 2]


def test_metadata_of_iceberg_are_noticed(table: Table) -> None:
    Path(table.location, "metadata").mkdir()
    Path(table.location, "metadata", "v1.metadata.json").write_text("{}")
    with refused("NOT_SUPPORTED", "metadata", "'_trinity'"):
        table.vacuum("0 seconds")
