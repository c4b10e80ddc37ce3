"""Pipelines of dlt load into Trinity's tables: each row once, by the dispositions and hints of dlt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dlt
import pytest

import trinity.dlt
from trinity import Session, Table
from trinity.errors import TrinityError

Row = dict[str, Any]


@pytest.fixture
def load(
    local: Session, local_fmt: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Any]]:
    """Yield a function that runs a pipeline over rows, with options of the resource."""
    monkeypatch.setenv("RUNTIME__DLTHUB_TELEMETRY", "false")
    pipeline = dlt.pipeline(
        "shop",
        pipelines_dir=str(tmp_path / "pipelines"),
        destination=trinity.dlt.destination(local, f"{local_fmt}.default"),
    )

    def run(rows: list[Row], **options: Any) -> Any:
        return pipeline.run(dlt.resource(rows, name="orders", **options))

    yield run
    pipeline.drop()


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


def test_what_a_table_cannot_follow_is_said(local_fmt: str, load: Callable[..., Any]) -> None:
    with pytest.raises(Exception, match=r"NOT_SUPPORTED.*primary_key"):
        load([{"id": 1}], write_disposition="merge")
