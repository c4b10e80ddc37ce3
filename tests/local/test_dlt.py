"""Pipelines of dlt load into Trinity's tables: each row once, by the dispositions and hints of dlt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dlt
import pytest

import trinity.dlt
from trinity import Column, Session, Table
from trinity.errors import TrinityError

Row = dict[str, Any]


@pytest.fixture
def load(
    local: Session, local_fmt: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Any]]:
    """Yield a function that runs a pipeline over rows, with options of the resource."""
    monkeypatch.setenv("RUNTIME__DLTHUB_TELEMETRY", "false")
    pipeline = pipeline_of(local, local_fmt, tmp_path, "shop")

    def run(rows: list[Row], **options: Any) -> Any:
        return pipeline.run(dlt.resource(rows, name="orders", **options))

    yield run
    pipeline.drop()


def pipeline_of(local: Session, fmt: str, folder: Path, name: str) -> Any:
    destination = trinity.dlt.destination(local, f"{fmt}.default")
    return dlt.pipeline(name, pipelines_dir=str(folder / "pipelines"), destination=destination)


def rows(local: Session, fmt: str) -> list[Row]:
    found: Table = local.table(f"{fmt}.default.orders")
    return sorted(found.to_arrow().to_pylist(), key=lambda row: str(row["id"]))


def test_merge_is_an_upsert_by_key(local: Session, local_fmt: str, load: Callable[..., Any]) -> None:
    merge = {"write_disposition": "merge", "primary_key": "id"}
    load([{"id": 1, "state": "new"}, {"id": 2, "state": "new"}], **merge)
    load([{"id": 2, "state": "paid", "amount": 1.5}], **merge)
    assert rows(local, local_fmt) == [
        {"id": 1, "state": "new", "amount": None},
        {"id": 2, "state": "paid", "amount": 1.5},
    ]
    assert local.table(f"{local_fmt}.default.orders").definition.primary_key == ("id",)
    assert local.tables(schema=f"{local_fmt}.default") == [f"{local_fmt}.default.orders"]


def test_hard_delete_and_dedup_sort(local: Session, local_fmt: str, load: Callable[..., Any]) -> None:
    merge: dict[str, Any] = {
        "write_disposition": "merge",
        "primary_key": "id",
        "columns": {"gone": {"hard_delete": True, "data_type": "bool"}, "at": {"dedup_sort": "desc"}},
    }
    load([{"id": n, "at": 1, "gone": False} for n in (1, 2, 3)], **merge)
    load(
        [{"id": 1, "at": 9, "gone": False}, {"id": 1, "at": 5, "gone": False}, {"id": 2, "at": 9, "gone": True}],
        **merge,
    )
    assert [(row["id"], row["at"]) for row in rows(local, local_fmt)] == [(1, 9), (3, 1)]
    merge["columns"]["at"] = {"dedup_sort": "asc"}
    load([{"id": 3, "at": 4, "gone": False}, {"id": 3, "at": 8, "gone": False}], **merge)
    assert [(row["id"], row["at"]) for row in rows(local, local_fmt)] == [(1, 9), (3, 4)]


def test_append_and_replace(local: Session, local_fmt: str, load: Callable[..., Any]) -> None:
    load([{"id": 1}, {"id": 2}], write_disposition="append")
    load([{"id": 2}], write_disposition="append")
    assert [row["id"] for row in rows(local, local_fmt)] == [1, 2, 2]
    load([{"id": 7}], write_disposition="replace")
    assert [row["id"] for row in rows(local, local_fmt)] == [7]


def test_a_load_that_is_repeated_writes_its_rows_once(
    local: Session, local_fmt: str, load: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to the first commit is lost, and dlt loads the file again."""
    load([{"id": 1}], write_disposition="append")
    append = Table.append
    lost: list[Any] = []

    def without_answer(*given: Any, **named: Any) -> Any:
        done = append(*given, **named)
        if not lost:
            lost.append(done)
            raise TrinityError("COMMIT_STATE_UNKNOWN", "No answer.")
        assert done.skipped
        return done

    monkeypatch.setattr(Table, "append", without_answer)
    load([{"id": 2}], write_disposition="append")
    assert lost
    assert [row["id"] for row in rows(local, local_fmt)] == [1, 2]


@pytest.mark.parametrize(
    ("hints", "says"),
    [
        ({"write_disposition": "merge"}, "without a primary key"),
        ({"write_disposition": "merge", "primary_key": "id", "merge_key": "at"}, "by a merge_key"),
        *(
            ({"write_disposition": {"disposition": "merge", "strategy": strategy}, "primary_key": "id"}, strategy)
            for strategy in ("scd2", "insert-only")
        ),
    ],
    ids=["no key", "merge_key", "scd2", "insert-only"],
)
def test_what_a_table_cannot_follow_is_said(load: Callable[..., Any], hints: Row, says: str) -> None:
    with pytest.raises(Exception, match=f"NOT_SUPPORTED.*{says}"):
        load([{"id": 1, "at": 1}], **hints)


@pytest.mark.parametrize("strategy", ["upsert", "delete-insert"])
def test_strategies_that_replace_rows_are_upserts(
    local: Session, local_fmt: str, load: Callable[..., Any], strategy: str
) -> None:
    for at in (1, 2):
        disposition = {"disposition": "merge", "strategy": strategy}
        load([{"id": 1, "at": at}], write_disposition=disposition, primary_key="id")
    assert rows(local, local_fmt) == [{"id": 1, "at": 2}]


def test_pipelines_that_load_out_of_order_lose_no_row(
    local: Session, local_fmt: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The load that began first comes last: its number is below that of the other pipeline."""
    monkeypatch.setenv("RUNTIME__DLTHUB_TELEMETRY", "false")
    slow, quick = (pipeline_of(local, local_fmt, tmp_path, name) for name in ("slow", "quick"))
    slow.extract(dlt.resource([{"id": 1}], name="orders", write_disposition="append"))
    slow.normalize()
    quick.run(dlt.resource([{"id": 2}], name="orders", write_disposition="append"))
    slow.load()
    assert [row["id"] for row in rows(local, local_fmt)] == [1, 2]
    same = pipeline_of(local, local_fmt, tmp_path / "elsewhere", "quick")
    same.extract(dlt.resource([{"id": 3}], name="orders", write_disposition="append"))
    same.normalize()
    quick.run(dlt.resource([{"id": 4}], name="orders", write_disposition="append"))
    with pytest.raises(Exception, match=r"INVALID_ARGUMENTS.*later load of pipeline 'quick'"):
        same.load()
    assert [row["id"] for row in rows(local, local_fmt)] == [1, 2, 4]


def test_every_file_of_a_load_counts(
    local: Session, local_fmt: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of a table whose name is a pattern, and of two of dlt's tables that are one of Trinity's."""
    for name, value in {
        "RUNTIME__DLTHUB_TELEMETRY": "false",
        "NORMALIZE__DATA_WRITER__FILE_MAX_ITEMS": "2",
        "NORMALIZE__DATA_WRITER__BUFFER_MAX_ITEMS": "2",
    }.items():
        monkeypatch.setenv(name, value)
    pipeline = pipeline_of(local, local_fmt, tmp_path, "shop")
    five = [{"id": n} for n in range(5)]
    resources = [
        dlt.resource(five, name="t[x]", write_disposition="append"),
        dlt.resource(five[:3], name="Orders", write_disposition="append"),
        dlt.resource(five[3:], name="orders", write_disposition="append"),
    ]
    pipeline.run(resources)
    assert [row["id"] for row in rows(local, local_fmt)] == [0, 1, 2, 3, 4]
    assert local.table(f"{local_fmt}.default.`t[x]`").count() == 5


def test_a_file_that_is_moved_while_its_folder_is_listed_counts(
    local: Session, local_fmt: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """dlt moves a file back to load it again: every second listing of the folders lacks the first file."""
    for name, value in {
        "RUNTIME__DLTHUB_TELEMETRY": "false",
        "NORMALIZE__DATA_WRITER__FILE_MAX_ITEMS": "1",
        "NORMALIZE__DATA_WRITER__BUFFER_MAX_ITEMS": "1",
        "LOAD__WORKERS": "1",
    }.items():
        monkeypatch.setenv(name, value)
    pipeline = pipeline_of(local, local_fmt, tmp_path, "shop")
    pipeline.extract(dlt.resource([{"id": n} for n in range(3)], name="orders", write_disposition="append"))
    pipeline.normalize()
    moved = min(path.name.split(".")[1] for path in tmp_path.rglob("new_jobs/orders.*"))
    glob, listed = Path.glob, Counter[str]()

    def listing(folder: Path, pattern: str) -> list[Path]:
        found = [*glob(folder, pattern)]
        listed[folder.name] += 1
        return [path for path in found if path.name.split(".")[1] != moved] if listed[folder.name] % 2 else found

    monkeypatch.setattr(Path, "glob", listing)
    pipeline.load()
    assert listed["started_jobs"] >= 3
    assert [row["id"] for row in rows(local, local_fmt)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("first", "then", "says"),
    [
        ({"primary_key": "id"}, {"primary_key": ["id", "at"]}, r"has the primary key \(id\).* has \(.*at"),
        ({"primary_key": "id"}, {"primary_key": "id", "columns": {"gone": {"hard_delete": True}}}, "no tombstone-key"),
    ],
    ids=["another key", "deletes"],
)
def test_hints_that_the_table_does_not_follow_are_refused(
    local: Session, local_fmt: str, load: Callable[..., Any], first: Row, then: Row, says: str
) -> None:
    row = {"id": 1, "at": 1, "gone": False}
    load([row], write_disposition="merge", **first)
    with pytest.raises(Exception, match=f"INVALID_ARGUMENTS.*{says}"):
        load([row | {"at": 2, "gone": True}], write_disposition="merge", **then)
    assert rows(local, local_fmt) == [row]


def test_a_key_may_have_the_partition_besides(local: Session, local_fmt: str, load: Callable[..., Any]) -> None:
    columns = [Column("id", "bigint"), Column("day", "bigint")]
    local.create_table(f"{local_fmt}.default.orders", columns, primary_key=["id", "day"], partition_by=["day"])
    load([{"id": 1, "day": 1}, {"id": 1, "day": 1}], write_disposition="merge", primary_key="id")
    assert rows(local, local_fmt) == [{"id": 1, "day": 1}]


@pytest.mark.parametrize(("order", "kept"), [("desc", 7), ("asc", 5)])
def test_dedup_sort_takes_no_null(
    local: Session, local_fmt: str, load: Callable[..., Any], order: str, kept: int
) -> None:
    given = [{"id": 1, "at": 5}, {"id": 1, "at": None}, {"id": 1, "at": 7}]
    load(given, write_disposition="merge", primary_key="id", columns={"at": {"dedup_sort": order}})
    assert rows(local, local_fmt) == [{"id": 1, "at": kept}]


def test_dedup_sort_of_a_key_in_another_case(local: Session, local_fmt: str, load: Callable[..., Any]) -> None:
    columns = [Column("ID", "bigint"), Column("at", "bigint")]
    table = local.create_table(f"{local_fmt}.default.orders", columns, primary_key=["ID"])
    given = [{"id": 1, "at": 7}, {"id": 1, "at": 5}]
    load(given, write_disposition="merge", primary_key="id", columns={"at": {"dedup_sort": "desc"}})
    assert table.to_arrow().to_pylist() == [{"ID": 1, "at": 7}]
