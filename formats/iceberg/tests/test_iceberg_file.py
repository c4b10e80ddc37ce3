"""The file of a SQLite catalog: made by the first table, by Spark's settings, or by another process meanwhile."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from pyiceberg.catalog.sql import SqlCatalog

from tests.support.adapter import KEYED, append
from tests.support.iceberg_lake import open_catalog


def test_an_empty_file_is_no_catalog_yet(tmp_path: Path) -> None:
    file = tmp_path / "w/catalog.db"
    file.parent.mkdir()
    file.touch()
    lake = open_catalog(tmp_path / "w")
    assert (lake.metadata.list_schemas(), lake.metadata.list_tables("default")) == (["default"], [])
    assert file.stat().st_size == 0
    lake.metadata.create_table(KEYED)
    assert open_catalog(tmp_path / "w").metadata.list_tables("default") == ["t"]


def test_one_that_others_make_meanwhile_is_opened_as_it_is(tmp_path: Path) -> None:
    lake = open_catalog(tmp_path / "w")
    assert lake.metadata.list_tables("default") == []
    theirs = SqlCatalog("other", uri=f"sqlite:///{tmp_path}/catalog.db")
    theirs.create_namespace("theirs")
    theirs.close()
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as older:  # as PyIceberg made it before version 0.11
        older.execute("ALTER TABLE iceberg_tables DROP COLUMN iceberg_type")
    (tmp_path / "w").mkdir()
    (tmp_path / "catalog.db").rename(tmp_path / "w/catalog.db")
    assert lake.metadata.list_tables("default") == []
    handle = lake.metadata.create_table(KEYED)
    append(lake, handle, (1, "a"))
    assert open_catalog(tmp_path / "w").metadata.get_table("default", "t") == replace(handle, id=None)


def test_the_settings_of_sparks_catalog_name_a_file_that_is_there(tmp_path: Path) -> None:
    lake = open_catalog(tmp_path / "w")
    assert not (tmp_path / "w").exists()
    uri = lake.spark_catalog_settings("lake")["spark.sql.catalog.lake.uri"]
    with closing(sqlite3.connect(uri.removeprefix("jdbc:sqlite:"))) as found:
        assert found.execute("SELECT namespace FROM iceberg_namespace_properties").fetchall() == [("default",)]
        assert found.execute("SELECT count(*) FROM iceberg_tables").fetchall() == [(0,)]
