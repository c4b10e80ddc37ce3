"""Delta's log changed by other engines: copies of a table, and removed parts of what Trinity keeps in the log."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import trinity
from tests.support.adapter import compact
from tests.support.delta_lake import commit_by_others, commit_file, last_action, restore_by_others
from tests.support.put_back import rewound, swapped
from trinity import Column, Session, Table, TrinityError
from trinity.storage import ObjectStore
from trinity_delta.checkpoint import write_checkpoint
from trinity_delta.schema import DEFINITION, TABLE

COLUMNS = [Column("id", "string"), Column("ts", "bigint"), Column("gone", "boolean")]
OPTIONS = {"watermark-key": "ts", "tombstone-key": "gone"}
LATE = pa.table({"id": ["a"], "ts": [5]})
Change = Callable[[dict[str, Any]], None]


def shown(table: Table, version: int | None = None) -> list[str]:
    return sorted(table.to_arrow(version=version)["id"].to_pylist())


@pytest.fixture
def seats(warehouse: Path) -> Iterator[Table]:
    """Yield a table whose version 2 is a compaction with a's tombstone in the sidecar, and whose version 3 adds c."""
    with trinity.connect(warehouse) as session:
        table = session.create_table("delta.default.seats", COLUMNS, primary_key=["id"], properties=OPTIONS)
        table.upsert(pa.table({"id": ["a", "b"], "ts": [6, 6], "gone": [True, False]}))
        dead = [{"id": "a", "ts": 6, "gone": True}]
        compact(table.connector, table.handle, [{"id": "b", "ts": 6, "gone": False}], dead)()
        table.upsert(pa.table({"id": ["c"], "ts": [1]}))
        yield table


def elsewhere(table: Table, name: str = "delta.default.seats") -> Table:
    """Open the table in a new session."""
    return trinity.connect(Path(table.location).parents[2]).table(name)


def checkpoint(table: Table) -> int:
    """Write a checkpoint of the newest version without removed domains, as other engines do. Return the version."""
    store = ObjectStore(table.location)
    version = len(list(Path(table.location, "_delta_log").glob("*.json"))) - 1
    write_checkpoint(store, "t", version, 0, store.names("_delta_log"), {})
    return version


def drop_feature(table: Table) -> None:
    """Commit what Spark's ALTER TABLE … DROP FEATURE domainMetadata commits."""
    kept = ("trinity.sidecar",)
    gone = ({"domainMetadata": {"domain": name, "configuration": "[]", "removed": True}} for name in kept)
    commit_by_others(table.handle, *gone, operation="DOMAIN METADATA CLEANUP")
    protocol = last_action(table.handle, "protocol")
    left = [feature for feature in protocol["writerFeatures"] if feature != "domainMetadata"]
    protocol = {"protocol": {**protocol, "writerFeatures": left}}
    commit_by_others(
        table.handle, {"metaData": last_action(table.handle, "metaData")}, protocol, operation="DROP FEATURE"
    )


def check_refused(table: Table, *words: str) -> None:
    """Check that reads and writes are refused by name, and leave no commit and all files."""
    before = sorted(Path(table.location, "_delta_log").glob("*.json"))
    for call in (lambda: shown(table), lambda: table.upsert(LATE), table.splits):
        with pytest.raises(TrinityError) as caught:
            call()
        assert caught.value.code == "NOT_SUPPORTED", caught.value
        assert all(word in caught.value.message for word in (str(table.name), *words)), caught.value.message
    assert sorted(Path(table.location, "_delta_log").glob("*.json")) == before


@pytest.mark.parametrize("checkpointed", [False, True])
def test_a_dropped_feature_is_noticed_and_put_back(seats: Table, checkpointed: bool) -> None:
    drop_feature(seats)
    if checkpointed:
        checkpoint(seats)
    for table in (elsewhere(seats), seats):
        check_refused(table, "DROP FEATURE", "session.repair(")
    assert shown(seats, 3) == ["b", "c"]
    done = elsewhere(seats).session.repair("delta.default.seats")
    assert (done.version, done.skipped) == (6, False)
    assert "domainMetadata" in last_action(seats.handle, "protocol")["writerFeatures"]
    for table in (elsewhere(seats), seats):
        assert table.session.repair("delta.default.seats").skipped
        table.upsert(LATE)
        assert shown(table) == ["b", "c"]
        if checkpointed:
            checkpoint(seats)


def test_a_dropped_feature_comes_back_with_what_it_kept_by_a_restore(seats: Table) -> None:
    drop_feature(seats)
    protocol = {"protocol": last_action(seats.handle, "protocol")}
    protocol["protocol"]["writerFeatures"].append("domainMetadata")
    restore_by_others(seats.handle, 3)
    log = commit_file(seats.handle, 6)
    log.write_text("\n".join([log.read_text(), json.dumps(protocol)]))
    for table in (elsewhere(seats), seats):
        table.upsert(LATE)
        assert shown(table) == ["b", "c"]


def test_a_feature_that_others_put_back_brings_nothing(seats: Table) -> None:
    drop_feature(seats)
    protocol = last_action(seats.handle, "protocol")
    protocol["writerFeatures"].append("domainMetadata")
    commit_by_others(seats.handle, {"protocol": protocol})
    checkpoint(seats)
    for table in (elsewhere(seats), seats):
        check_refused(table, "session.repair(")
    seats.session.repair("delta.default.seats")
    elsewhere(seats).upsert(LATE)
    assert shown(seats) == ["b", "c"]


@pytest.mark.usefixtures("spark")
def test_what_the_log_has_lost_is_not_put_back(seats: Table) -> None:
    drop_feature(seats)
    newest = checkpoint(seats)
    for version in range(newest):
        commit_file(seats.handle, version).unlink()
    check_refused(elsewhere(seats), "the log was cleaned up")
    with pytest.raises(TrinityError, match="the log was cleaned up"):
        seats.session.repair("delta.default.seats")


# -- properties -------------------------------------------------------------------------------------------


def alter(table: Table, change: Change) -> None:
    """Commit what Spark's SET and UNSET TBLPROPERTIES commit."""
    metadata = last_action(table.handle, "metaData")
    change(metadata["configuration"])
    commit_by_others(table.handle, {"metaData": metadata}, operation="SET TBLPROPERTIES")


def unset(settings: dict[str, Any]) -> None:
    del settings[DEFINITION]


def of_another_table(settings: dict[str, Any]) -> None:
    settings[DEFINITION] = settings[DEFINITION].replace('"id":"', '"id":"0')


def older(settings: dict[str, Any]) -> None:
    settings[DEFINITION] = settings[DEFINITION].replace('"tombstone-key":"gone"', '"tombstone-key":"ts"')


def garbage(settings: dict[str, Any]) -> None:
    settings[DEFINITION] = "{}"
    del settings[TABLE]


@pytest.mark.parametrize("change", [unset, of_another_table, older, garbage])
@pytest.mark.parametrize("checkpointed", [False, True])
def test_a_definition_that_others_changed_is_noticed_and_put_back(
    seats: Table, change: Change, checkpointed: bool
) -> None:
    alter(seats, change)
    if checkpointed:
        checkpoint(seats)
    for table in (elsewhere(seats), seats):
        check_refused(table, DEFINITION, "session.repair(")
    elsewhere(seats).session.repair("delta.default.seats")
    for table in (elsewhere(seats), seats):
        table.upsert(LATE)
        assert shown(table) == ["b", "c"]


@pytest.mark.usefixtures("spark")
def test_a_table_that_is_handed_over_is_external(seats: Table) -> None:
    """Without both properties the stored row versions remain, and none of Trinity's tombstones."""

    def both(settings: dict[str, Any]) -> None:
        del settings[DEFINITION], settings[TABLE]

    alter(seats, both)
    for table in (elsewhere(seats), seats):
        assert table.definition.external
        assert not table.splits().sidecar
        assert sorted(r.id for r in table.to_df().collect()) == ["b", "c"]
    restore_by_others(seats.handle, 3)
    for table in (elsewhere(seats), seats):
        table.upsert(LATE)
        assert shown(table) == ["b", "c"]


def _of_a_type(metadata: dict[str, Any]) -> None:
    schema = json.loads(metadata["schemaString"])
    schema["fields"].append({"name": "x", "type": "variant", "nullable": True, "metadata": {}})
    metadata["schemaString"] = json.dumps(schema)


NEWER: dict[str, tuple[str, Change]] = {
    "feature": ("protocol", lambda protocol: protocol.update(minReaderVersion=3, readerFeatures=["someday"])),
    "version": ("protocol", lambda protocol: protocol.update(minReaderVersion=4)),
    "type": ("metaData", _of_a_type),
}


@pytest.mark.parametrize("newer", NEWER)
def test_what_is_not_understood_is_no_damage(seats: Table, newer: str) -> None:
    """No repair goes back before it: the table is whole, and another engine reads it."""
    kind, change = NEWER[newer]
    action = last_action(seats.handle, kind)
    change(action)
    commit_by_others(seats.handle, {kind: action})
    for table in (elsewhere(seats), seats):
        check_refused(table)
        for dry_run in (True, False):
            with pytest.raises(TrinityError) as caught:
                table.session.repair("delta.default.seats", dry_run=dry_run)
            assert caught.value.code == "NOT_SUPPORTED"
    assert shown(seats, 3) == ["b", "c"]


def test_a_table_that_others_altered_is_replaced(seats: Table) -> None:
    metadata = last_action(seats.handle, "metaData")
    schema = json.loads(metadata["schemaString"])
    schema["fields"][1]["metadata"]["comment"] = "theirs"
    commit_by_others(seats.handle, {"metaData": {**metadata, "schemaString": json.dumps(schema)}}, operation="ALTER")
    rows = [{"id": "x", "ts": 1, "gone": False}]
    elsewhere(seats).session.create_table(seats.name, rows, primary_key=["id"], properties=OPTIONS, replace=True)
    seats.upsert(LATE)
    assert shown(seats) == ["a", "x"]


# -- copies -----------------------------------------------------------------------------------------------


def clone(table: Table, change: Change = lambda settings: None) -> Path:
    """Make a clone as Spark's SHALLOW CLONE does: absolute paths of files, the settings, and no domain metadata."""
    folder = Path(table.location).with_name("clone")
    folder.joinpath("_delta_log").mkdir(parents=True)
    metadata = {**last_action(table.handle, "metaData"), "id": str(uuid.uuid4())}
    change(metadata["configuration"])
    live = [{"add": {**last_action(table.handle, "add"), "path": f.path}} for f in table.splits().files]
    info = {"commitInfo": {"operation": "CLONE", "timestamp": 1, "inCommitTimestamp": 1, "operationParameters": {}}}
    actions = [info, {"protocol": last_action(table.handle, "protocol")}, {"metaData": metadata}, *live]
    folder.joinpath("_delta_log", f"{0:020d}.json").write_text("\n".join(map(json.dumps, actions)))
    return folder


def test_a_clone_is_refused_and_goes_by_drop(seats: Table) -> None:
    folder = clone(seats)
    check_refused(elsewhere(seats, "delta.default.clone"), "SHALLOW CLONE", "CREATE TABLE AS SELECT")
    session: Session = elsewhere(seats).session
    with pytest.raises(TrinityError, match="SHALLOW CLONE"):
        session.repair("delta.default.clone")
    session.drop_table("delta.default.clone")
    assert not folder.exists()
    seats.upsert(LATE)
    assert shown(seats) == ["b", "c"]


def test_a_clone_without_the_definition_is_the_other_engines(seats: Table) -> None:
    clone(seats, unset)
    assert elsewhere(seats, "delta.default.clone").definition.external


@pytest.mark.parametrize("checkpointed", [False, True])
def test_a_clone_that_comes_back_has_no_tombstones(seats: Table, checkpointed: bool) -> None:
    """CREATE OR REPLACE TABLE … SHALLOW CLONE of a backup, which Delta allows on a table without rows."""
    live = [{**last_action(seats.handle, "add"), "path": f.path} for f in seats.splits().files]
    whole = seats.version
    gone = ({"remove": {"path": Path(f.path).name, "dataChange": True}} for f in seats.splits().files)
    commit_by_others(seats.handle, *gone, operation="DELETE")
    assert shown(seats) == []
    put = [{"metaData": last_action(seats.handle, "metaData")}, *({"add": add} for add in live)]
    commit_by_others(seats.handle, *put, operation="CLONE")
    commit_by_others(seats.handle, operation="OPTIMIZE")
    if checkpointed:
        checkpoint(seats)
    for table in (elsewhere(seats), seats):
        check_refused(table, "SHALLOW CLONE", "RESTORE TABLE")
        with pytest.raises(TrinityError, match="SHALLOW CLONE"):
            table.session.repair("delta.default.seats")
    restore_by_others(seats.handle, whole)
    for table in (elsewhere(seats), seats):
        table.upsert(LATE)
        assert shown(table) == ["b", "c"]


def test_a_copied_folder_has_all(seats: Table) -> None:
    copy_folder(seats)
    copy = elsewhere(seats, "delta.default.copy")
    copy.upsert(LATE)
    assert shown(copy) == ["b", "c"]


@pytest.mark.usefixtures("spark")
def test_a_copied_folder_says_what_it_lacks(seats: Table) -> None:
    copy_folder(seats, left_out="_trinity")
    copy = elsewhere(seats, "delta.default.copy")
    copy.upsert(LATE)
    with pytest.raises(TrinityError, match="_trinity") as caught:
        shown(copy)
    assert caught.value.code == "BAD_DATA"


def copy_folder(table: Table, left_out: str = "") -> None:
    shutil.copytree(table.location, Path(table.location).with_name("copy"), ignore=shutil.ignore_patterns(left_out))


@pytest.mark.usefixtures("spark")
def test_a_table_that_another_engine_replaced_keeps_no_tombstones(seats: Table) -> None:
    """CREATE OR REPLACE by Spark keeps the domain metadata of the previous table."""
    metadata = last_action(seats.handle, "metaData")
    kept = {"trinity.primary-key": "id", "trinity.watermark-key": "ts"}
    gone = ({"remove": {"path": Path(f.path).name, "dataChange": True}} for f in seats.splits().files)
    commit_by_others(seats.handle, {"metaData": {**metadata, "configuration": kept}}, *gone, operation="REPLACE TABLE")
    table = elsewhere(seats)
    table.upsert(LATE)
    assert shown(table) == ["a"]


@pytest.mark.parametrize("put", [swapped, rewound])
@pytest.mark.parametrize("again", [0, 1, 2, 9])
def test_a_session_sees_what_was_put_back(seats: Table, put: Callable[[Table, Path], None], again: int) -> None:
    copy_folder(seats)
    for key in ("d", "e"):
        seats.upsert(pa.table({"id": [key], "ts": [1]}))
    put(seats, Path(seats.location).with_name("copy"))
    keys = [f"k{number}" for number in range(again)]
    for key in keys:
        elsewhere(seats).upsert(pa.table({"id": [key], "ts": [1]}))
    seats.upsert(LATE)
    assert shown(seats) == shown(elsewhere(seats)) == ["b", "c", *keys]


@pytest.mark.full
@pytest.mark.usefixtures("spark")
def test_as_spark_does_it(seats: Table) -> None:
    spark, name = seats.session.spark, f"delta.`{seats.location}`"
    clone_of = Path(seats.location).with_name("clone")
    spark.sql(f"CREATE TABLE delta.`{clone_of}` SHALLOW CLONE {name}")
    check_refused(elsewhere(seats, "delta.default.clone"), "SHALLOW CLONE")
    spark.sql(f"CREATE TABLE original USING delta LOCATION '{seats.location}'")
    try:
        alike = Path(seats.location).with_name("alike")
        spark.sql(f"CREATE TABLE alike LIKE original LOCATION '{alike}'")
        check_refused(elsewhere(seats, "delta.default.alike"), "CREATE TABLE LIKE")
    finally:
        spark.sql("DROP TABLE IF EXISTS alike")
        spark.sql("DROP TABLE original")
    spark.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('{DEFINITION}')")
    check_refused(seats, DEFINITION)
    seats.session.repair("delta.default.seats")
    spark.sql(f"ALTER TABLE {name} DROP FEATURE domainMetadata")
    spark.sql(f"INSERT INTO {name} (id, ts) VALUES ('a', 5), ('d', 1)")
    for table in (elsewhere(seats), seats):
        check_refused(table, "DROP FEATURE")
    elsewhere(seats).session.repair("delta.default.seats")
    assert shown(elsewhere(seats)) == ["b", "c", "d"]
    spark.sql(f"INSERT INTO {name} (id, ts) VALUES ('e', 1)")
    seats.upsert(LATE)
    seats.compact(full=True)
    assert shown(elsewhere(seats)) == ["b", "c", "d", "e"]
    spark.sql(f"ALTER TABLE {name} DROP FEATURE domainMetadata")
    spark.sql(f"RESTORE TABLE {name} TO VERSION AS OF 3")
    seats.upsert(LATE)
    assert shown(elsewhere(seats)) == ["b", "c"]
