"""Producers of the change feed: what each writes after which commit, what it shows, and what it refuses (C6)."""

from __future__ import annotations

import ast
import logging
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import trinity
from tests.support.changes import defined_changes, feed
from tests.support.paths import ROOT
from tests.support.tables import keyed_table, put, versions_of
from trinity import Column, Session, Table, TrinityError
from trinity.storage.changelog import CHANGELOG

pytestmark = pytest.mark.inner

COLUMNS = [Column("k", "int"), Column("ts", "bigint"), Column("v", "int")]


def written(table: Table) -> set[int]:
    """Return the versions whose changes are on disk."""
    return {int(path.name.split("-")[0]) for path in (Path(table.location) / CHANGELOG).glob("*.json")}


def is_scan(table: Table, after: int) -> bool:
    """Return whether the feed reads only the changelog."""
    files = table.changes(after).inputFiles()
    return bool(files) and all(f"/{CHANGELOG}/" in path for path in files)


def in_every_way(session: Session, table: Table, tmp_path: Path) -> None:
    """Commit changed rows to a table by every kind of write."""
    name = str(table.name)
    put(table, (1, 10, 1), (2, 10, 2), (3, 10, 3), (4, 10, 4))
    session.sql(f"INSERT INTO {name} VALUES (5, 10, 5)")
    session.sql(f"INSERT INTO {name} SELECT k + 10, ts, v FROM {name}")
    session.sql(f"UPDATE {name} SET v = 20 WHERE k = 2")
    session.sql(f"DELETE FROM {name} WHERE k = 3")
    table.delete([{"k": 4}])
    source = "(SELECT 1 AS k, 11L AS ts, 9 AS v UNION ALL SELECT 7, 11L, 7)"
    session.sql(f"MERGE INTO {name} t USING {source} s ON t.k = s.k "
                "WHEN MATCHED THEN UPDATE SET v = s.v, ts = s.ts WHEN NOT MATCHED THEN INSERT *")  # fmt: skip
    folder = str(tmp_path / "streamed")
    session.spark.createDataFrame([(1, 30, 31), (8, 30, 8)], "k int, ts bigint, v int").write.parquet(folder)
    stream = session.spark.readStream.schema("k int, ts bigint, v int").parquet(folder)
    table.stream_writer(stream, checkpoint=tmp_path / "checkpoint", available_now=True).awaitTermination()
    session.sql(f"TRUNCATE TABLE {name}")


@pytest.mark.full
def test_lookup_writes_the_changes_after_every_way_to_write(session: Session, fmt: str, tmp_path: Path) -> None:
    table = keyed_table(session, fmt, COLUMNS, changelog_producer="lookup", watermark_key="ts")
    first = versions_of(table)[0]
    in_every_way(session, table, tmp_path)
    put(table, (1, 40, 1))
    table.compact(full=True)
    last = put(table, (1, 5, 1), (2, 50, 2))
    folded = {entry.version for entry in table.connector.metadata.history(table.handle) if entry.operation == "compact"}
    assert len(folded) == 1
    assert written(table) == {*versions_of(table)[1:]} - folded
    assert is_scan(table, first)
    assert feed(table, first) == defined_changes(table, first, last)


COMMITS = {"finish_insert", "finish_merge", "finish_replace", "truncate"}
"""Calls of a connector's metadata that commit rows."""


def test_whatever_commits_rows_calls_the_hook() -> None:
    found = {}
    for path in (ROOT / "trinity/engine").rglob("*.py"):
        calls = [n.func for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)]
        named = {c.attr if isinstance(c, ast.Attribute) else getattr(c, "id", "") for c in calls}
        if COMMITS & {c.attr for c in calls if isinstance(c, ast.Attribute)}:
            found[path.stem] = "after_commit" in named
        if "finish_rewrite" in named:
            assert path.stem == "compact", "others compact by after_commit.compacted()"
    assert found == dict.fromkeys(("append", "batches", "statement", "whole_table"), True)


def test_a_changelog_that_cannot_be_written_fails_no_commit(session: Session, caplog: pytest.LogCaptureFixture) -> None:
    table = keyed_table(session, "parquet", COLUMNS, changelog_producer="lookup")
    first = versions_of(table)[0]
    place = Path(table.location) / CHANGELOG
    place.parent.mkdir(exist_ok=True)
    place.write_text("in the way")
    with caplog.at_level(logging.WARNING, "trinity"):
        failed = put(table, (1, 1, 1), (2, 1, 2))
    assert f"version {failed} is committed, but to write the changes fails" in caplog.text
    place.unlink()
    last = put(table, (1, 2, 3))
    assert written(table) == {last}
    assert feed(table, first) == defined_changes(table, first, last)


REFUSED: list[tuple[dict[str, str], str]] = [
    ({"changelog_producer": "binlog"}, "one of none, input, lookup, full-compaction"),
    ({"changelog_producer": "input", "merge_engine": "first-row"}, "does not go with merge engine first-row"),
    ({"changelog_producer": "full-compaction", "merge_engine": "first-row"}, "use lookup"),
    ({"changelog_producer": "full-compaction", "keep_versions": "true"}, "does not go with 'keep-versions'"),
    ({"changelog_producer": "lookup", "full_compaction__delta_commits": "3"}, "use full-compaction"),
    ({"changelog_producer": "full-compaction", "full_compaction__delta_commits": "0"}, "a number from 1 on"),
    ({"keep_versions": "true", "full_compaction__delta_commits": "3"}, "does not go with 'keep-versions'"),
    ({"changelog_producer": "lookup", "changelog_producer__row_deduplicate": "maybe"}, "it is true or false"),
    ({"changelog_producer": "input", "changelog_producer__row_deduplicate": "true"}, "needs 'changelog-producer'"),
]


@pytest.mark.parametrize(("options", "why"), REFUSED)
def test_what_does_not_go_together_is_refused(warehouse: Path, options: dict[str, str], why: str) -> None:
    with trinity.connect(warehouse) as session, pytest.raises(TrinityError, match=re.escape(why)) as refused:
        keyed_table(session, "parquet", COLUMNS, **options)
    assert refused.value.code == "INVALID_TABLE_PROPERTY"


@pytest.mark.parametrize("option", ["changelog-producer", "full-compaction.delta-commits"])
def test_a_plain_table_has_no_producer(warehouse: Path, option: str) -> None:
    properties: dict[str, Any] = {option: "lookup" if option == "changelog-producer" else 3}
    with trinity.connect(warehouse) as session, pytest.raises(TrinityError, match="needs a PRIMARY KEY"):
        session.create_table("p", [Column("k", "int")], properties=properties)


def shown(table: Table, after: int) -> list[tuple[int, str, int, int | None]]:
    """Return (version, change type, key, v) of the feed, sorted."""
    return sorted((version, kind, row[0], row[2]) for kind, version, row in feed(table, after).elements())


@pytest.mark.full
def test_full_compaction_shows_rounds(session: Session, tiered_fmt: str) -> None:
    options = {"changelog_producer": "full-compaction", "full_compaction__delta_commits": "2", "watermark_key": "ts"}
    table = keyed_table(session, tiered_fmt, COLUMNS, changelog_producer__row_deduplicate="true", **options)
    first = versions_of(table)[0]
    put(table, (1, 10, 1), (2, 10, 2), (3, 10, 3))
    assert feed(table, first) == {}
    second = put(table, (1, 11, 4)) + 1
    one = [(second, "insert", 1, 4), (second, "insert", 2, 2), (second, "insert", 3, 3)]
    assert written(table) == {second} == {versions_of(table)[-1]}
    table.delete([{"k": 3}])
    assert shown(table, first) == one
    third = put(table, (2, 9, 0), (2, 20, 2), (1, 12, 5)) + 1
    sides = {"update_postimage": (5, 2), "update_preimage": (4, 2)}  # only the time of row 2 changed
    updated = [(third, side, k, v) for side, values in sides.items() for k, v in zip((1, 2), values, strict=True)]
    two = [(third, "delete", 3, 3), *updated]
    put(table, (9, 1, 9))
    assert versions_of(table)[-2] == third
    assert shown(table, first) == [*one, *two]
    assert shown(table, second) == two
    assert is_scan(table, first)
    fourth = table.compact(full=True).version
    assert fourth in written(table)
    assert shown(table, third) == [(fourth, "insert", 9, 9)]


def test_input_shows_a_tombstone_as_a_delete_whatever_its_row_kind_says(session: Session, tiered_fmt: str) -> None:
    options = "'changelog-producer' = 'input', 'rowkind.field' = 'kind', 'tombstone-key' = 'gone'"
    name = f"{tiered_fmt}.default.t"
    session.sql(f"CREATE TABLE {name} (k INT, kind STRING, gone BOOLEAN, PRIMARY KEY (k)) TBLPROPERTIES ({options})")
    table = session.table(name)
    before = table.upsert([{"k": 1, "kind": "+U"}]).version
    session.sql(f"DELETE FROM {name} WHERE k = 1")
    assert [row["_change_type"] for row in table.changes(before).collect()] == ["delete"]


@pytest.mark.parametrize("engine", ["deduplicate", pytest.param("partial-update", marks=pytest.mark.full),
                                    pytest.param("aggregation", marks=pytest.mark.full)])  # fmt: skip
def test_input_shows_rows_as_they_came(session: Session, tiered_fmt: str, engine: str) -> None:
    name = f"{tiered_fmt}.default.t"
    more = ", 'fields.v.aggregate-function' = 'sum'" if engine == "aggregation" else ""
    more += ", 'partial-update.remove-record-on-delete' = 'true'" if engine == "partial-update" else ""
    options = f"'changelog-producer' = 'input', 'rowkind.field' = 'kind', 'merge-engine' = '{engine}'{more}"
    session.sql(f"CREATE TABLE {name} (k INT, v INT, kind STRING, PRIMARY KEY (k)) TBLPROPERTIES ({options})")
    table = session.table(name)
    first = versions_of(table)[0]
    came = [(1, 1, "+I"), (1, 1, "-U"), (1, 2, "+U"), (2, None, "+I"), (3, 3, "-D")]
    names, kinds = ("k", "v", "kind"), (pa.int32(), pa.int32(), pa.string())
    columns = [pa.array(c, kind) for c, kind in zip(zip(*came, strict=True), kinds, strict=True)]
    version = table.upsert(pa.table(columns, names=names)).version
    change_types = {"+I": "insert", "-U": "update_preimage", "+U": "update_postimage", "-D": "delete"}
    rows = table.changes(first).collect()
    assert sorted((r.k, r["_change_type"], r.v, r.kind) for r in rows if r["_commit_version"] == version) == sorted(
        (k, change_types[kind], v, kind) for k, v, kind in came
    )
    table.compact(full=True)
    live = sorted((r.k, r.v) for r in table.to_df().collect())
    session.sql(f"TRUNCATE TABLE {name}")
    rows = table.changes(version).collect()
    assert sorted((r.k, r.v) for r in rows) == live
    assert {r["_change_type"] for r in rows} == {"delete"}
    with pytest.raises(TrinityError, match="of these there are no net ones"):
        table.changes(first, deduplication_mode="netChanges")
