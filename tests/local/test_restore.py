"""A restore (L11): the table is as it was at a version, as if the commits since had never been made."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import trinity
from tests.support.iceberg import pyiceberg
from tests.support.refusals import refused
from tests.support.tables import keyed_table
from trinity import Column, Session, Table
from trinity_iceberg.expire import EXPIRED_AT_ONCE

COLUMNS = [
    Column("k", "int", nullable=False),
    Column("ts", "bigint"),
    Column("gone", "boolean"),
    Column("a", "bigint"),
    Column("b", "string"),
]
LATE = {"watermark-key": "ts", "tombstone-key": "gone"}
OPTIONS: dict[str, dict[str, str]] = {
    "late rows": LATE,
    "arrival": {},
    "first rows": {"merge-engine": "first-row"},
    "partial": {"merge-engine": "partial-update", "fields.ts.sequence-group": "a,b"},
    "sums": {"merge-engine": "aggregation", "fields.a.aggregate-function": "sum", "fields.b.aggregate-function": "max"},
}
Row = dict[str, Any]


def shown(table: Table, version: int | None = None) -> list[Row]:
    return sorted(table.to_arrow(version=version).to_pylist(), key=lambda row: str(sorted(row.items())))


def step(table: Table, draw: Random) -> None:
    """Take a random step; generators in equal states take equal steps."""
    kinds = ["put"] * 5 + ["delete", "update", "minor", "full", "full", "resolve", "column"]
    kind, number = draw.choice(kinds), draw.randrange(10**6)
    if kind == "put":
        _put(table, Random(number))
    elif kind == "delete" and "merge-engine" not in table.properties:
        table.delete([number % 4])
    elif kind == "update" and "merge-engine" not in table.properties:
        table.update(f"k % 2 = {number % 2}", {"b": f"'u{number}'"})
    elif kind == "resolve" and table.properties.get("merge-engine") in ("partial-update", "aggregation"):
        table.compact("full")  # their resolve needs Spark
    elif kind in ("minor", "full", "resolve"):
        table.compact(kind)
    elif kind == "column" and "merge-engine" not in table.properties:
        table.add_column(Column(f"c{len(table.columns)}", "int"))


def _put(table: Table, draw: Random) -> None:
    engine = table.properties.get("merge-engine")
    rows = []
    for k in draw.sample(range(4), draw.randrange(1, 4)):
        gone = draw.random() < 0.3 and engine is None
        row = {"k": k, "ts": draw.randrange(6), "gone": gone, "a": draw.randrange(9), "b": f"v{draw.randrange(99)}"}
        rows.append({**row, **{name: draw.randrange(9) for name in table.columns[5:]}})
    table.upsert(pa.Table.from_pylist(rows, table.schema))


FORMATS = ("parquet", "delta", "iceberg")
SHORT = [*((fmt, "late rows") for fmt in FORMATS), ("parquet", "partial"), ("delta", "sums"), ("iceberg", "first rows")]
LONG = [(fmt, engine) for fmt in FORMATS for engine in OPTIONS]


@pytest.mark.parametrize(
    ("fmt", "engine", "seeds"),
    [*((*pair, 2) for pair in SHORT), *(pytest.param(*pair, 20, marks=pytest.mark.full) for pair in LONG)],
)
def test_a_restored_table_is_as_its_twin_that_never_went_on(local: Session, fmt: str, engine: str, seeds: int) -> None:
    """Two tables take the same steps; one takes more, is restored, and both continue with the same steps."""
    for seed in range(seeds):
        draw, names = Random(f"{engine} {seed}"), (f"t{seed}", f"u{seed}")
        table, twin = (keyed_table(local, fmt, COLUMNS, name=name, **OPTIONS[engine]) for name in names)
        first, later = draw.randrange(10**6), draw.randrange(10**6)
        for each in (table, twin):
            same = Random(first)
            for _ in range(5):
                step(each, same)
        wanted, version = shown(twin), table.version
        for _ in range(draw.randrange(1, 6)):
            step(table, draw)
        undone, at = shown(table), table.version
        done = table.restore(version)
        assert shown(table) == shown(table, version) == wanted, f"seed {seed}"
        assert table.schema == twin.schema
        assert done.version == table.version
        assert done.skipped is (at == version)
        if draw.random() < 0.5:  # a restore is undone by another one
            table.restore(at)
            assert shown(table) == undone, f"seed {seed}"
            table.restore(version)
        for number in range(4):
            draws = Random(later + number), Random(later + number)
            for each, draw_one in zip((table, twin), draws, strict=True):
                step(each, draw_one)
            assert shown(table) == shown(twin), f"seed {seed}, step {number} after the restore"
        for each in (table, twin):
            each.compact(full=True)
        assert shown(table) == shown(twin), f"seed {seed}, after a compaction"


@pytest.fixture
def orders(local: Session, local_fmt: str) -> Table:
    """Make a table of three rows, one of them deleted by a tombstone that compaction has moved to the sidecar."""
    table = keyed_table(local, local_fmt, COLUMNS, name="orders", **LATE)
    table.upsert([{"k": k, "ts": 1, "a": k} for k in (1, 2, 3)])
    table.upsert({"k": 3, "ts": 5, "gone": True})
    table.compact(full=True)
    return table


def test_tombstones_come_back(orders: Table) -> None:
    version = orders.version
    orders.truncate()
    orders.upsert({"k": 3, "ts": 2, "a": 9})
    assert orders.count() == 1
    orders.restore(version)
    orders.upsert({"k": 3, "ts": 4, "a": 9})
    assert [row["k"] for row in shown(orders)] == [1, 2]


def test_the_changes_of_a_restore_are_those_of_its_rows(orders: Table) -> None:
    version = orders.version
    orders.upsert([{"k": 1, "ts": 7, "a": 10}, {"k": 4, "ts": 7, "a": 4}])
    orders.delete([2])
    done = orders.restore(version)
    changes = orders.changes(done.version, start_inclusive=True).to_arrow().to_pylist()
    assert sorted((row["k"], row["_change_type"], row["a"]) for row in changes) == [
        (1, "update_postimage", 1),
        (1, "update_preimage", 10),
        (2, "insert", 2),
        (4, "delete", 4),
    ]
    assert orders.history().to_arrow()["operation"][0].as_py() == "restore"


@pytest.mark.parametrize("local_fmt", ["parquet", "delta", "iceberg"], indirect=True)
def test_another_session_sees_it(orders: Table, warehouse: Path) -> None:
    """Tables in memory belong to one session."""
    version = orders.version
    with trinity.connect(warehouse, engine="local") as other:
        there = other.table(str(orders.name))
        orders.delete([1])
        assert there.count() == 1
        there.restore(version)
        assert shown(orders) == shown(there)
        assert orders.count() == 2
        there.upsert({"k": 3, "ts": 2, "a": 9})
        assert orders.count() == 2


def test_columns_and_properties_come_back(orders: Table, local_fmt: str) -> None:
    before = orders.definition
    version = orders.version
    orders.add_column(Column("more", "string"))
    orders.upsert({"k": 1, "ts": 8, "more": "x"})
    orders.restore(version)
    assert orders.columns == [c.name for c in before.visible]
    assert {row["a"] for row in shown(orders)} == {1, 2}
    orders.add_column(Column("more", "int"))
    orders.upsert({"k": 2, "ts": 8, "more": 7})
    assert {row["k"]: row["more"] for row in shown(orders)} == {1: None, 2: 7}
    orders.set_properties({"tombstone.retention": "3 days", "comment": "of later"})
    assert orders.splits(version).definition.properties == before.properties
    orders.restore(version)
    assert orders.properties == before.properties


def test_a_new_column_is_none_that_a_restore_took_away(orders: Table) -> None:
    """A feed over the restore shows in it no value of the other one (C1), and that one can come back."""
    version = orders.version
    orders.add_column(Column("of_later", "string"))
    orders.upsert({"k": 1, "ts": 8, "of_later": "x"})
    with_it = orders.version
    orders.restore(version)
    orders.add_column(Column("note", "string"))
    orders.upsert({"k": 2, "ts": 8, "note": "y"})
    changes = orders.changes(version).to_arrow().to_pylist()
    notes = [(row["k"], row["_change_type"], row["note"]) for row in changes]
    assert sorted(note for note in notes if note[1] != "update_preimage") == [
        (1, "update_postimage", None),
        (1, "update_postimage", None),
        (2, "update_postimage", "y"),
    ]
    orders.restore(version)
    orders.add_column(Column("of_later", "int"))
    orders.restore(with_it)
    assert {row["k"]: row["of_later"] for row in shown(orders)} == {1: "x", 2: None}


@pytest.mark.parametrize("producer", ["none", "lookup"])
def test_rows_before_a_restore_keep_a_column_that_it_took_away(local: Session, local_fmt: str, producer: str) -> None:
    """A feed on disk shows what a computed one shows (C6)."""
    table = keyed_table(local, local_fmt, COLUMNS, changelog_producer=producer)
    version = table.version
    table.add_column(Column("more", "string"))
    table.upsert({"k": 1, "more": "x"})
    later = table.version
    table.restore(version)
    table.restore(later)
    changes = table.changes(version).to_arrow().sort_by("_commit_version").to_pylist()
    assert [(row["_change_type"], row["more"]) for row in changes] == [
        ("insert", "x"),
        ("delete", "x"),
        ("insert", "x"),
    ]


def test_a_dropped_and_a_renamed_column(orders: Table, local_fmt: str) -> None:
    version = orders.version
    orders.rename_column("b", "text")
    orders.drop_column("a")
    orders.upsert({"k": 1, "ts": 8, "text": "x"})
    if local_fmt == "delta":  # the first restore enables a feature that Delta cannot disable
        with refused("NOT_SUPPORTED", "renamed or dropped", "upsert"):
            orders.restore(version)
        version = orders.version
        orders.drop_column("text")
        orders.restore(version)
        assert [row.get("text") for row in shown(orders)] == ["x", None]
        return
    orders.restore(version)
    assert orders.columns == ["k", "ts", "gone", "a", "b"]
    assert [row["a"] for row in shown(orders)] == [1, 2]


def test_a_time(orders: Table) -> None:
    rows, when = shown(orders), orders.history().to_arrow()["timestamp"][0].as_py()
    orders.truncate()
    orders.restore(timestamp=when)
    assert shown(orders) == rows


def test_transactions_stay(orders: Table) -> None:
    version = orders.version
    orders.upsert({"k": 9, "ts": 1}, txn=("load", 1))
    orders.restore(version)
    assert orders.upsert({"k": 9, "ts": 1}, txn=("load", 1)).skipped


def test_a_plain_table(local: Session, local_fmt: str) -> None:
    table = local.create_table(f"{local_fmt}.default.plain", COLUMNS)
    table.append([{"k": 1, "a": 1}, {"k": 1, "a": 1}])
    version = table.version
    table.append([{"k": 2}])
    table.delete("a = 1")
    done = table.restore(version)
    assert Counter(row["k"] for row in shown(table)) == {1: 2}
    changes = table.changes(done.version, start_inclusive=True).to_arrow().to_pylist()
    assert Counter((row["k"], row["_change_type"]) for row in changes) == {(1, "insert"): 2, (2, "delete"): 1}


def test_what_cannot_be_restored(orders: Table) -> None:
    before, version = shown(orders), orders.version
    with refused("INVALID_ARGUMENTS", "version or a timestamp", "history()"):
        orders.restore()
    with refused("INVALID_ARGUMENTS", "version or a timestamp"):
        orders.restore(1, "2026-01-01")
    with refused("INVALID_ARGUMENTS", str(version + 7), "newest"):
        orders.restore(version + 7)
    with refused("INVALID_ARGUMENTS", "2001", "oldest"):
        orders.restore(timestamp="2001-01-01")
    orders.add_column(Column("n", "int"))
    version = orders.version
    orders.widen_column("n", "bigint")
    with refused("NOT_SUPPORTED", "'n'", "int", "bigint", "upsert"):
        orders.restore(version)
    orders.truncate()
    orders.vacuum(dt.timedelta(0))
    with refused("INVALID_ARGUMENTS", "oldest"):
        orders.restore(version)
    assert before
    assert orders.count() == 0


def test_a_dropped_column_was_given_a_wider_type(local: Session, local_fmt: str) -> None:
    """A restore that brings it back does not make it narrower, and one to the wider type is allowed."""
    table = local.create_table(f"{local_fmt}.default.t", [Column("k", "int"), Column("n", "int"), Column("m", "int")])
    table.append([{"k": 1, "n": 1}])
    first = table.version
    table.rename_column("m", "other")  # so Delta maps its columns, and can drop one
    table.widen_column("n", "bigint")
    table.append([{"k": 2, "n": 3_000_000_000}])
    second = table.version
    table.drop_column("n")
    with refused("NOT_SUPPORTED", "'n'", "int", "bigint"):
        table.restore(first)
    table.restore(second)
    assert sorted(table.to_arrow()["n"].to_pylist()) == [1, 3_000_000_000]


def test_a_version_of_which_a_file_is_gone(orders: Table) -> None:
    version = orders.version
    file = orders.splits().files[0]
    orders.upsert({"k": 1, "ts": 9})
    orders.compact(full=True)
    at, rows = orders.version, shown(orders)
    Path(file.path).unlink()
    with refused("INVALID_ARGUMENTS", file.name, f"version {version}"):
        orders.restore(version)
    assert (orders.version, shown(orders)) == (at, rows)


# -- beside other engines, and other processes -----------------------------------------------------------


TAG = "trinity-removed-"


def _tagged(table: Table) -> set[int]:
    """Return the versions of an Iceberg table that a restore has tagged."""
    metadata = pyiceberg(table).metadata
    by_id = {s.snapshot_id: s.sequence_number for s in metadata.snapshots}
    return {by_id[ref.snapshot_id] for name, ref in metadata.refs.items() if name.startswith(TAG)}


@pytest.mark.parametrize("removing", ["truncate", "compact", "replace"])
def test_snapshots_that_removed_what_came_back_are_tagged(local: Session, warehouse: Path, removing: str) -> None:
    """Iceberg's Java library would delete the files with them; Trinity's vacuum does not, and takes the tags away."""
    table = local.create_table("iceberg.default.t", pa.table({"k": [1, 2]}), primary_key=["k"])
    table.upsert(pa.table({"k": [3]}))
    before, version = shown(table), table.version
    steps = {"truncate": table.truncate, "compact": lambda: table.compact(full=True)}
    replaced = partial(local.create_table, table.name, pa.table({"k": [9]}), primary_key=["k"], replace=True)
    steps.get(removing, replaced)()
    table.upsert(pa.table({"k": [4]}))  # which removes nothing
    table.restore(version)
    assert (shown(table), _tagged(table)) == (before, {version + 1})
    table.restore(version + 2)
    table.restore(version)
    assert _tagged(table) == {version + 1, version + 3, version + 4}
    table.vacuum(dt.timedelta(0))
    assert [*pyiceberg(table).metadata.refs] == ["main"]
    with trinity.connect(warehouse, engine="local") as again:
        assert shown(again.table(table.name)) == before


def test_a_version_between_cannot_be_read(local: Session, warehouse: Path) -> None:
    """It may have removed what comes back, so it is tagged."""
    table = local.create_table("iceberg.default.t", pa.table({"k": [1, 2]}), primary_key=["k"])
    before, version = shown(table), table.version
    table.truncate()
    removed = pyiceberg(table).current_snapshot()
    table.upsert(pa.table({"k": [4]}))
    Path(removed.manifest_list.removeprefix("file://")).unlink()
    with trinity.connect(warehouse, engine="local") as again:  # which remembers no manifests
        again.table(table.name).restore(version)
    assert (shown(table), _tagged(table)) == (before, {removed.sequence_number})


def _vacuum_in_another_process(warehouse: Path, table: Table) -> None:
    opened = f"trinity.connect({str(warehouse)!r}, engine='local').table({str(table.name)!r})"
    subprocess.run([sys.executable, "-c", f"import trinity; {opened}.vacuum('0 seconds')"], check=True)


def test_a_vacuum_by_another_process_meanwhile(
    local: Session, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The restore fails and changes nothing; another vacuum, and a commit that forgets old versions, are made again."""
    from trinity_iceberg.commit import IcebergAttempt

    table = local.create_table("iceberg.default.t", pa.table({"k": [1, 2]}), primary_key=["k"])
    version = table.version
    table.truncate()
    table.upsert(pa.table({"k": [5]}))
    at, rows = table.version, shown(table)

    def first(call: str, happens: Callable[[], object]) -> None:
        method = getattr(IcebergAttempt, call)

        def and_then(*arguments: Any) -> Any:
            monkeypatch.setattr(IcebergAttempt, call, method)
            happens()
            return method(*arguments)

        monkeypatch.setattr(IcebergAttempt, call, and_then)

    vacuum = partial(_vacuum_in_another_process, warehouse, table)
    first("restore", vacuum)
    with refused("INVALID_ARGUMENTS", "oldest"):
        table.restore(version)
    assert (table.version, shown(table)) == (at, rows)
    table.upsert(pa.table({"k": [6]}))
    first("forget", vacuum)
    table.vacuum(dt.timedelta(0))
    assert [row["k"] for row in shown(table)] == [5, 6]
    table.set_properties({"history.expire.max-snapshot-age-ms": "1"})
    for number in range(EXPIRED_AT_ONCE.value + 1):
        table.upsert(pa.table({"k": [number]}))
    expire = pyiceberg(table).maintenance.expire_snapshots  # leaves the files, of which the next commit has some
    first("put", lambda: expire().older_than(dt.datetime(2100, 1, 1)).commit())
    table.upsert(pa.table({"k": [1]}))
    assert len(table.history().collect()) == 2
    assert len(shown(table)) == EXPIRED_AT_ONCE.value + 1
