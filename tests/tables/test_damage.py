"""A damaged newest version: DROP works, repair returns to the newest readable one, and vacuum works on a full disk."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from tests.support.pages import some
from tests.support.paths import TESTS
from trinity import Column, Session, Table, TrinityError
from trinity.cli.main import app
from trinity.spi import ConnectorContext, SinkId, TableDefinition
from trinity.storage import ObjectStore

DAY_S = 24 * 3600


def values(table: Table, version: int | None = None) -> list[int]:
    return sorted(v for f in table.splits(version).files for v in pq.read_table(f.path)["v"].to_pylist())


def newest(table: Table) -> list[Path]:
    """Return the files with the metadata of the newest versions, newest first."""
    pattern = {"parquet": "_trinity/log/*[0-9].json", "delta": "_delta_log/*[0-9].json"}
    found = Path(table.location).glob(pattern.get(str(table.name.catalog), "metadata/*.metadata.json"))
    return sorted(found, reverse=True)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "torn": lambda data: data[: len(data) // 2],
    "zeroes": lambda data: bytes(len(data)),
}


def damage(path: Path, how: str = "empty") -> None:
    path.write_bytes(DAMAGES[how](path.read_bytes()))


def fresh(session: Session, table: Table) -> Table:
    """Open the table in a new session."""
    import trinity

    return trinity.connect(Path(table.location).parents[2], spark=session.spark).table(str(table.name))


@pytest.mark.parametrize("how", ["torn", *(pytest.param(how, marks=pytest.mark.full) for how in ("empty", "zeroes"))])
def test_repair_goes_back_to_the_newest_version_that_can_be_read(session: Session, pages: Table, how: str) -> None:
    first, *others = newest(pages)
    damage(first, how)
    again = fresh(session, pages)
    with pytest.raises(TrinityError) as caught:
        again.splits()
    assert caught.value.code == "BAD_DATA"
    assert first.name in caught.value.message
    assert "repair" in caught.value.message
    done = session.repair(str(pages.name))  # this session has the newest version in memory
    assert (values(again), done.skipped) == ([1, 2, 3], False)
    assert done.version == again.splits().version
    again.append(some(5))
    assert values(fresh(session, pages)) == values(pages) == [1, 2, 3, 5]
    assert again.session.repair(str(pages.name)).skipped
    assert others


def test_repair_passes_over_several_that_are_damaged(session: Session, pages: Table) -> None:
    for path in newest(pages)[:2]:
        damage(path)
    again = fresh(session, pages)
    again.session.repair(str(pages.name))
    assert values(again) == [1, 2]
    times = [r.timestamp for r in again.history().collect()]
    assert times == sorted(times, reverse=True)
    again.vacuum("0 seconds")
    again.append(some(5))
    assert values(fresh(session, pages)) == [1, 2, 5]


def test_a_damaged_table_can_be_dropped(session: Session, pages: Table) -> None:
    damage(newest(pages)[0])
    again = fresh(session, pages).session
    again.sql(f"DROP TABLE {pages.name}")
    assert not Path(pages.location).exists()
    again.create_table(str(pages.name), [Column("v", "int")]).append(some(9))
    assert values(again.table(str(pages.name))) == [9]


def test_an_older_version_is_read_beside_a_damaged_one(session: Session, tmp_path: Path) -> None:
    for catalog in ("parquet", "delta"):
        table = session.create_table(f"{catalog}.default.pages", [Column("v", "int")])
        for value in (1, 2, 3):
            table.append(some(value))
        damage(newest(table)[0])
        assert values(fresh(session, table), 2) == [1, 2]


def test_the_command_goes_back(session: Session, warehouse: Path) -> None:
    table = session.create_table("parquet.default.pages", [Column("v", "int")])
    table.append(some(1))
    table.append(some(2))
    damage(newest(table)[0])
    done = CliRunner().invoke(app, ["repair", "parquet.default.pages", "-w", str(warehouse)])
    assert done.exit_code == 0, done.output
    assert values(fresh(session, table)) == [1]
    assert "nothing" in CliRunner().invoke(app, ["repair", "parquet.default.pages", "-w", str(warehouse)]).output


def test_an_adapter_of_lists_of_files_goes_back_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TESTS / "plugins/acme"))
    from acme_trinity import AcmeFormat

    def no_spark() -> Any:
        raise AssertionError

    lake = AcmeFormat().create("lake", {"warehouse": str(tmp_path)}, ConnectorContext(no_spark))
    table = lake.metadata.create_table(TableDefinition("default", "t", (Column("v", "int"),)))
    for value in (1, 2, 3):
        insert = lake.metadata.begin_insert(table)
        sink = lake.sinks.create_page_sink(insert.target, SinkId())
        sink.append_page(some(value).to_batches()[0])
        lake.metadata.finish_insert(insert, sink.finish())
    damage(Path(table.location, "_acme", f"{3:020d}.json"))
    assert lake.metadata.owns(table)
    done = lake.metadata.repair(table)
    assert (done.version, done.rows, done.skipped) == (4, 2, False)
    assert [e.version for e in lake.metadata.history(table)] == [4]
    assert lake.metadata.repair(table).skipped


def test_a_damaged_checkpoint_is_passed_over(session: Session) -> None:
    table = session.create_table("parquet.default.pages", [Column("v", "int")])
    for value in range(12):
        table.append(some(value))
    [checkpoint] = Path(table.location, "_trinity/log").glob("*.checkpoint.json")
    damage(checkpoint)
    assert values(fresh(session, table)) == list(range(12))


def test_nothing_left_to_read_says_so(session: Session) -> None:
    table = session.create_table("parquet.default.pages", [Column("v", "int")])
    for path in newest(table):
        damage(path)
    again = fresh(session, table)
    with pytest.raises(TrinityError, match="no version that can be read") as caught:
        again.session.repair(str(table.name))
    assert caught.value.code == "BAD_DATA"
    again.session.drop_table(str(table.name))


def test_snapshots_whose_manifests_are_damaged(session: Session) -> None:
    """Iceberg: the metadata file is undamaged, but the files that it names are."""
    table = session.create_table("iceberg.default.pages", [Column("v", "int")])
    for value in (1, 2, 3):
        table.append(some(value))
    metadata = table.connector.metadata._iceberg.load_table(("default", "pages")).metadata  # type: ignore[attr-defined]
    damage(Path(metadata.current_snapshot().manifest_list.removeprefix("file://")))
    again = fresh(session, table)
    with pytest.raises(TrinityError, match="BAD_DATA"):
        again.splits()
    again.session.repair(str(table.name))
    again.append(some(4))
    assert values(fresh(session, table)) == [1, 2, 4]


def test_repair_leaves_tables_of_others_alone(session: Session, tmp_path: Path) -> None:
    pq.write_table(some(1), tmp_path / "1.parquet")
    session.register("feed", "parquet", tmp_path, {})
    with pytest.raises(TrinityError, match="NOT_SUPPORTED"):
        session.repair("feed")


# -- vacuum ---------------------------------------------------------------------------------------------


def test_vacuum_makes_room_on_a_full_disk(session: Session, pages: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits fail as long as the files of a crashed statement exist."""
    orphan = Path(pages.splits().files[0].path).with_name("orphan.parquet")
    pq.write_table(some(9), orphan)
    metadata: Any = pages.connector.metadata
    fails = {
        "parquet": (ObjectStore, "put_if_absent"),
        "iceberg": (getattr(metadata, "_iceberg", None), "commit_table"),
        "delta": (type(metadata), "run_attempts"),
    }[str(pages.name.catalog)]
    works = getattr(*fails)

    def on_a_full_disk(*arguments: Any, **options: Any) -> Any:
        if orphan.exists():
            raise TrinityError("FILESYSTEM_ERROR", "No space left on device")
        return works(*arguments, **options)

    monkeypatch.setattr(*fails, on_a_full_disk)
    assert pages.vacuum("0 seconds").files == 1
    assert values(pages) == [1, 2, 3, 4]


def test_vacuum_removes_manifests_that_no_version_needs(session: Session) -> None:
    table = session.create_table("parquet.default.pages", [Column("v", "int")])
    for value in range(25):
        table.append(some(value), txn=("loader", value))
    stale = fresh(session, table)
    assert len(values(stale)) == 25
    log = Path(table.location, "_trinity/log")
    before = sorted(p.name for p in log.iterdir())
    table.vacuum("0 seconds")
    assert len(list(log.iterdir())) > len(before), "those of the last minutes stay"
    aged = time.time() - DAY_S
    for path in log.iterdir():
        os.utime(path, (aged, aged))
    table.append(some(25))
    table.vacuum("0 seconds")
    left = sorted(p.name for p in log.iterdir())
    assert left[0] == before[0]  # the table's first manifest
    assert len(left) <= 6
    for reader in (table, stale, fresh(session, table)):
        assert values(reader) == list(range(26))
        assert reader.append(some(99), txn=("loader", 24)).skipped
    stale.append(some(26))
    assert values(fresh(session, table)) == list(range(27))
    assert [r.version for r in table.history().collect()] == [29, 28, 27][-len(table.history().collect()) :]


@pytest.mark.parametrize("fmt", ["parquet"])
def test_a_file_that_is_no_parquet_file_any_more_is_named(pages: Table) -> None:
    damaged = Path(pages.splits().files[0].path.removeprefix("file://"))
    damaged.write_bytes(b"x" * damaged.stat().st_size)
    before = pages.splits().version
    with pytest.raises(TrinityError, match=damaged.name) as caught:
        pages.delete("v > 0")
    assert caught.value.code == "BAD_DATA"
    assert pages.splits().version == before
