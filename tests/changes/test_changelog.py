"""Changes that are stored on disk: they equal the computed ones, and are computed again where lost (C3, C6)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.changes import defined_changes, feed
from tests.support.tables import put, versions_of
from trinity import Column, Session, Table, TrinityError
from trinity.engine.feed.stored_changes import store_changes
from trinity.engine.feed.usable_changes import found_changes, prune
from trinity.merge.properties import changelog_producer
from trinity.storage.changelog import CHANGELOG, StoredChanges

pytestmark = pytest.mark.inner


def table_with_map(session: Session, fmt: str, options: str = "") -> Table:
    name = f"{fmt}.default.t"
    session.sql(f"CREATE TABLE {name} (id INT, ts BIGINT, v STRING, m MAP<STRING, INT>, PRIMARY KEY (id)) {options}")
    return session.table(name)


def keep(table: Table, wanted: Sequence[int], place: str | None = None) -> list[StoredChanges]:
    """Store the changes of these versions by :func:`trinity.engine.feed.stored_changes.store_changes`."""
    return store_changes(table, table.connector.metadata.history(table.handle), wanted, place)


def kept(table: Table) -> set[int]:
    """Return the versions whose changes are on disk, or known to be empty."""
    entries = table.connector.metadata.history(table.handle)
    return set(found_changes(table, entries, changelog_producer(table.properties)))


def files(table: Table, ending: str) -> list[Path]:
    return sorted((Path(table.location) / CHANGELOG).rglob(f"*{ending}"))


def lived(table: Table) -> Table:
    put(table, (1, 10, "a"), (2, 10, "b"), (3, 10, "c"))
    put(table, (1, 20, "d"), (2, 5, "late"))
    table.delete([{"id": 3}])
    table.compact(full=True)
    put(table, (1, 20, "d"))
    put(table, (4, 1, "e"), (1, 30, "f"))
    return table


@pytest.mark.full  # the conformance suite's check draws it
def test_kept_changes_are_those_that_are_computed(session: Session, fmt: str) -> None:
    table = lived(table_with_map(session, fmt, "TBLPROPERTIES ('watermark-key' = 'ts')"))
    first, *others = versions_of(table)
    computed = feed(table, first)
    found = keep(table, others)
    assert [changes.version for changes in found] == others
    per_version = {v: sum(1 for _, version, _ in computed.elements() if version == v) for v in others}
    assert {changes.version: changes.rows for changes in found} == per_version
    assert {bool(changes.files) for changes in found if not changes.rows} == {False}
    for changes in found:
        tables = [pq.read_table(path) for path in changes.files]
        assert sum(t.num_rows for t in tables) == changes.rows
        assert {v for t in tables for v in t["_commit_version"].to_pylist()} <= {changes.version}
    assert kept(table) >= set(others)
    assert feed(table, first) == computed == defined_changes(table, first, others[-1])
    for form in ({"compute_updates": False}, {"preimages": False}, {"deduplication_mode": "netChanges"}):
        read = feed(table, first, **form)
        prune_all(table)
        assert feed(table, first, **form) == read
        assert kept(table).isdisjoint(v for v, rows in per_version.items() if rows)
        keep(table, others)


def prune_all(table: Table) -> None:
    for path in files(table, ".json"):
        path.unlink()
    prune(table, table.connector.metadata.history(table.handle), int(time.time() * 1000) + 1000)
    assert files(table, ".trinity") == []


@pytest.mark.full
def test_columns_that_changed_since(session: Session, tiered_fmt: str) -> None:
    table = table_with_map(session, tiered_fmt)
    put(table, (1, 10, "a"), (2, 10, "b"))
    keep(table, versions_of(table)[1:])
    table.widen_column("id", "bigint")
    table.add_column(Column("n", "int"))
    session.sql(f"UPDATE {table.name} SET m = map('x', 1, 'y', 2), n = 1 WHERE id = 1")
    session.sql(f"UPDATE {table.name} SET n = 2 WHERE id = 2")
    keep(table, versions_of(table)[1:])
    table.rename_column("v", "w")
    table.drop_column("n")
    session.sql(f"UPDATE {table.name} SET m = map('z', 1) WHERE id = 2")
    first, *others = versions_of(table)
    assert len(kept(table).intersection(others)) < len(others)
    assert feed(table, first) == defined_changes(table, first, others[-1])


def test_what_is_lost_is_computed_again(session: Session, tiered_fmt: str) -> None:
    table = table_with_map(session, tiered_fmt)
    first = versions_of(table)[0]
    one, two, three = put(table, (1, 1, "a")), put(table, (1, 2, "b")), put(table, (2, 2, "c"))
    keep(table, [one, two, three])
    whole = feed(table, first)
    Path(keep(table, [one])[0].files[0]).unlink()
    files(table, ".json")[1].write_text('{"version"')
    assert kept(table) >= {three}
    assert kept(table).isdisjoint({one, two})
    assert feed(table, first) == whole
    again = keep(table, [one, two])
    assert [changes.rows for changes in again] == [1, 2]
    assert kept(table) >= {one, two, three}
    assert feed(table, first) == whole


@pytest.mark.tiered
def test_vacuum_takes_what_cannot_be_read_and_leaves_the_rest(session: Session, fmt: str) -> None:
    table = table_with_map(session, fmt)
    one = put(table, (1, 1, "a"))
    keep(table, [one])
    put(table, (1, 2, "b"))
    table.compact(full=True)
    last = put(table, (1, 3, "c"))
    keep(table, [last])
    orphan = Path(table.location) / CHANGELOG / "orphan.trinity"
    pq.write_table(pa.table({"a": [1]}), orphan)
    assert len(files(table, ".trinity")) == 3
    table.vacuum("1 day")
    assert len(files(table, ".trinity")) == 3
    table.vacuum("0 seconds")
    assert [str(path) for path in files(table, ".trinity")] == list(keep(table, [last])[0].files)
    assert len(files(table, ".json")) == 1
    assert kept(table) >= {last}


def test_a_place_elsewhere_and_a_plain_table(session: Session, tmp_path: Path) -> None:
    session.sql("CREATE TABLE p (id INT, v STRING)")
    table = session.table("p")
    session.sql("INSERT INTO p VALUES (1, 'a'), (1, 'a'), (2, 'b')")
    session.sql("DELETE FROM p WHERE id = 1")
    place = str(tmp_path / "elsewhere")
    assert [changes.rows for changes in keep(table, [1, 2], place)] == [3, 2]
    assert not (Path(table.location) / CHANGELOG).exists()
    assert all(path.startswith(place) for changes in keep(table, [2, 1], place) for path in changes.files)
    keep(table, [1, 2])
    assert feed(table, 0) == defined_changes(table, 0, 2)
    assert {kind for kind, _, _ in feed(table, 0, deduplication_mode="netChanges")} == {"insert"}
    with pytest.raises(TrinityError, match="no version 9"):
        keep(table, [9])


def test_a_table_made_anew_is_another_one(session: Session) -> None:
    table = table_with_map(session, "parquet")
    one = put(table, (1, 1, "a"))
    keep(table, [one])
    contents = {path.name: path.read_bytes() for path in files(table, ".json")}
    session.sql("DROP TABLE t")
    table = table_with_map(session, "parquet")
    assert put(table, (7, 1, "other")) == one
    place = Path(table.location) / CHANGELOG
    place.mkdir(parents=True)
    for name, data in contents.items():
        (place / name).write_bytes(data)
    assert one not in kept(table)
    assert [changes.rows for changes in keep(table, [one])] == [1]
