"""Tables are made, altered and dropped in this process, on every format, without Spark."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from tests.support.iceberg import pyiceberg
from tests.support.refusals import refused
from trinity import Column, Session, Table, TrinityError

COLUMNS = [Column("k", "bigint", nullable=False), Column("n", "int"), Column("v", "string")]


def checked_table(local: Session, fmt: str, **checks: str) -> Table:
    """Create a table with these CHECK constraints."""
    return local.create_table(f"{fmt}.default.t", COLUMNS, primary_key=["k"], checks=checks)


def fill(table: Table, **columns: list[object]) -> None:
    schema = pa.schema([f for f in table.definition.to_arrow() if f.name in columns])
    table.upsert(pa.table(columns, schema))


def test_columns_change(local: Session, local_fmt: str) -> None:
    table = checked_table(local, local_fmt)
    fill(table, k=[1, 2], n=[10, None], v=["a", "b"])
    table.add_column(Column("w", "date"), after="k")
    table.rename_column("v", "text")
    table.widen_column("n", "bigint")
    table.drop_column("w")
    table.set_properties({"comment": "kept"})
    fill(table, k=[3], n=[1 << 40], text=["c"])
    assert table.to_arrow().sort_by("k").to_pylist() == [
        {"k": 1, "n": 10, "text": "a"},
        {"k": 2, "n": None, "text": "b"},
        {"k": 3, "n": 1 << 40, "text": "c"},
    ]
    assert table.properties["comment"] == "kept"
    assert local.list_tables(local_fmt, "default") == ["t"]
    local.drop_table(table.name)
    assert local.list_tables(local_fmt, "default") == []


def test_properties_are_unset(local: Session, local_fmt: str) -> None:
    table = checked_table(local, local_fmt)
    fill(table, k=[1], n=[1])
    table.set_properties({"comment": "kept", "tombstone.retention": "1 day", "compaction.trigger.commits": 9})
    name = table.name
    local.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('tombstone.retention', compaction.trigger.commits)")
    assert {o: v for o, v in table.properties.items() if not o.startswith("delta.")} == {"comment": "kept"}
    local.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES IF EXISTS ('TOMBSTONE.RETENTION', 'comment')")
    table.unset_properties("comment", if_exists=True)
    assert "comment" not in local.table(name).properties
    for names, message in [
        ("('comment')", r"'comment' is not set on table .* With IF EXISTS it is left out"),
        ("('comments')", "comment"),
        ("('merge-engine')", "is not set on"),
    ]:
        with pytest.raises(TrinityError, match=message) as error:
            local.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES {names}")
        assert error.value.code == "INVALID_TABLE_PROPERTY"
    with pytest.raises(TrinityError) as error:
        local.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES 'comment'")
    assert error.value.code == "NOT_SUPPORTED"
    assert table.to_arrow()["n"].to_pylist() == [1]


def test_a_property_by_which_rows_were_written_stays(local: Session, local_fmt: str) -> None:
    local.use(local_fmt, "default")
    local.sql("CREATE TABLE w (k INT, ts INT, PRIMARY KEY (k)) TBLPROPERTIES ('watermark-key' = 'ts')")
    with pytest.raises(TrinityError, match=r"'watermark-key' of table .* cannot be changed") as error:
        local.table("w").unset_properties("watermark-key")
    assert error.value.code == "INVALID_TABLE_PROPERTY"
    assert local.table("w").properties["watermark-key"] == "ts"


def test_a_column_becomes_not_null_where_no_row_is(local: Session, local_fmt: str) -> None:
    table = checked_table(local, local_fmt)
    fill(table, k=[1, 2], n=[10, None], v=["a", "b"])
    version = table.splits().version
    with pytest.raises(TrinityError, match=r"'n' of table .* is NULL in some rows") as error:
        table.set_not_null("n")
    assert error.value.code == "CONSTRAINT_VIOLATION"
    assert table.splits().version == version
    table.set_not_null("v")
    assert not table.definition.column("v").nullable
    table.set_not_null("v", not_null=False)
    assert table.definition.column("v").nullable


def test_options_of_iceberg_follow_their_columns(local: Session) -> None:
    """Iceberg's own engines refuse any change of properties while one of these names no column."""
    table = local.create_table(
        "iceberg.default.t",
        [Column("k", "int"), Column("v", "string"), Column("w", "string")],
        properties={
            "write.metadata.metrics.column.v": "full",
            "write.parquet.bloom-filter-enabled.column.w": "true",
            "write.metadata.metrics.default": "counts",
        },
    )
    table.rename_column("v", "name")
    table.drop_column("w")
    kept = {key: value for key, value in pyiceberg(table).properties.items() if "metrics" in key or "bloom" in key}
    assert kept == {"write.metadata.metrics.column.name": "full", "write.metadata.metrics.default": "counts"}
    assert "write.parquet.bloom-filter-enabled.column.w" not in table.properties


def test_columns_become_not_null_together_or_not_at_all(local: Session, local_fmt: str) -> None:
    table = checked_table(local, local_fmt)
    fill(table, k=[1, 2], n=[10, None], v=["a", "b"])
    text = f"ALTER TABLE {table.name} ALTER COLUMN v SET NOT NULL, ALTER COLUMN n SET NOT NULL"
    with refused("CONSTRAINT_VIOLATION", "'v' or 'n'", "NULL in some rows"):
        local.sql(text, dialect="postgres")
    assert table.definition.column("v").nullable
    local.sql(f"DELETE FROM {table.name} WHERE n IS NULL")
    version = table.version
    local.sql(text, dialect="postgres")
    assert (table.version, table.definition.column("v").nullable) == (version + 1, False)


def test_clauses_of_alter_that_would_be_lost_are_refused(local: Session, local_fmt: str) -> None:
    table = checked_table(local, local_fmt)
    fill(table, k=[1], n=[5], v=["a"])
    version = table.version
    for dialect in ("spark", "postgres"):
        with refused("NOT_SUPPORTED", "'amount'", "ADD CONSTRAINT"):
            local.sql(f"ALTER TABLE {table.name} ADD COLUMN amount INT CHECK (amount > 0)", dialect=dialect)
        with refused("NOT_SUPPORTED", "'n'", "USING", "UPDATE"):
            local.sql(f"ALTER TABLE {table.name} ALTER COLUMN n TYPE BIGINT USING n * 100", dialect=dialect)
    local.sql(f"ALTER TABLE {table.name} ALTER COLUMN IF EXISTS nothing TYPE BIGINT")
    assert table.version == version


def test_a_check_is_added_where_every_row_meets_it(local: Session, local_fmt: str) -> None:
    table = checked_table(local, local_fmt)
    fill(table, k=[1, 2], v=["a", "b"])
    table.add_check("positive", "n > 0")
    with pytest.raises(TrinityError, match="do not meet CHECK") as error:
        table.add_check("short", "v = 'a' OR n IS NOT NULL")
    assert error.value.code == "CONSTRAINT_VIOLATION"
    table.add_check("named", "v IN ('a', 'b')")
    assert [c.name for c in table.definition.checks] == ["positive", "named"]
    table.drop_check("positive")
    assert [c.name for c in table.definition.checks] == ["named"]


@pytest.mark.parametrize(
    ("condition", "code"),
    [("n", "TYPE_MISMATCH"), ("nn > 0", "COLUMN_NOT_FOUND"), ("n >", "SYNTAX_ERROR"), ("rand() < n", "NOT_SUPPORTED")],
)
def test_a_check_that_is_none_is_refused(local: Session, local_fmt: str, condition: str, code: str) -> None:
    with pytest.raises(TrinityError) as error:
        checked_table(local, local_fmt, wrong=condition)
    assert error.value.code == code
    assert local.list_tables(local_fmt, "default") == []


def test_a_check_that_only_spark_evaluates_is_said_by_name(local: Session, local_fmt: str) -> None:
    with pytest.raises(TrinityError, match=r"CHECK constraint 'odd' .*\(xxhash64\(v\) > 0\), needs Spark") as error:
        checked_table(local, local_fmt, odd="xxhash64(v) > 0")
    assert error.value.code == "NOT_SUPPORTED"


def test_a_plan_is_told_without_spark(local: Session, local_fmt: str) -> None:
    table = checked_table(local, local_fmt)
    fill(table, k=[1], n=[1], v=["a"])
    assert "log: 1 of 1 file, 1 row, 1 commit" in table.explain()
    assert "log: 0 of 1 file, 0 rows, 0 commits" in table.explain(where="k = 5")
    with pytest.raises(TrinityError, match="no column 'kk'") as error:
        table.explain(where="kk = 5")
    assert error.value.code == "COLUMN_NOT_FOUND"


def test_a_time_is_stored_and_read(local: Session, local_fmt: str) -> None:
    columns = [Column("k", "bigint"), Column("at", "time(6)")]
    table = local.create_table(f"{local_fmt}.default.t", columns, primary_key=["k"])
    table.upsert(pa.table({"k": [1], "at": pa.array([1_000_001], pa.time64("us"))}))
    assert table.to_arrow().column("at").cast(pa.int64()).to_pylist() == [1_000_001]


def test_tables_of_all_schemas(local: Session) -> None:
    local.create_schema("parquet.more")
    for name in ("delta.default.orders", "parquet.more.orders", "parquet.default.`o.``1`", "iceberg.default.lines"):
        local.create_table(name, [Column("k", "int")])
    names = ["delta.default.orders", "iceberg.default.lines", "parquet.default.`o.``1`", "parquet.more.orders"]
    assert local.tables(all_schemas=True) == names
    assert [str(local.table(name).name) for name in names] == names
    assert local.tables("ord*", all_schemas=True) == [names[0], names[3]]
    found = local.sql("SHOW ALL TABLES").fetchall()
    assert found[2] == ("parquet", "default", "o.`1", False)
    assert [".".join(row[:3]) for row in local.sql("SHOW ALL TABLES LIKE 'ord*'").fetchall()] == [names[0], names[3]]


def test_a_whole_number_may_be_the_default_of_any_float(local: Session, local_fmt: str) -> None:
    """It is rounded as a literal is: not every whole number is a FLOAT."""
    columns = [Column("k", "int"), Column("f", "float", default="16777217"), Column("d", "double", default="- 3")]
    table = local.create_table(f"{local_fmt}.default.t", columns, primary_key=["k"])
    table.upsert(pa.table({"k": [1]}))
    local.sql(f"INSERT INTO {table.name} (k) VALUES (2)")
    assert [(row["f"], row["d"]) for row in table.to_arrow().to_pylist()] == [(16777216.0, -3.0)] * 2


@pytest.mark.parametrize("local_fmt", ["parquet", "iceberg", "memory"])  # Delta allows no such names
@pytest.mark.parametrize("name", ["a,b", " a ", ","])
def test_a_key_column_may_have_any_name(local: Session, local_fmt: str, name: str) -> None:
    """A key is a list of names, not a text with commas between them (N1)."""
    columns = [Column(name, "int"), Column("a", "int"), Column("b", "int")]
    table = local.create_table(f"{local_fmt}.default.t", columns, primary_key=[name])
    for value in (1, 2):
        table.upsert(pa.table({name: [1], "a": [value], "b": [0]}))
    table.compact(full=True)
    table.upsert(pa.table({name: [1, 2], "a": [3, 4], "b": [0, 0]}))
    assert table.to_arrow().sort_by(name).to_pylist() == [{name: 1, "a": 3, "b": 0}, {name: 2, "a": 4, "b": 0}]
    table.rename_column(name, "b, ")
    assert local.table(table.name).to_arrow(where="`b, ` = 2").to_pylist() == [{"b, ": 2, "a": 4, "b": 0}]
    assert table.definition.primary_key == ("b, ",)


@pytest.mark.parametrize("local_fmt", ["parquet", "iceberg", "memory"])
@pytest.mark.parametrize("new", ["k2,b", " w", "w "])
def test_a_name_that_a_list_of_columns_cannot_have_is_refused(local: Session, local_fmt: str, new: str) -> None:
    """Or the option would name other columns, by which rows would merge from then on."""
    columns = [Column("k", "int"), Column("k2", "int"), Column("b", "int"), Column("w", "int")]
    table = local.create_table(f"{local_fmt}.default.t", columns, primary_key=["k"], properties={"watermark-key": "w"})
    with refused("INVALID_ARGUMENTS", f"'{new}'", "'watermark-key'"):
        table.rename_column("w", new)
    assert local.table(table.name).properties["watermark-key"] == "w"
    table.rename_column("b", new)
    assert new in local.table(table.name).columns


SUMS = {"merge-engine": "aggregation", "sequence.field": "ts", "fields.v.aggregate-function": "sum"}
CARTS = {
    "merge-engine": "partial-update",
    "fields.ts.sequence-group": "v,items",
    "fields.v.aggregate-function": "sum",
    "fields.items.aggregate-function": "listagg",
}


@pytest.mark.parametrize(
    ("properties", "change"),
    [
        (SUMS, lambda table: table.add_column(Column("last", "int"))),
        (SUMS, lambda table: table.upsert([{"k": 2, "ts": 1, "v": 1, "last": 1}], evolve=True)),
        (CARTS, lambda table: table.drop_column("items")),
    ],
    ids=["added", "added with data", "dropped"],
)
def test_e3_totals_stay_where_compaction_keeps_other_row_versions(
    local: Session, local_fmt: str, properties: dict[str, str], change: Callable[[Table], object]
) -> None:
    columns = [Column("k", "bigint"), Column("ts", "bigint"), Column("v", "bigint")]
    columns += [Column("items", "string")] if properties is CARTS else []
    table = local.create_table(f"{local_fmt}.default.t", columns, primary_key=["k"], properties=properties)
    table.upsert([{"k": 1, "ts": 1, "v": 4}])
    table.compact("full")
    change(table)
    for ts, total in ((3, 5), (2, 6)):
        table.upsert([{"k": 1, "ts": ts, "v": 1}])
        assert local.table(table.name).to_arrow(["v"], where="k = 1").to_pylist() == [{"v": total}]
        table.compact("full")
        assert local.table(table.name).to_arrow(["v"], where="k = 1").to_pylist() == [{"v": total}]


@pytest.mark.parametrize("kept", [True, False])
def test_a_column_is_added_where_compaction_keeps_the_same(local: Session, local_fmt: str, kept: bool) -> None:
    columns = [Column("k", "bigint"), Column("ts", "bigint"), Column("v", "bigint"), Column("w", "bigint")]
    properties = SUMS if kept else {name: value for name, value in SUMS.items() if name != "sequence.field"}
    table = local.create_table(f"{local_fmt}.default.t", columns, primary_key=["k"], properties=properties)
    table.upsert([{"k": 1, "ts": 1, "v": 4, "w": 7}])
    table.compact("full")
    table.add_column(Column("last", "int"))
    table.upsert([{"k": 1, "ts": 2, "v": 1, "last": 3}])
    assert local.table(table.name).to_arrow(["v", "w", "last"]).to_pylist() == [{"v": 5, "w": 7, "last": 3}]
