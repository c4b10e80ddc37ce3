"""Branches, tags and snapshots of an Iceberg table that other engines make, pick and set: without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import trinity
from tests.support.iceberg import pyiceberg
from tests.support.refusals import refused
from tests.support.tables import stored_ids
from trinity import CommitResult, Table
from trinity.datasource.answers import answer

pytestmark = pytest.mark.inner

NAME = "iceberg.default.t"
ANEW = ("put back to an earlier state", "new checkpoint")
KINDS = {"plain": (), "keyed": ("id",)}


@pytest.fixture(params=KINDS)
def table(request: pytest.FixtureRequest, warehouse: Path) -> Iterator[Table]:
    with trinity.connect(warehouse, engine="local") as session:
        yield session.create_table(NAME, [{"id": 1}], primary_key=KINDS[request.param])


def put_ids(table: Table, *ids: int, txn: tuple[str, int] | None = None) -> CommitResult:
    return (table.upsert if table.definition.keyed else table.append)([{"id": key} for key in ids], txn=txn)


def theirs(table: Table, *ids: int, branch: str = "main") -> int:
    """Append rows by another engine, and return the id of its snapshot."""
    loaded = pyiceberg(table)
    schema = loaded.schema().as_arrow()
    loaded.append(pa.Table.from_pylist([dict.fromkeys(schema.names) | {"id": i} for i in ids], schema), branch=branch)
    return int(loaded.refresh().snapshot_by_name(branch).snapshot_id)


def newest(table: Table) -> int:
    return int(pyiceberg(table).current_snapshot().snapshot_id)


def branched(table: Table) -> Any:
    """Create the branch ``b`` at the newest version by another engine."""
    loaded = pyiceberg(table)
    loaded.manage_snapshots().create_branch(loaded.current_snapshot().snapshot_id, "b").commit()
    return loaded


def go_to(table: Table, **place: Any) -> None:
    """Set the current snapshot, as ``set_current_snapshot`` does, or ``fast_forward`` to a branch that
    contains ``main``.
    """
    pyiceberg(table).manage_snapshots().set_current_snapshot(**place).commit()


def pick(table: Table, number: int) -> None:
    """Commit the files that a snapshot added, as ``cherrypick_snapshot`` does."""
    loaded = pyiceberg(table)
    manifests = loaded.metadata.snapshot_by_id(number).manifests(loaded.io)
    entries = [e for m in manifests for e in m.fetch_manifest_entry(loaded.io) if e.snapshot_id == number]
    with loaded.transaction() as transaction:
        update = transaction.update_snapshot(snapshot_properties={"source-snapshot-id": str(number)})
        with update.fast_append() as append:
            for entry in entries:
                append.append_data_file(entry.data_file)


def offset(table: Table, start: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the offset of a stream that continues from ``start``."""
    start = start or {"begins": "rows", "table": ""}
    question = {"ask": "offset", "table": NAME, "start": start, "begun": True, "most": None}
    return dict(answer(lambda: [table.session], question))


def test_the_table_is_its_main_branch(table: Table) -> None:
    version, reached = table.version, offset(table)
    branched(table)
    theirs(table, 2, branch="b")
    assert (table.version, stored_ids(table), offset(table, reached)) == (version, [1], reached)
    assert put_ids(table, 3).version > version + 1  # numbers are given once, on all branches
    assert {row["version"] for row in table.history().to_pylist()} == {table.version, *range(1, version + 1)}
    assert stored_ids(table) == [1, 3]


def test_main_is_moved_to_where_a_branch_is(table: Table) -> None:
    put_ids(table, 2)
    reached = offset(table)
    branched(table)
    for key in (3, 4):
        theirs(table, key, branch="b")
    go_to(table, ref_name="b")
    after = offset(table, reached)
    assert (after["version"], stored_ids(table)) == (table.version, [1, 2, 3, 4])
    put_ids(table, 5)
    assert offset(table, after)["version"] == table.version
    assert stored_ids(table) == [1, 2, 3, 4, 5]


def test_what_is_picked_is_a_commit_of_others(table: Table) -> None:
    branched(table)
    number = theirs(table, 2, branch="b")
    put_ids(table, 3)
    reached = offset(table)
    pick(table, number)
    assert stored_ids(table) == [1, 2, 3]
    assert offset(table, reached)["version"] == table.version == reached["version"] + 1


def test_a_commit_of_trinitys_is_picked_again(table: Table) -> None:
    """It adds the rows, but does not record the transaction."""
    before = newest(table)
    put_ids(table, 2, txn=("load", 1))
    mine = newest(table)
    go_to(table, snapshot_id=before)
    put_ids(table, 3)
    pick(table, mine)
    assert stored_ids(table) == [1, 2, 3]
    assert not put_ids(table, 2, txn=("load", 1)).skipped


def test_another_branch_takes_the_place_of_main(table: Table) -> None:
    branched(table)
    theirs(table, 2, branch="b")
    put_ids(table, 3)
    reached, main = offset(table), newest(table)
    go_to(table, ref_name="b")
    assert stored_ids(table) == [1, 2]
    with refused("INVALID_ARGUMENTS", *ANEW):
        offset(table, reached)
    put_ids(table, 4)
    assert stored_ids(table) == [1, 2, 4]
    with refused("INVALID_ARGUMENTS", "none of those that led to", *ANEW):
        offset(table, reached)
    go_to(table, snapshot_id=main)
    assert (offset(table, reached), stored_ids(table)) == (reached, [1, 3])


def test_vacuum_leaves_branches_and_tags_their_files(table: Table) -> None:
    loaded = branched(table)
    theirs(table, 2, branch="b")
    put_ids(table, 3)
    loaded.refresh().manage_snapshots().create_tag(newest(table), "kept").commit()
    table.delete("id = 3")
    table.compact("full")
    table.vacuum(retain="0 seconds")
    for name, rows in {"b": [1, 2], "kept": [1, 3]}.items():
        scan = loaded.refresh().scan(snapshot_id=loaded.snapshot_by_name(name).snapshot_id)
        assert sorted(scan.to_arrow()["id"].to_pylist()) == rows
    assert stored_ids(table) == [1]


@pytest.mark.parametrize("left", ["rolled back", "staged"])
def test_vacuum_forgets_what_no_branch_leads_to(table: Table, left: str) -> None:
    first = newest(table)
    if left == "staged":  # with `spark.wap.id`, no branch existed at the start
        loaded = branched(table)
        theirs(table, 2, branch="b")
        loaded.refresh().manage_snapshots().remove_branch("b").commit()
    else:
        put_ids(table, 2)
        put_ids(table, 3)
        go_to(table, snapshot_id=first)
    there = {path.name for path in Path(table.location).rglob("*.parquet")}
    table.vacuum(retain="7 days")
    assert {path.name for path in Path(table.location).rglob("*.parquet")} == there
    table.vacuum(retain="0 seconds")
    assert {path.name for path in Path(table.location).rglob("*.parquet")} == {
        Path(f.path).name for f in table.splits().files
    }
    assert stored_ids(table) == [1]
