"""Other engines change Trinity's tables: their changes are taken over, or reads and writes are refused by name.

Spark's ALTER and DELETE take seconds each. In the short tier, the examples of docs/other-engines.md and the adapters'
own tests cover this.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.foreign import Other
from tests.support.iceberg import iceberg_spark, pyiceberg
from tests.support.refusals import refusal
from tests.support.tables import add
from trinity import Column, Session, Table

COLUMNS = [Column("k", "int", nullable=False), Column("w", "bigint"), Column("v", "string")]
KINDS: dict[str, Mapping[str, str] | None] = {
    "deduplicate": {"watermark-key": "w"},
    "plain": None,
    "partial_update": {"merge-engine": "partial-update", "fields.w.sequence-group": "v"},
    "aggregation": {"merge-engine": "aggregation", "fields.v.aggregate-function": "last_value"},
}
CASES = [(fmt, kind) for fmt in ("delta", "iceberg") for kind in KINDS]


def make(session: Session, fmt: str, kind: str = "deduplicate", name: str = "t") -> Table:
    properties = KINDS[kind]
    key = [] if properties is None else ["k"]
    return session.create_table(
        f"{fmt}.default.{name}", COLUMNS, primary_key=key, partition_by=(), properties=properties or {}
    )


def shown(table: Table, version: int | None = None) -> list[dict[str, Any]]:
    return sorted(table.to_df(version).toArrow().to_pylist(), key=lambda r: r["k"])


def seen(other: Other) -> list[dict[str, Any]]:
    names = [c for c in other.spark.table(other.name).columns if not c.startswith("_trinity_")]
    return [r.asDict() for r in other(f"SELECT {', '.join(names)} FROM {{t}} ORDER BY k")]


@pytest.mark.full
@pytest.mark.parametrize(("fmt", "kind"), CASES, indirect=["fmt"])
def test_columns_of_others_stay(session: Session, fmt: str, kind: str) -> None:
    table = make(session, fmt, kind)
    other = Other(session, table)
    add(table, (1, 1, "a"), (2, 1, "b"))
    start = table.splits().version
    other("ALTER TABLE {t} ADD COLUMN extra INT AFTER k")
    other.append(k=7, extra=5, w=1, v="s")
    session.sql(f"UPDATE {fmt}.default.t SET extra = 9 WHERE k = 1")
    table.compact(full=True)
    assert [(r["k"], r["extra"], r["v"]) for r in shown(table)] == [(1, 9, "a"), (2, None, "b"), (7, 5, "s")]
    if fmt == "delta":
        features = "'delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true'"
        other(f"ALTER TABLE {{t}} SET TBLPROPERTIES ({features})")
    other(
        "ALTER TABLE {t} ADD COLUMN first STRING FIRST",  # before an older row version
        "ALTER TABLE {t} RENAME COLUMN v TO said",
        "ALTER TABLE {t} ALTER COLUMN extra TYPE BIGINT",
        "ALTER TABLE {t} ALTER COLUMN said COMMENT 'theirs'",
    )
    other.append(first="new", k=8, extra=2**40, w=1, said="t")
    session.sql(f"UPDATE {fmt}.default.t SET first = 'mine' WHERE k = 2")
    expected: list[dict[str, Any]] = [
        {"first": None, "k": 1, "extra": 9, "w": 1, "said": "a"},
        {"first": "mine", "k": 2, "extra": None, "w": 1, "said": "b"},
        {"first": None, "k": 7, "extra": 5, "w": 1, "said": "s"},
        {"first": "new", "k": 8, "extra": 2**40, "w": 1, "said": "t"},
    ]
    assert shown(table) == expected
    assert table.definition.column("said").comment == "theirs"
    other("ALTER TABLE {t} DROP COLUMN extra")
    table.compact(full=True)
    add_again = pa.table({"k": pa.array([9], pa.int32()), "w": [1], "said": ["n"]})
    (table.append if kind == "plain" else table.upsert)(add_again)
    expected = [{k: v for k, v in row.items() if k != "extra"} for row in expected]
    expected.append({"first": None, "k": 9, "w": 1, "said": "n"})
    assert shown(table) == expected
    assert seen(other) == expected
    assert shown(table, start) == [{"k": 1, "w": 1, "v": "a"}, {"k": 2, "w": 1, "v": "b"}]


def everything_refuses(session: Session, table: Table, says: str) -> None:
    """Check that reads and writes are refused with the same message, and commit nothing."""
    before = [r.version for r in table.history().collect()]
    row = pa.table({"k": pa.array([1], pa.int32())})
    calls: list[Callable[[], object]] = [
        table.to_df,
        table.log,
        lambda: session.sql(f"SELECT * FROM {table.name}"),
        lambda: table.upsert(row),
        lambda: table.upsert(row, txn=("app", 1)),
        lambda: table.delete("k = 1"),
        lambda: session.sql(f"UPDATE {table.name} SET v = 'x'"),
        lambda: session.sql(f"MERGE INTO {table.name} t USING (SELECT 1 AS k) s ON t.k = s.k WHEN MATCHED THEN DELETE"),
        lambda: session.sql(f"TRUNCATE TABLE {table.name}"),
        lambda: session.sql(f"ALTER TABLE {table.name} ADD COLUMN mine INT"),
        table.compact,
        table.vacuum,
    ]
    for call in calls:
        refusal("NOT_SUPPORTED", call, says)
    assert [r.version for r in table.history().collect()] == before


def test_files_of_an_old_version_that_are_gone(session: Session) -> None:
    table = make(session, "delta")
    add(table, (1, 1, "a"))
    old = table.splits()
    add(table, (1, 2, "b"))
    table.compact(full=True)
    kept = table.splits().version
    Path(old.files[0].path).unlink()  # as a VACUUM does
    says = f"Version {old.version} .* was vacuumed.* oldest readable one is {kept}"
    refusal("INVALID_ARGUMENTS", lambda: table.to_df(old.version), says)
    assert [r["v"] for r in shown(table)] == ["b"]


@pytest.mark.full
def test_another_engines_vacuum_is_named(session: Session) -> None:
    table = make(session, "delta")
    add(table, (1, 1, "a"))
    old = table.splits().version
    add(table, (1, 2, "b"))
    table.compact(full=True)
    kept = table.splits().version
    other = Other(session, table)
    check = "spark.databricks.delta.retentionDurationCheck.enabled"
    other.spark.conf.set(check, "false")
    other("VACUUM {t} RETAIN 0 HOURS")
    other.spark.conf.unset(check)
    refusal("INVALID_ARGUMENTS", lambda: table.to_df(old), f"Version {old} .* was vacuumed.* readable one is {kept}")
    assert [r["v"] for r in shown(table)] == [r["v"] for r in shown(table, kept)] == ["b"]


@pytest.mark.full
def test_settings_of_others_are_kept_or_refused(session: Session) -> None:
    keyed, plain = make(session, "delta"), make(session, "delta", "plain", "p")
    other = Other(session, keyed)
    add(keyed, (1, 1, "a"))
    other(
        "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (w > 0)",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
        "ALTER TABLE {t} ALTER COLUMN v SET DEFAULT 'theirs'",
        "ALTER TABLE {t} CLUSTER BY (v)",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.logRetentionDuration' = 'interval 9 days')",
    )
    refusal("CONSTRAINT_VIOLATION", lambda: add(keyed, (2, 0, "b")), "positive")
    keyed.upsert(pa.table({"k": pa.array([2], pa.int32()), "w": [5]}))
    keyed.delete([1])
    assert shown(keyed) == [{"k": 2, "w": 5, "v": "theirs"}]
    refusal("NOT_SUPPORTED", lambda: session.sql("ALTER TABLE delta.default.t DROP COLUMN v"), "CLUSTER BY")
    session.sql("ALTER TABLE delta.default.t ADD COLUMN mine INT")
    session.sql("ALTER TABLE delta.default.t ALTER COLUMN v DROP DEFAULT")
    session.sql("ALTER TABLE delta.default.t DROP CONSTRAINT positive")
    keyed.compact(full=True)
    [detail] = other("DESCRIBE DETAIL {t}")
    assert detail.clusteringColumns == ["v"]
    assert detail.properties["delta.logRetentionDuration"] == "interval 9 days"
    assert "delta.constraints.positive" not in detail.properties
    keyed.upsert(pa.table({"k": pa.array([3], pa.int32()), "w": [0]}))
    assert [r["v"] for r in shown(keyed)] == ["theirs", None]

    other("ALTER TABLE {t} SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    add(keyed, (3, 9, "b"))
    refusal("NOT_SUPPORTED", lambda: keyed.compact(full=True), "delta.appendOnly")
    add(plain, (1, 1, "a"), (2, 1, "b"))
    for setting in ("delta.enableChangeDataFeed", "delta.appendOnly"):
        Other(session, plain)(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('{setting}' = 'true')")
        refusal("NOT_SUPPORTED", lambda: plain.delete("k = 1"), setting)
        add(plain, (3, 1, setting))
        Other(session, plain)(f"ALTER TABLE {{t}} UNSET TBLPROPERTIES ('{setting}')")
    plain.delete("k = 1")
    assert [r["k"] for r in shown(plain)] == [2, 3, 3]


REFUSALS = {
    "ALTER TABLE {t} DROP COLUMN w": "'w', which is the watermark",
    "ALTER TABLE {t} RENAME COLUMN _trinity_row_kind TO kind": "_trinity_row_kind",
    "ALTER TABLE {t} ALTER COLUMN k DROP NOT NULL": "NOT NULL from column 'k'",
    "ALTER TABLE {t} ADD COLUMN s STRUCT<a: INT>": "'s', whose part 'a'",
}


@pytest.mark.full
@pytest.mark.parametrize("statement", REFUSALS)
def test_what_cannot_be_taken_over_is_refused_by_name(session: Session, statement: str) -> None:
    table = make(session, "delta")
    add(table, (1, 1, "a"))
    other = Other(session, table)
    other("ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    before = table.splits().version
    other(statement)
    everything_refuses(session, table, REFUSALS[statement])
    assert shown(table, before) == [{"k": 1, "w": 1, "v": "a"}]
    other(f"RESTORE TABLE {{t}} TO VERSION AS OF {before}")
    add(table, (2, 1, "b"))
    assert [r["v"] for r in shown(table)] == ["a", "b"]


@pytest.mark.full
def test_structs_of_mapped_tables_are_the_same_for_others(session: Session) -> None:
    table = make(session, "delta")
    session.sql("ALTER TABLE delta.default.t RENAME COLUMN v TO said")  # column mapping
    session.sql("ALTER TABLE delta.default.t ADD COLUMN s STRUCT<a: INT, b: ARRAY<STRUCT<c: INT>>>")
    session.sql("INSERT INTO delta.default.t SELECT 1, 1L, 'a', named_struct('a', 2, 'b', array(named_struct('c', 3)))")
    expected = [(1, 2, 3)]
    assert [tuple(r) for r in Other(session, table)("SELECT k, s.a, s.b[0].c FROM {t}")] == expected
    assert [tuple(r) for r in session.sql("SELECT k, s.a, s.b[0].c FROM delta.default.t").collect()] == expected


@pytest.mark.full
@pytest.mark.parametrize("fmt", ["delta", "iceberg"])
@pytest.mark.parametrize("change", ["UPDATE {t} SET v = 'theirs' WHERE k = 1", "DELETE FROM {t} WHERE k < 9"])
def test_changes_of_rows_that_lie_aside_are_refused(session: Session, fmt: str, change: str) -> None:
    """Another engine's changes would be undone: rows are folded again from the versions that compaction keeps (E3)."""
    properties = {"merge-engine": "aggregation", "sequence.field": "w", "fields.v.aggregate-function": "listagg"}
    table = session.create_table(f"{fmt}.default.t", COLUMNS, primary_key=["k"], partition_by=(), properties=properties)
    other = Other(session, table)
    add(table, (1, 2, "b"), (2, 1, "x"))
    add(table, (1, 1, "a"))
    table.compact(full=True)
    other.rewrite()  # is no change
    add(table, (9, 1, "z"))
    other("UPDATE {t} SET v = 'z2' WHERE k = 9")  # not compacted: a change of a row version
    expected = [(1, "a,b"), (2, "x"), (9, "z2")]
    assert [(r["k"], r["v"]) for r in shown(table)] == expected
    before = table.splits().version
    [snapshot] = other("SELECT max_by(snapshot_id, committed_at) FROM {t}.snapshots") if fmt == "iceberg" else [None]
    other(change)
    for call in (table.to_df, table.log, lambda: add(table, (1, 3, "c")), lambda: table.compact(full=True)):
        refusal("NOT_SUPPORTED", call, "lie in the sidecar")
    assert [(r["k"], r["v"]) for r in shown(table, before)] == expected
    if snapshot is None:
        other(f"RESTORE TABLE {{t}} TO VERSION AS OF {before}")
    else:
        other(f"CALL iceberg.system.rollback_to_snapshot('default.t', {snapshot[0]})")
    add(table, (1, 3, "c"))
    assert [(r["k"], r["v"]) for r in shown(table)] == [(1, "a,b,c"), *expected[1:]]


@pytest.mark.full
def test_spark_merges_whole_rows(session: Session) -> None:
    """Hidden columns make UPDATE SET * require schema evolution, as docs/other-engines.md says."""
    table = make(session, "delta")
    add(table, (1, 1, "a"), (2, 1, "b"))
    Other(session, table)(
        "MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (SELECT * FROM VALUES (2, 2L, 'b2'), (3, 1L, 'c') v(k, w, v)) s "
        "ON t.k = s.k WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    table.delete([1])
    assert [(r["k"], r["v"]) for r in shown(table)] == [(2, "b2"), (3, "c")]


@pytest.mark.full
def test_icebergs_readers_of_changes_pass_over_compaction(session: Session, tmp_path: Path) -> None:
    table = make(session, "iceberg")
    other = Other(session, table)
    add(table, (1, 1, "a"), (2, 1, "b"))
    add(table, (1, 2, "a2"))
    table.delete([2])
    table.compact(full=True)
    add(table, (3, 1, "c"))
    other("CALL iceberg.system.create_changelog_view(table => 'default.t', changelog_view => 'changes')")
    changes = other("SELECT k, v, _change_type FROM changes WHERE _trinity_row_kind IS NULL ORDER BY k, v")
    assert [tuple(r) for r in changes] == [(k, v, "INSERT") for k, v in [(1, "a"), (1, "a2"), (2, "b"), (3, "c")]]
    stream = (
        other.spark.readStream.format("iceberg").load(other.name).writeStream.format("memory").queryName("streamed")
    )
    stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    stream.trigger(availableNow=True).start().awaitTermination()
    streamed = other("SELECT k, v FROM streamed WHERE _trinity_row_kind IS NULL ORDER BY k, v")
    assert [tuple(r) for r in streamed] == [(1, "a"), (1, "a2"), (2, "b"), (3, "c")]


@pytest.mark.full
def test_icebergs_view_of_changes_ends_at_delete_files(session: Session) -> None:
    """``resolve`` warns of it, and docs/other-engines.md says so; it holds for later appends, too."""
    table = make(session, "iceberg")
    other = Other(session, table)
    add(table, (1, 1, "a"), (2, 1, "b"))
    table.compact(full=True)
    add(table, (1, 2, "a2"))
    [until] = other("SELECT max_by(snapshot_id, committed_at) FROM {t}.snapshots")
    version = table.compact("resolve").version
    assert other("SELECT count(*) FROM {t}.delete_files")[0][0] == 1
    [resolved] = other("SELECT max_by(snapshot_id, committed_at) FROM {t}.snapshots")
    add(table, (3, 1, "c"))
    view = (
        "CALL iceberg.system.create_changelog_view(table => 'default.t', changelog_view => 'seen', options => map({}))"
    )
    rows = "SELECT k, v, _change_type FROM seen WHERE k IS NOT NULL ORDER BY k, v"
    other(view.replace("{}", f"'end-snapshot-id', '{until[0]}'"))
    assert [tuple(r) for r in other(rows)] == [(k, v, "INSERT") for k, v in [(1, "a"), (1, "a2"), (2, "b")]]
    for since in (until[0], resolved[0]):
        with pytest.raises(Exception, match=r"(?i)delete"):
            other(view.replace("{}", f"'start-snapshot-id', '{since}'"), rows)
    assert [(row.k, row.v) for row in table.changes(version).collect()] == [(3, "c")]


@pytest.mark.full
def test_icebergs_own_care_loses_nothing(session: Session) -> None:
    """Spark's procedures that expire snapshots and remove orphan files keep tombstones and transactions."""
    table = make(session, "iceberg")
    other = Other(session, table)
    add(table, (1, 1, "a"), (2, 5, "b"))
    table.upsert(pa.table({"k": pa.array([3], pa.int32()), "w": [1]}), txn=("app", 1))
    table.delete([2])
    table.compact(full=True)
    old = table.splits().version
    other.append(k=4, w=1, v="theirs")
    other("CALL iceberg.system.expire_snapshots(table => 'default.t', older_than => TIMESTAMP '2099-01-01 00:00:00')")
    for path in Path(table.location).rglob("*"):
        os.utime(path, (time.time() - 30 * 86400,) * 2)
    for listing in ("false", "true"):  # one listing skips hidden folders, the other does not
        call = f"CALL iceberg.system.remove_orphan_files(table => 'default.t', prefix_listing => {listing})"
        assert [r for r in other(call) if "_trinity" in r[0]] == []
    assert table.upsert(pa.table({"k": pa.array([3], pa.int32()), "w": [1]}), txn=("app", 1)).skipped
    add(table, (2, 4, "late"))  # older than its tombstone
    assert [r["k"] for r in shown(table)] == [1, 3, 4]
    refusal("INVALID_ARGUMENTS", lambda: table.to_df(old), f"no version {old} .*oldest readable one")


def test_icebergs_java_library_expires_what_a_restore_has_left(session: Session) -> None:
    """It deletes the files that an expired snapshot removed, without asking whether a later one has them again."""
    table = make(session, "iceberg")
    add(table, (1, 1, "a"), (2, 5, "b"))
    version, before = table.version, shown(table)
    table.truncate()
    add(table, (3, 1, "c"))
    table.restore(version)
    spark = iceberg_spark(session)
    jvm: Any = spark._jvm
    active = jvm.org.apache.spark.sql.classic.SparkSession
    active.setActiveSession(spark._jsparkSession)  # whose settings say what the catalog is
    loaded = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, "iceberg.default.t")
    active.setActiveSession(session.spark._jsparkSession)
    loaded.expireSnapshots().expireOlderThan(2**62).retainLast(1).commit()
    assert shown(table) == before
    assert len(pyiceberg(table).metadata.snapshots) == 2  # the newest one, and the one that removed what came back
    table.vacuum("0 seconds")
    assert (len(pyiceberg(table).metadata.snapshots), shown(table)) == (1, before)


def test_a_restore_takes_no_rows_from_an_append_only_table(session: Session) -> None:
    """Nor does Spark's."""
    table = make(session, "delta")
    add(table, (1, 1, "a"))
    version = table.version
    add(table, (2, 1, "b"))
    other = Other(session, table)
    other("ALTER TABLE {t} SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    refusal("NOT_SUPPORTED", lambda: table.restore(version), "'delta.appendOnly' = 'true'")
    assert [r["k"] for r in shown(table)] == [1, 2]
    table.restore(version + 1)  # which takes no rows, and leaves the setting on
    refusal("NOT_SUPPORTED", table.truncate, "delta.appendOnly")
