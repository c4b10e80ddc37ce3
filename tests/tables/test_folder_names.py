"""Names are data (N1): names with characters that are special on a disk."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import trinity
from tests.support.odd_names import QUICK, quoted
from tests.support.refusals import refused
from trinity import Column, Session, TableName
from trinity.external.registry import Registration, Registry
from trinity.storage import FolderCatalog, ObjectStore
from trinity.storage.folder_names import folder_name, name_of
from trinity.storage.local_folders import empty_trash, move_to_trash

pytestmark = pytest.mark.inner

HOSTILE = [
    "../../outside", "a#b", "_a", "\U0001f600" * 255, 'a"\n/b', "catalog.db-journal", ".", "..", "...", "/", "/tmp",
    "a/b", "a\\b", "c:", "a?b", "a%2fb", "%", "a*b", "<a>", "a|b", ".a", "a.", " a", "a ", " ", "~", "~~", "a~2eb",
    "k=v", "a,b", "a@v1", "x" * 255, "\xe4" * 255, "\t", "\x7f", "\u202e", "e\u0301", "$t", "a;b", "{a}", "[a]",
    "_trinity", "_delta_log", "a.b", "it's", "catalog.db", "metadata", ".dropped-" + "0" * 32, "\xfcn\xef x", "a+b",
]  # fmt: skip
FEW = 6
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=120)
NEAR = st.text(st.sampled_from("aB~/%2e.#_ \n\xe4\xc4"), min_size=1, max_size=4)


@QUICK
@given(st.one_of(NAMES, NEAR, NEAR.map(lambda name: name * 60), st.sampled_from(HOSTILE)))
def test_a_folder_name_stays_where_it_is_put(name: str) -> None:
    folder = folder_name(name)
    assert os.path.normpath(f"/parent/{folder}") == f"/parent/{folder}"
    assert os.path.dirname(f"/parent/{folder}") == "/parent"
    assert len(folder.encode()) <= 255
    assert not re.search(r"""[\x00-\x1f"#%*+,/:;<=>?@\[\\\]^`{|}\x7f]""", folder)
    assert folder[0] not in "._ "
    assert folder[-1] not in ". "
    assert folder_name(name.lower()) == folder
    assert name_of(folder) == name.lower() or ("~~" in folder and name_of(folder) is None)


@QUICK
@given(NEAR, NEAR, st.sampled_from([1, 60]))
def test_names_that_differ_have_folders_that_differ_in_any_case(one: str, other: str, times: int) -> None:
    same = folder_name(one * times).casefold() == folder_name(other * times).casefold()
    assert same == ((one * times).lower() == (other * times).lower())


@pytest.mark.parametrize(
    "name", ["orders", "Orders_2", "a-b", "stra\xdfe", "\xfcn\xef x", "\u6570\u636e", "v1.2", "x" * 255]
)
def test_ordinary_names_are_their_folders(name: str) -> None:
    assert folder_name(name) == name.lower()


@QUICK
@given(st.text(max_size=12), NAMES)
def test_what_no_name_is_spelled_by_is_no_name(folder: str, name: str) -> None:
    for given_folder in (folder, name, folder + folder_name(name)):
        found = name_of(given_folder)
        assert found is None or folder_name(found) == given_folder


def files(folder: Path) -> set[str]:
    return {str(p) for p in folder.rglob("*")}


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder; check at the end that the folders beside and above it are unchanged."""
    for folder in (tmp_path, tmp_path / "deep", tmp_path / "deep/outside", tmp_path / "outside"):
        folder.mkdir(exist_ok=True)
        (folder / "precious").write_text("kept")
    before = files(tmp_path)
    yield tmp_path / "deep/warehouse"
    assert {f for f in files(tmp_path) if not f.startswith(str(tmp_path / "deep/warehouse"))} == before


def one_row(session: Session, name: TableName) -> None:
    table = session.create_table(name, [Column("k", "int")])
    table.append(pa.table({"k": pa.array([1], pa.int32())}))
    assert [os.path.exists(f.path) for f in session.table(name).splits().files] == [True]


@pytest.mark.parametrize("connector", ["parquet", pytest.param("iceberg", marks=pytest.mark.full), "memory"])
def test_any_name_is_a_folder_of_its_own(guarded: Path, connector: str) -> None:
    options = {"warehouse": str(guarded)} if connector != "memory" else {}
    with trinity.connect(catalogs={"c": {"connector": connector, **options}}) as session:
        metadata = session.connector("c").metadata
        before = files(guarded)
        for name in HOSTILE:
            metadata.create_schema(name)
            one_row(session, TableName("c", name, name))
        assert metadata.list_schemas() == sorted([*HOSTILE, "default"])
        for name in HOSTILE:
            one_row(session, TableName("c", "default", name))
            assert metadata.list_tables(name) == [name]
        assert session.list_tables("c", "default") == sorted(HOSTILE)
        for name in HOSTILE:
            session.drop_table(TableName("c", name, name))
            metadata.drop_schema(name)
            session.drop_table(TableName("c", "default", name))
        assert metadata.list_schemas() == ["default"]
        left = files(guarded) - before
        assert {f for f in left if "/_trinity" not in f and not f.endswith(("/default", "/catalog.db"))} == set()


@pytest.mark.tiered
@pytest.mark.parametrize("names", [HOSTILE[:FEW], pytest.param(HOSTILE[FEW:], marks=pytest.mark.full)])
def test_any_name_is_taken_by_sql(guarded: Path, spark: SparkSession, fmt: str, names: list[str]) -> None:
    with trinity.connect(guarded, spark=spark) as session:
        for name in names:
            full = f"{fmt}.{quoted(name)}.{quoted(name)}"
            session.sql(f"CREATE SCHEMA {fmt}.{quoted(name)}")
            session.sql(f"CREATE TABLE {full} (k INT, p STRING) PARTITIONED BY (p)")
            rows = pa.table({"k": pa.array([1, 2], pa.int32()), "p": [name[:9], None]})
            done = [session.table(full).append(rows, txn=(name, 1)).skipped for _ in range(2)]
            assert done == [False, True]
        reads = [f"SELECT p FROM {fmt}.{quoted(n)}.{quoted(n)} WHERE k = 1" for n in names]
        assert sorted(row.p for row in session.sql(" UNION ALL ".join(reads)).collect()) == sorted(n[:9] for n in names)
        for name in names:
            full = f"{fmt}.{quoted(name)}.{quoted(name)}"
            assert [r.tableName for r in session.sql(f"SHOW TABLES IN {fmt}.{quoted(name)}").collect()] == [name]
            if fmt != "delta":  # Delta refuses some characters in a column's name
                session.sql(f"ALTER TABLE {full} RENAME COLUMN k TO {quoted(name)}")
            session.sql(f"DROP SCHEMA {fmt}.{quoted(name)} CASCADE")
        assert [r.namespace for r in session.sql(f"SHOW SCHEMAS IN {fmt}").collect()] == ["default"]
        left = {str(p.relative_to(guarded)) for p in (guarded / fmt).rglob("*") if "_trinity" not in str(p)}
        assert left <= {f"{fmt}/default", f"{fmt}/catalog.db"}


def test_half_of_a_surrogate_pair_is_no_part_of_a_name(tmp_path: Path) -> None:
    with trinity.connect(tmp_path) as session:
        for making in (lambda: TableName("parquet", "default", "\ud800"), lambda: Column("\ud800", "int")):
            with refused("INVALID_ARGUMENTS", "surrogate"):
                making()
        with refused("INVALID_ARGUMENTS", "surrogate"):
            session.table("\ud800")
        with refused("INVALID_ARGUMENTS", "Schema", "surrogate"):
            session.connector("parquet").metadata.create_schema("\ud800")


@pytest.mark.parametrize("name", ["", "a\0b", "x" * 256])
def test_what_cannot_be_a_name_is_refused_wherever_one_is_given(tmp_path: Path, name: str) -> None:
    column = Column("k", "int")
    with trinity.connect(tmp_path) as session:
        for full in (TableName("parquet", "default", name), TableName("parquet", name, "t")):
            with refused("INVALID_ARGUMENTS", "name", "use another name"):
                session.create_table(full, [column])
            with refused("INVALID_ARGUMENTS", "name", "use another name"):
                session.table(full)
            with refused("INVALID_ARGUMENTS", "name", "use another name"):
                session.drop_table(full)
        with refused("INVALID_ARGUMENTS", "Schema"):
            session.connector("parquet").metadata.create_schema(name)
        with refused("INVALID_ARGUMENTS", "Column name"):
            session.create_table("t", [Column(name, "int")])
        table = session.create_table("t", [column, Column("v", "int")])
        with refused("INVALID_ARGUMENTS", "Column name"):
            table.add_column(Column(name, "int"))
        with refused("INVALID_ARGUMENTS", "Column name"):
            table.rename_column("v", name)
        with refused("INVALID_ARGUMENTS", "CHECK constraint name"):
            session.create_table("c", [column], checks={name: "k > 0"})
        assert session.list_tables("parquet", "default") == ["t"]


def test_a_schema_with_files_of_others_stays(guarded: Path) -> None:
    with trinity.connect(guarded) as session:
        for catalog, name in product(("parquet", "iceberg"), ("mine", "..")):
            metadata = session.connector(catalog).metadata
            metadata.create_schema(name)
            one_row(session, TableName(catalog, name, "t"))
            session.drop_table(TableName(catalog, name, "t"))
            folder = guarded / catalog / folder_name(name)
            (folder / "theirs").mkdir(parents=True)
            (folder / "theirs/data").write_text("kept")
            with refused("SCHEMA_NOT_EMPTY", str(folder), "theirs"):
                metadata.drop_schema(name)
            assert name in metadata.list_schemas()
            shutil.rmtree(folder / "theirs")
            metadata.drop_schema(name)
            assert not folder.exists()


def test_no_table_is_made_where_others_have_files(session: Session, warehouse: Path, fmt: str) -> None:
    folder = warehouse / fmt / "default" / "taken"
    (folder / "below").mkdir(parents=True)
    (folder / "below/mine.parquet").write_bytes(b"mine")
    with refused("FILESYSTEM_ERROR", "mine.parquet"):
        session.sql(f"CREATE TABLE {fmt}.default.taken (id INT)")
    (folder / "below/mine.parquet").unlink()
    session.sql(f"CREATE TABLE {fmt}.default.taken (id INT)")
    session.sql(f"DROP TABLE {fmt}.default.taken")


def test_a_folder_that_is_no_table_is_not_dropped(tmp_path: Path) -> None:
    folders = FolderCatalog("c", str(tmp_path / "w"), lambda folder: ObjectStore(folder).exists("table"))
    handle = folders.new_table("default", "t")
    Path(handle.location).mkdir(parents=True)
    (Path(handle.location) / "theirs").write_text("kept")
    with refused("TABLE_NOT_FOUND"):
        folders.drop_table(handle)
    assert (Path(handle.location) / "theirs").exists()


def test_a_grave_that_a_killed_drop_left_is_in_nobodys_way(guarded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with trinity.connect(guarded) as session:
        for catalog in ("parquet", "iceberg"):
            metadata = session.connector(catalog).metadata
            metadata.create_schema("s")
            name = TableName(catalog, "s", "t")
            with monkeypatch.context() as killed:
                killed.setattr("shutil.rmtree", lambda *_, **__: None)
                for _ in range(2):
                    one_row(session, name)
                    session.drop_table(name)
            assert len(list((guarded / catalog / "s").iterdir())) == 2
            assert metadata.list_tables("s") == []
            one_row(session, name)
            session.drop_table(name)
            assert list((guarded / catalog / "s").glob("*")) == []
            with monkeypatch.context() as killed:
                killed.setattr("shutil.rmtree", lambda *_, **__: None)
                one_row(session, name)
                session.drop_table(name)
            metadata.drop_schema("s")
            assert metadata.list_schemas() == ["default"]


def test_of_a_linked_table_the_link_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "s").mkdir()
    (tmp_path / "s/t").symlink_to(tmp_path / "elsewhere")
    move_to_trash(tmp_path / "s/t")
    empty_trash(tmp_path / "s")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["elsewhere", "s"]
    assert list((tmp_path / "s").iterdir()) == []


def test_an_iceberg_table_takes_no_other_tables_folder_with_it(guarded: Path) -> None:
    with trinity.connect(guarded) as session:
        one_row(session, TableName("iceberg", "default", "a"))
        from pyiceberg.catalog import load_catalog

        folder = guarded / "iceberg"
        theirs = load_catalog("iceberg", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
        theirs.rename_table("default.a", "default.b")
        one_row(session, TableName("iceberg", "default", "a"))
        session.drop_table("iceberg.default.a")
        table = session.table("iceberg.default.b")
        assert [os.path.exists(f.path) for f in table.splits().files] == [True]
        theirs.close()


def test_any_name_is_registered(tmp_path: Path) -> None:
    registry = Registry(str(tmp_path))
    names = [TableName("c", schema, table) for schema, table in product(["s", "..", "\u6570" * 255], HOSTILE)]
    for name in names:
        registry.add(name, Registration("parquet", f"/data/{len(name.table)}"), lambda: None)
    for name in names:
        registry.change(name, lambda _: Registration("delta", "/data"))
        assert registry.get(name) == Registration("delta", "/data")
        assert registry.tables(name.catalog, name.schema) == sorted(HOSTILE)
    for name in names:
        registry.remove(name)
        assert registry.get(name) is None
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []
