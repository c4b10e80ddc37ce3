"""CREATE OR REPLACE TABLE (L13): another table of the same name, or other rows in a table of the same definition."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import trinity
from tests.support.iceberg import pyiceberg
from tests.support.refusals import refused
from tests.support.tables import Rows, arrow_rows
from trinity import Session, Table
from trinity_conformance.playing.faults import Crashed, inject
from trinity_conformance.playing.traces import Fault

REPLACE = "CREATE OR REPLACE TABLE t PARTITIONED BY (word) AS SELECT id, word FROM s"


@pytest.fixture
def opened(local: Session, local_fmt: str) -> Session:
    """Make a table by CREATE TABLE AS SELECT, and the source of its query."""
    local.use(local_fmt, "default")
    local.sql("CREATE TABLE s (id INT, word STRING)")
    local.sql("INSERT INTO s VALUES (1, 'a'), (2, 'b')")
    assert local.sql(REPLACE).first().num_inserted_rows == 2
    return local


def rows(session: Session, version: int | None = None) -> Rows:
    """Return the rows of the table ``t``."""
    return arrow_rows(session.table("t"), version=version)


def test_the_rows_are_replaced_by_one_commit(opened: Session) -> None:
    before, id_before = opened.table("t").version, opened.table("t").definition.id
    opened.sql("TRUNCATE TABLE s")
    opened.sql("INSERT INTO s VALUES (2, 'c')")
    done = opened.sql(REPLACE).first()
    assert (done.num_inserted_rows, done.num_deleted_rows) == (1, 2)
    assert (opened.table("t").version, opened.table("t").definition.id) == (before + 1, id_before)
    assert (rows(opened), rows(opened, before)) == ([(2, "c")], [(1, "a"), (2, "b")])
    opened.sql("CREATE OR REPLACE TABLE t PARTITIONED BY (word) AS SELECT id + 1 AS id, word FROM t")
    assert rows(opened) == [(3, "c")]
    opened.sql("CREATE OR REPLACE TABLE t (id INT, word STRING) PARTITIONED BY (word)")
    assert (rows(opened), opened.table("t").version) == ([], before + 3)


def test_another_table_takes_the_place_of_one(opened: Session) -> None:
    """Whatever differs, one commit makes the table that CREATE TABLE would have made."""
    start = opened.table("t").version
    seen = {start: rows(opened)}
    for number, text in enumerate(
        (
            "AS SELECT id, word FROM s",
            "PARTITIONED BY (word) AS SELECT id, word, 1 AS more FROM t",
            "(id BIGINT COMMENT 'x', word STRING DEFAULT 'w')",
            "(id BIGINT NOT NULL, word STRING, CHECK (id > 0)) PARTITIONED BY (word)",
            "(id INT, word STRING) TBLPROPERTIES ('commit.retry.timeout' = '5 s')",
            "PARTITIONED BY (id) WITH ('primary-key' = 'id') AS SELECT id, word FROM s",
            "WITH ('primary-key' = 'word', 'watermark-key' = 'id') AS SELECT id, word FROM t",
            "WITH ('primary-key' = 'word', 'watermark-key' = 'id') AS SELECT id * 10 AS id, word FROM t",
            "WITH ('primary-key' = 'id', 'merge-engine' = 'partial-update') AS SELECT 1 AS id, 'x' AS a, 5 AS b",
            "(word STRUCT<id: INT>, ids ARRAY<INT>)",
        ),
        1,
    ):
        done = opened.sql(f"CREATE OR REPLACE TABLE t {text}")
        opened.sql(f"CREATE TABLE twin {text.replace('FROM t', f'FROM t VERSION AS OF {start + number - 1}')}")
        seen[start + number] = rows(opened)
        assert opened.table("t").version == start + number, text
        assert rows(opened) == sorted(
            map(tuple, map(dict.values, opened.table("twin").to_arrow().to_pylist())), key=str
        )
        shown = [opened.sql(f"SHOW CREATE TABLE {name}").first()[0].replace("twin", "t") for name in ("t", "twin")]
        assert shown[0] == shown[1]
        assert opened.table("t").schema == opened.table("twin").schema
        if " AS " in text:
            assert done.first().num_inserted_rows == len(seen[start + number]), text
        opened.sql("DROP TABLE twin")
    for version, found in seen.items():
        assert rows(opened, version) == found, version
    assert [h["operation"] for h in opened.table("t").history().to_pylist()[:10]] == ["replace table"] * 10


KEYED: Mapping[str, Mapping[str, str]] = {
    "late rows": {"watermark-key": "n", "tombstone-key": "gone"},
    "partial": {"merge-engine": "partial-update"},
    "sums": {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    "first rows": {"merge-engine": "first-row"},
}


@pytest.mark.parametrize(
    "engine", [name if name == "late rows" else pytest.param(name, marks=pytest.mark.full) for name in KEYED]
)
def test_a_replaced_table_goes_on_as_a_new_one(opened: Session, engine: str) -> None:
    """No tombstone, row version or order of rows of the previous table counts."""
    old = [{"k": k, "n": 90 + k, "gone": k == 3, "v": "old"} for k in range(5)]
    table = opened.create_table("t", old, primary_key=["k"], properties=KEYED["late rows"], replace=True)
    table.delete([0])
    table.compact(full=True)
    table.upsert(old[1])
    first = [{"n": k, "v": f"v{k}", "gone": False, "k": k} for k in range(1, 4)]
    made = [
        opened.create_table(name, first, primary_key=["k"], properties=KEYED[engine], replace=True)
        for name in ("t", "twin")
    ]
    for each in made:
        assert each.count() == 3
        each.upsert([{"k": 2, "n": 1}, {"k": 4, "n": 4, "v": "new"}, {"k": 3, "n": 9, "gone": engine == "late rows"}])
        each.compact("minor")
        each.upsert([{"k": 0, "n": 1, "v": "again"}, {"k": 3, "n": 8}])
    assert rows(opened) == arrow_rows(made[1])
    for each in made:
        each.compact(full=True)
        each.add_column(trinity.Column("w", "int"))
        each.upsert([{"k": 5, "w": 1, "n": 2}, {"k": 1, "n": 0, "w": 2}])
    assert rows(opened) == arrow_rows(made[1])


def test_a_table_like_another_one_takes_its_place(opened: Session) -> None:
    opened.sql("CREATE TABLE k (id BIGINT, w INT DEFAULT 3, PRIMARY KEY (id)) TBLPROPERTIES ('watermark-key' = 'w')")
    opened.sql("INSERT INTO k VALUES (1, 1)")
    before = opened.table("t").version
    opened.sql("CREATE OR REPLACE TABLE t LIKE k")
    texts = [opened.sql(f"SHOW CREATE TABLE {name}").first()[0] for name in ("t", "k")]
    assert (opened.table("t").version, rows(opened), texts[0].replace(".t (", ".k (")) == (before + 1, [], texts[1])
    opened.sql("INSERT INTO t (id) VALUES (2), (2)")
    opened.sql("CREATE OR REPLACE TABLE t LIKE t")
    assert (rows(opened), rows(opened, before + 2), rows(opened, before)) == ([], [(2, 3)], [(1, "a"), (2, "b")])
    opened.sql("CREATE OR REPLACE TABLE fresh LIKE k")
    assert opened.table("fresh").definition.primary_key == ("id",)


def test_a_vacuum_forgets_the_definitions_of_versions_that_are_gone(local: Session) -> None:
    local.use("iceberg", "default")
    table = local.create_table("t", [{"a": 1}])
    for number in range(3):
        local.sql(f"ALTER TABLE t ADD COLUMN c{number} INT")
        local.sql("ALTER TABLE t SET TBLPROPERTIES ('commit.retry.timeout' = '5 s')")
        local.create_table("t", [{"a": 1, f"b{number}": 2}], primary_key=["a"], replace=True)
    loaded = pyiceberg(table)

    def kept() -> int:
        return sum(name.startswith("trinity.definition.") for name in loaded.refresh().properties)

    assert kept() > 3
    newest, seen = table.version, {v["version"]: rows(local, v["version"]) for v in table.history().to_pylist()}
    table.vacuum(retain="1 hour")
    assert {v: rows(local, v) for v in seen} == seen
    table.upsert([{"a": 5}])
    table.vacuum(retain="0 seconds")
    assert (kept(), rows(local)) == (0, [(1, 2), (5, None)])
    assert newest not in {v["version"] for v in table.history().to_pylist()}


def test_it_is_restored_with_its_definition(opened: Session, local_fmt: str) -> None:
    table, before = opened.table("t"), opened.table("t").version
    opened.sql("ALTER TABLE t ADD COLUMN extra INT")
    if local_fmt != "delta":  # it cannot undo the first renaming
        opened.sql("ALTER TABLE t RENAME COLUMN extra TO more")
    opened.sql("INSERT INTO t VALUES (3, 'c', 30)")
    altered, shown = table.version, opened.sql("SHOW CREATE TABLE t").first()[0]
    opened.create_table(
        "t", [{"id": "x", "more": 7}], primary_key=["id"], properties={"watermark-key": "more"}, replace=True
    )
    table.upsert([{"id": "x", "more": 6}, {"id": "y", "more": 1}])
    table.compact(full=True)
    replaced = table.version
    table.restore(altered)
    assert (rows(opened), opened.sql("SHOW CREATE TABLE t").first()[0]) == (rows(opened, altered), shown)
    opened.sql("INSERT INTO t VALUES (4, 'd', 40)")
    assert rows(opened)[-2:] == [(3, "c", 30), (4, "d", 40)]
    table.restore(replaced)
    assert (rows(opened), table.definition.primary_key) == ([("x", 7), ("y", 1)], ("id",))
    table.upsert([{"id": "x", "more": 6}, {"id": "y", "more": 2}])
    assert rows(opened) == [("x", 7), ("y", 2)]
    table.restore(before)
    assert (rows(opened), table.definition.partition_by) == ([(1, "a"), (2, "b")], ("word",))
    assert rows(opened, replaced) == [("x", 7), ("y", 1)]
    opened.sql("INSERT INTO t VALUES (5, 'e')")
    assert rows(opened)[-1] == (5, "e")


def test_feeds_and_streams_say_so(opened: Session) -> None:
    table, before = opened.table("t"), opened.table("t").version
    opened.create_table("t", [{"q": 1}], replace=True)
    table.append([{"q": 2}])
    with refused("NOT_SUPPORTED", f"Version {before + 1} made another table", "after it"):
        table.changes(before).to_arrow()
    found = table.changes(before + 1).to_arrow()
    assert found.select(["q"]).to_pylist() == [{"q": 2}]


def test_a_column_had_its_name_before(opened: Session) -> None:
    """The column was renamed and renamed back; the next statement has nothing to record of that."""
    table, version = opened.table("t"), opened.table("t").version
    table.rename_column("id", "key")
    table.rename_column("key", "id")
    renamed = table.version
    opened.create_table("t", [{"id": 3, "word": "c"}], replace=True)
    assert (rows(opened), table.version, rows(opened, version)) == ([(3, "c")], renamed + 1, [(1, "a"), (2, "b")])


def test_a_partition_field_of_the_table_before_keeps_its_name(local: Session) -> None:
    """Iceberg keeps the partition specs of earlier versions, and no other column may have the name of a field there."""
    local.use("iceberg", "default")
    local.sql("CREATE TABLE t (id INT, word STRING) PARTITIONED BY (word)")
    local.sql("CREATE OR REPLACE TABLE t (id INT, word STRING)")
    table = local.table("t")
    table.drop_column("word")
    with refused("NOT_SUPPORTED", "'word'", "partition field"):
        table.add_column(trinity.Column("word", "string"))
    with refused("NOT_SUPPORTED", "'word'", "partition field"):
        table.rename_column("id", "word")
    table.add_column(trinity.Column("words", "string"))
    assert [c.name for c in table.definition.visible] == ["id", "words"]


def test_it_is_restored_with_a_column_renamed_before(opened: Session) -> None:
    table = opened.table("t")
    table.rename_column("word", "name")
    for number in (3, 4):
        before = table.version
        opened.create_table("t", [{"id": 9, "name": "new", "more": 1}], replace=True)
        table.restore(before)
        opened.sql(f"INSERT INTO t VALUES ({number}, 'c')")
        table.rename_column("name", "other")
        table.rename_column("other", "name")
    assert rows(opened) == [(1, "a"), (2, "b"), (3, "c"), (4, "c")]


def test_recorded_transactions_stay(opened: Session) -> None:
    opened.sql("INSERT INTO t VALUES (3, 'c')", txn=("load", 7))
    opened.create_table("t", [{"q": 1}], replace=True)
    assert opened.table("t").append([{"q": 2}], txn=("load", 7)).skipped
    assert rows(opened) == [(1,)]


def meanwhile(schema: pa.Schema, first: Mapping[str, list[Any]], act: Callable[[], object]) -> pa.RecordBatchReader:
    """Return a stream of rows that runs a function in its middle."""

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict(first, schema)
        act()
        yield pa.RecordBatch.from_pydict(first, schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def test_a_writer_beside_it_loses(opened: Session) -> None:
    """Files of the previous table never become part of the new one, though its columns have the same names."""
    table = opened.table("t")
    others: dict[str, list[Any]] = {"id": [9], "word": ["late"]}
    schema = pa.schema([("id", pa.int32()), ("word", pa.string())])
    with refused("TRANSACTION_CONFLICT", "replaced by another one"):
        table.append(
            meanwhile(schema, others, lambda: opened.create_table("t", [{"word": "w", "id": 1}], replace=True))
        )
    assert rows(opened) == [("w", 1)]
    with refused("TRANSACTION_CONFLICT", "Something was committed"):
        opened.create_table(
            "t", meanwhile(schema, others, lambda: table.append([{"word": "x", "id": 2}])), replace=True
        )
    assert rows(opened) == [("w", 1), ("x", 2)]


def test_an_older_version_is_not_emptied(opened: Session) -> None:
    """An adapter refuses a truncation whose handle is pinned to a version that is the newest one no longer."""
    table = opened.table("t")
    seen = table.splits()
    table.append([{"id": 3, "word": "c"}])
    metadata, at = table.connector.metadata, table.handle.pinned(seen.version, seen.definition.id)
    with refused("TRANSACTION_CONFLICT", "Something was committed"):
        metadata.truncate(at)
    assert table.count() == 3
    assert metadata.truncate(at.pinned(table.version, seen.definition.id)).rows == 3


def test_a_refused_replacement_leaves_the_table(opened: Session) -> None:
    before, found = opened.table("t").version, rows(opened)
    for code, text in (
        ("COLUMN_NOT_FOUND", "t PARTITIONED BY (word) AS SELECT nothing AS id, word FROM s"),
        ("COLUMN_NOT_FOUND", "t WITH ('primary-key' = 'x') AS SELECT id, word FROM s"),
        ("CONSTRAINT_VIOLATION", "t WITH ('primary-key' = 'k') AS SELECT CAST(NULL AS INT) AS k"),
        ("DUPLICATE_COLUMN_NAME", "t (a INT, A INT)"),
        ("SYNTAX_ERROR", "IF NOT EXISTS t (id INT)"),
        ("NOT_SUPPORTED", "t LOCATION '/nowhere'"),
        ("TABLE_NOT_FOUND", "t LIKE nothing"),
    ):
        with refused(code):
            opened.sql(f"CREATE OR REPLACE TABLE {text}")
    with refused("NOT_SUPPORTED"):
        opened.sql("CREATE OR REPLACE TEMPORARY TABLE t (id INT)")
    with refused("INVALID_ARGUMENTS", "replace goes with neither"):
        opened.create_table("t", [{"a": 1}], replace=True, if_not_exists=True)
    assert (opened.table("t").version, rows(opened)) == (before, found)


@pytest.mark.full
def test_a_crash_at_any_operation_leaves_one_table_or_the_other(opened: Session, tmp_path: Path) -> None:
    connector = opened.connector(opened.current_catalog)

    def replaced(number: int) -> Table:
        return opened.create_table("t", [{"n": number, "k": "x"}], primary_key=["k"], replace=True)

    with inject(connector, None) as seen:
        replaced(0)
    outcomes = set()
    for kind in ("crash before", "crash after", "error"):
        for at in range(sum(kind in kinds for _, kinds in seen.seen)):
            before, number = rows(opened), 100 * at + len(kind)
            with inject(connector, Fault(kind, at)) as injection, contextlib.suppress(Crashed, trinity.TrinityError):
                replaced(number)
            found = rows(opened)
            assert found in (before, [(number, "x")]), injection.operation
            outcomes.add(found == before)
            opened.table("t").upsert([{"n": number + 1, "k": "y"}])
            assert rows(opened) == sorted([*(row for row in found if row[1] != "y"), (number + 1, "y")], key=str)
            replaced(at)
    assert outcomes == {True, False}
