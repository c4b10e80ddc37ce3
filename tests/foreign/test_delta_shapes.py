"""Delta tables made by hand in every shape that the protocol allows: listed, read, and appended to (U7)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import trinity
from tests.support.delta_by_hand import Action, Log, schema_string, struct_field
from tests.support.delta_shapes import PLAIN, SHAPES, Shape, batch
from tests.support.refusals import refused
from tests.support.tables import as_texts
from trinity import Session

shapes = pytest.mark.parametrize("shape", SHAPES.values(), ids=[name.replace(" ", "-") for name in SHAPES])


@shapes
def test_the_files_of_a_version_are_those_that_the_log_says(tmp_path: Path, shape: Shape) -> None:
    """Without Spark, also where the log begins with any kind of checkpoint."""
    wanted = shape.make(tmp_path / "theirs")
    with trinity.connect(tmp_path / "warehouse") as session:
        files = session.register("theirs", "delta", tmp_path / "theirs").splits().files
        rows = sum(pq.read_metadata(file.path).num_rows - (file.deletes.rows if file.deletes else 0) for file in files)
        assert len({file.path for file in files}) == len(files)
        if shape is not SHAPES["vectors"]:  # row counts of external files exclude deleted rows
            assert rows == len(wanted)
            assert all(pq.read_metadata(file.path).num_rows == file.rows for file in files if file.rows_known)
        if shape.by_delta_rs:
            by_others = {path.removeprefix("file://") for path in DeltaTable(tmp_path / "theirs").file_uris()}
            assert {file.path for file in files} == by_others


def test_a_file_is_removed_by_another_spelling_of_its_path(tmp_path: Path) -> None:
    place = tmp_path / "theirs"
    log = Log.of(place, PLAIN)
    paths = [f"{place}/0%20x.parquet", f"file:{place}/1.parquet", f"file://{place}/2.parquet", "3.parquet"]
    names = ["0 x.parquet", "1.parquet", "2.parquet", "3.parquet"]
    log.commit(*(log.add(batch(n), name, as_path=paths[n]) for n, name in enumerate(names)))
    log.commit(log.remove(f"file:{place}/0%20x.parquet"), log.remove(f"{place}/1.parquet"), log.remove(paths[2]))
    log.classic()
    with trinity.connect(tmp_path / "warehouse") as session:
        table = session.register("delta.default.theirs", "delta", place)
        assert [file.name for file in table.splits().files] == ["3.parquet"]
        assert len(table.splits(1).files) == 4
    log.forget(1)
    with trinity.connect(tmp_path / "warehouse") as session:
        assert [file.name for file in session.table("delta.default.theirs").splits().files] == ["3.parquet"]


def test_a_version_has_its_checkpoint_and_no_commit_any_more(tmp_path: Path) -> None:
    log = Log.of(tmp_path / "theirs", PLAIN)
    log.append(batch(1), "1.parquet")
    log.classic()
    log.append(batch(2), "2.parquet")
    log.forget(2)
    with trinity.connect(tmp_path / "warehouse") as session:
        table = session.register("theirs", "delta", tmp_path / "theirs")
        assert [len(table.splits(version).files) for version in (1, 2)] == [1, 2]


@pytest.mark.full
@shapes
def test_rows_are_read_as_spark_reads_them_and_added_to(session: Session, tmp_path: Path, shape: Shape) -> None:
    place = tmp_path / "theirs"
    wanted = shape.make(place)
    table = session.register("delta.default.theirs", "delta", place)
    found = table.to_df().toArrow()
    assert as_texts(found) == as_texts(pa.Table.from_pylist(wanted, found.schema))
    by_delta = session.spark.read.format("delta").load(str(place))
    assert as_texts(by_delta.toArrow()) == as_texts(found)
    if not shape.appended:
        with refused("NOT_SUPPORTED", "binary column 'x'"):
            table.append(pa.table({"id": [77]}))
        return
    table.append(pa.table({"id": [77]}))
    after = table.to_df().toArrow()
    assert as_texts(session.spark.read.format("delta").load(str(place)).toArrow()) == as_texts(after)
    assert len(after) == len(found) + 1


@pytest.mark.full
@pytest.mark.parametrize(
    "condition",
    [
        "s = ''",
        "s IS NULL",
        "s IS NOT NULL",
        "s LIKE 'a=%'",
        "i = -7",
        "n = 1.5",
        "d < DATE'1970-01-01'",
        "f = 1.5",
        "b",
    ],
)
def test_partitions_are_pruned_as_spark_prunes_them(session: Session, tmp_path: Path, condition: str) -> None:
    place = tmp_path / "theirs"
    SHAPES["partitions"].make(place)
    table = session.register("delta.default.theirs", "delta", place)
    by_delta = session.spark.read.format("delta").load(str(place)).where(condition)
    assert as_texts(table.to_df(where=condition).toArrow()) == as_texts(by_delta.toArrow())


def test_what_is_not_null_within_a_column_of_a_delta_table(session: Session, tmp_path: Path) -> None:
    """With a NULL there, neither Spark nor Trinity could read the table."""
    inner = {"type": "struct", "fields": [struct_field("c", "string", nullable=False)]}
    fields = [
        struct_field("a", "integer", nullable=False),
        struct_field("b", {"type": "array", "elementType": inner, "containsNull": True}),
    ]
    arr = {"type": "array", "elementType": "integer", "containsNull": False}
    m = {"type": "map", "keyType": "string", "valueType": "integer", "valueContainsNull": False}
    st = {"type": "struct", "fields": fields}
    Log.of(tmp_path / "theirs", [struct_field("id", "long"), *map(struct_field, ("st", "arr", "m"), (st, arr, m))])
    table = session.register("delta.default.theirs", "delta", tmp_path / "theirs", {"primary-key": "id"})
    items = pa.list_(pa.struct({"c": pa.string()}))
    kinds = {"st": pa.struct({"a": pa.int32(), "b": items}), "arr": pa.list_(pa.int32())}
    schema = pa.schema({"id": pa.int64(), **kinds, "m": pa.map_(pa.string(), pa.int32())})

    def upsert(*rows: dict[str, object]) -> None:
        table.upsert(pa.Table.from_pylist([{"id": 1, **row} for row in rows], schema))

    whole: dict[str, object] = {"st": {"a": 1, "b": [{"c": "x"}, None]}, "arr": [1], "m": [("k", 1)]}
    upsert(whole, {"id": 2}, {"id": 3, "st": {"a": 1, "b": None}, "arr": [], "m": []})
    broken: dict[str, dict[str, object]] = {
        "st.a": {"st": {"a": None, "b": None}},
        "st.b.element.c": {"st": {"a": 1, "b": [{"c": None}]}},
        "arr.element": {"arr": [None]},
        "m.value": {"m": [("k", None)]},
    }
    version = table.splits().version
    for place, row in broken.items():
        with refused("CONSTRAINT_VIOLATION", f"'{place}' within"):
            upsert({**whole, **row})
    assert table.splits().version == version
    assert len(table.to_arrow()) == session.spark.read.format("delta").load(table.location).count() == 3


# -- logs that are none ---------------------------------------------------------------------------------------


def field(kind: str, **fields: Any) -> Callable[[list[Action]], None]:
    """Return a function that changes fields of an action; None removes a field."""

    def change(actions: list[Action]) -> None:
        for action in actions:
            if kind in action:
                action[kind] = {k: v for k, v in {**action[kind], **fields}.items() if v is not None}

    return change


def schema(*fields: Any) -> Callable[[list[Action]], None]:
    return field("metaData", schemaString=schema_string(fields))


def without(kind: str) -> Callable[[list[Action]], None]:
    return lambda actions: actions.remove(next(action for action in actions if kind in action))


def instead(kind: str, body: Any) -> Callable[[list[Action]], None]:
    return lambda actions: next(action for action in actions if kind in action).update({kind: body})


LONG = struct_field("id", "long")
MALFORMED: dict[str, tuple[Callable[[list[Action]], None], str]] = {
    "no metadata": (without("metaData"), "has 'metaData'"),
    "no protocol": (without("protocol"), "has 'protocol'"),
    "null for metadata": (instead("metaData", None), "has 'metaData'"),
    "text for metadata": (instead("metaData", "x"), "its 'metaData' is no object"),
    "no schema": (field("metaData", schemaString=None), "lacks 'schemaString'"),
    "no id": (field("metaData", id=None), "lacks 'id'"),
    "no configuration": (field("metaData", configuration=None), "lacks 'configuration'"),
    "no partition columns": (field("metaData", partitionColumns=None), "lacks 'partitionColumns'"),
    "a number for a setting": (field("metaData", configuration={"a": 1}), "'configuration' = "),
    "unknown partition column": (field("metaData", partitionColumns=["x"]), "'x', which is no column"),
    "broken schema": (field("metaData", schemaString="{"), "no schema"),
    "a list for a schema": (field("metaData", schemaString="[]"), "it is no struct"),
    "a schema without fields": (field("metaData", schemaString='{"type": "struct"}'), "lacks 'fields'"),
    "a field without a type": (schema({"name": "id"}), "lacks its name or its type"),
    "an array of nothing": (schema(struct_field("id", {"type": "array"})), "lacks 'elementType'"),
    "two of one name": (schema(LONG, struct_field("ID", "long")), "two fields 'ID'"),
    "no physical name": (field("metaData", configuration={"delta.columnMapping.mode": "name"}), "physicalName"),
    "no reader version": (field("protocol", minReaderVersion=None), "lacks 'minReaderVersion'"),
    "a text for a version": (field("protocol", minReaderVersion="1"), "'minReaderVersion' = '1'"),
    "numbers for features": (field("protocol", readerFeatures=[1]), "'readerFeatures' = [1]"),
    "no path": (field("add", path=None), "its 'add' lacks 'path'"),
    "no size": (field("add", size=None), "lacks 'size'"),
    "no data change": (field("add", dataChange=None), "lacks 'dataChange'"),
    "a list of partition values": (field("add", partitionValues=[]), "'partitionValues' = []"),
    "a number for a partition value": (field("add", partitionValues={"id": 1}), "'partitionValues' = {'id': 1}"),
    "text for tags": (field("add", tags="x"), "'tags' = 'x'"),
    "text for a deletion vector": (field("add", deletionVector="x"), "'deletionVector' = 'x'"),
    "a deletion vector without a place": (field("add", deletionVector={"storageType": "u"}), "'deletionVector' = "),
    "text for a file": (instead("add", "x"), "its 'add' is no object"),
    "a txn without a name": (lambda actions: actions.append({"txn": {"version": 1}}), "lacks 'appId'"),
    "a txn without a version": (lambda actions: actions.append({"txn": {"appId": "a"}}), "lacks 'version'"),
    "a remove without a path": (lambda actions: actions.append({"remove": {"dataChange": True}}), "lacks 'path'"),
    "a domain without a name": (lambda actions: actions.append({"domainMetadata": {}}), "lacks 'domain'"),
}
REFUSED: dict[str, tuple[Callable[[list[Action]], None], str]] = {
    "a newer reader": (field("protocol", minReaderVersion=4, minWriterVersion=7), "'minReaderVersion' 4"),
    "a feature": (field("protocol", minReaderVersion=3, readerFeatures=["someday"]), "someday"),
    "another format": (field("metaData", format={"provider": "orc"}), "the format 'orc'"),
    "a variant": (schema(LONG, struct_field("doc", "variant")), "'doc', whose type Trinity does not have"),
    "void": (schema(LONG, struct_field("nothing", "void")), "'nothing', whose type Trinity does not have"),
    "a type of a user's": (schema(LONG, struct_field("u", {"type": "udt", "class": "x"})), "'u', whose type"),
}


def first_commit(log: Log, change: Callable[[list[Action]], None]) -> None:
    path = log.name("json", 0)
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    change(actions)
    path.write_text("\n".join(map(json.dumps, actions)))


@pytest.mark.parametrize(
    ("code", "change", "says"),
    [
        *(pytest.param("BAD_DATA", *case, id=name.replace(" ", "-")) for name, case in MALFORMED.items()),
        *(pytest.param("NOT_SUPPORTED", *case, id=name.replace(" ", "-")) for name, case in REFUSED.items()),
    ],
)
def test_logs_that_cannot_be_read_are_refused_by_name(
    tmp_path: Path, code: str, change: Callable[[list[Action]], None], says: str
) -> None:
    log = Log.of(tmp_path / "theirs", PLAIN)
    path = log.name("json", 0)
    added = log.add(batch(1), "1.parquet")
    path.write_text(f"{path.read_text()}\n{json.dumps(added)}")
    log.append(batch(2), "2.parquet")
    first_commit(log, change)
    with trinity.connect(tmp_path / "warehouse") as session, refused(code, says, "theirs"):
        session.register("theirs", "delta", tmp_path / "theirs")


def test_what_a_schema_may_leave_out_is_what_spark_takes_it_for(tmp_path: Path) -> None:
    log = Log.of(tmp_path / "theirs", [{"name": "id", "type": "long"}, {"name": "v", "type": "string"}])
    log.append(batch(1), "1.parquet")
    with trinity.connect(tmp_path / "warehouse") as session:
        columns = session.register("theirs", "delta", tmp_path / "theirs").definition.columns
        assert [(column.name, column.type, column.nullable) for column in columns] == [
            ("id", "bigint", True),
            ("v", "string", True),
        ]
