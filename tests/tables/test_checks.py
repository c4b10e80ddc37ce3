"""CHECK constraints: what they may refer to, what they refuse in every kind of write, and what they allow (M6, L8)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.refusals import refused
from trinity import Column, Session, Table, TrinityError

KINDS = {"plain": "", "keyed": ", PRIMARY KEY (id)"}
OPTIONS = " TBLPROPERTIES ('watermark-key' = 'ts', 'tombstone-key' = 'gone')"


@pytest.fixture(params=["keyed", pytest.param("plain", marks=pytest.mark.full)])
def stock(session: Session, fmt: str, request: pytest.FixtureRequest) -> Table:
    """Make a table whose quantities must be positive and at most their limit, with one row."""
    name = f"{fmt}.default.stock"
    keyed = request.param == "keyed"
    session.sql(
        f"""CREATE TABLE {name} (
            id INT, ts BIGINT DEFAULT 1, gone BOOLEAN, quantity INT CHECK (quantity > 0), most INT,
            CONSTRAINT room CHECK (quantity <= most){KINDS[request.param]}){OPTIONS if keyed else ""}"""
    )
    session.sql(f"INSERT INTO {name} (id, quantity, most) VALUES (1, 5, 10)")
    return session.table(name)


def stored(table: Table) -> set[tuple[Any, ...]]:
    return {(r.id, r.quantity, r.most) for r in table.to_df().collect()}


def batch(**columns: list[Any]) -> pa.Table:
    return pa.table({name: pa.array(values, pa.int32()) for name, values in columns.items()})


def write(table: Table, data: Any) -> None:
    table.upsert(data) if table.definition.keyed else table.append(data)


WAYS: dict[str, Callable[[Session, Table], object]] = {
    "insert": lambda s, t: s.sql(f"INSERT INTO {t.name} (id, quantity, most) VALUES (2, 1, 1), (3, 11, 10)"),
    "insert of a number that is cast": lambda s, t: s.sql(f"INSERT INTO {t.name} SELECT 3, 2, NULL, 11L, 10L"),
    "arrow": lambda s, t: write(t, batch(id=[2, 3], quantity=[1, 11], most=[1, 10])),
    "dataframe": lambda s, t: write(t, s.spark.createDataFrame(batch(most=[1, 10], id=[2, 3], quantity=[1, 11]))),
    "update": lambda s, t: s.sql(f"UPDATE {t.name} SET quantity = quantity + 6, ts = 2 WHERE id = 1"),
    "table.update": lambda s, t: t.update("id = 1", {"most": "quantity - 1", "ts": "2"}),
    "merge, update": lambda s, t: s.sql(
        f"""MERGE INTO {t.name} t USING (SELECT 1 AS id) s ON t.id = s.id
            WHEN MATCHED THEN UPDATE SET quantity = 11, ts = 2"""
    ),
    "merge, insert": lambda s, t: s.sql(
        f"""MERGE INTO {t.name} t USING (SELECT 3 AS id, 11 AS n) s ON t.id = s.id
            WHEN NOT MATCHED THEN INSERT (id, quantity, most) VALUES (s.id, n, n - 1)"""
    ),
    "trino": lambda s, t: s.sql(f"UPDATE {t.name} SET quantity = 11, ts = 2", dialect="trino"),
}


@pytest.mark.full
@pytest.mark.tiered
def test_every_way_in_is_checked(session: Session, stock: Table) -> None:
    """M6 and L8: the error names constraint, condition and values, and no row of the statement is stored."""
    version = stock.splits().version
    for way in WAYS.values():
        with refused("CONSTRAINT_VIOLATION", "'room'", "quantity <= most", "stock", "quantity = ", "most = "):
            way(session, stock)
    with refused("CONSTRAINT_VIOLATION", "'stock_quantity_check'", "quantity = -1"):
        write(stock, batch(id=[4], quantity=[-1]))
    assert stock.splits().version == version
    assert stored(stock) == {(1, 5, 10)}


@pytest.mark.tiered
def test_null_passes_and_rows_that_no_case_selects(session: Session, stock: Table) -> None:
    write(stock, batch(id=[2], quantity=[7]))
    session.sql(
        f"""MERGE INTO {stock.name} t USING (VALUES (1, 50), (3, 60), (4, 9)) AS s (id, n) ON t.id = s.id
            WHEN MATCHED AND n < 10 THEN UPDATE SET quantity = n
            WHEN NOT MATCHED AND n < 10 THEN INSERT (id, quantity) VALUES (s.id, n)"""
    )
    assert stored(stock) == {(1, 5, 10), (2, 7, None), (4, 9, None)}


@pytest.mark.full
@pytest.mark.tiered
def test_a_deleted_row_is_not_checked(session: Session, fmt: str) -> None:
    """A tombstone has only the columns that it needs; no constraint makes a DELETE fail."""
    table = session.create_table(
        f"{fmt}.default.t",
        [Column("k", "int"), Column("ts", "int"), Column("gone", "boolean"), Column("v", "string")],
        primary_key=["k"],
        properties={"watermark-key": "ts", "tombstone-key": "gone"},
        checks={"said": "v IS NOT NULL", "short": "length(v) < 3"},
    )
    table.upsert(pa.table({"k": [1, 2, 3], "ts": [1, 1, 1], "v": ["a", "b", "c"]}))
    table.upsert(pa.table({"k": [1], "ts": [2], "gone": [True]}))
    table.delete([2])
    session.sql(f"DELETE FROM {table.name} WHERE k = 3")
    assert table.to_df().isEmpty()
    with refused("CONSTRAINT_VIOLATION", "'said'", "v = NULL"):
        table.upsert(pa.table({"k": [1], "ts": [3], "gone": [False]}))
    with refused("CONSTRAINT_VIOLATION", "'short'", """v = it's "long" """.strip()):
        table.upsert(pa.table({"k": [1], "ts": [3], "v": ["""it's "long" """]}))
    table.compact(full=True)
    table.upsert(pa.table({"k": [1], "ts": [3], "v": ["ok"]}))
    assert [(r.k, r.v) for r in table.to_df().collect()] == [(1, "ok")]


@pytest.mark.tiered
def test_add_and_drop(session: Session, stock: Table) -> None:
    other = session.table(str(stock.name))
    session.sql(f"ALTER TABLE {stock.name} DROP CONSTRAINT room")
    session.sql(f"ALTER TABLE {stock.name} DROP CONSTRAINT IF EXISTS room")
    with refused("INVALID_ARGUMENTS", "'room'", "stock_quantity_check"):
        session.sql(f"ALTER TABLE {stock.name} DROP CONSTRAINT room")
    write(other, batch(id=[2], quantity=[9], most=[3]))
    with refused("CONSTRAINT_VIOLATION", "CHECK (quantity <= most)"):
        session.sql(f"ALTER TABLE {stock.name} ADD CONSTRAINT room CHECK (quantity <= most)")
    session.sql(f"DELETE FROM {stock.name} WHERE id = 2")
    session.sql(f"ALTER TABLE {stock.name} ADD CONSTRAINT room CHECK (quantity <= most)")
    with refused("INVALID_ARGUMENTS", "already"):
        session.sql(f"ALTER TABLE {stock.name} ADD CONSTRAINT ROOM CHECK (id > 0)")
    with refused("CONSTRAINT_VIOLATION", "'room'"):
        write(other, batch(id=[2], quantity=[9], most=[3]))
    for change in ("RENAME COLUMN most TO top", "DROP COLUMN most"):
        with refused("NOT_SUPPORTED", "'most'", "'room'"):
            session.sql(f"ALTER TABLE {stock.name} {change}")
    session.sql(f"ALTER TABLE {stock.name} ALTER COLUMN most TYPE BIGINT")
    with refused("CONSTRAINT_VIOLATION", "'room'"):
        session.sql(f"UPDATE {stock.name} SET quantity = 11, ts = 2")


@pytest.mark.tiered
def test_show_create_table_makes_it_again(session: Session, stock: Table) -> None:
    text = str(session.sql(f"SHOW CREATE TABLE {stock.name}").collect()[0][0])
    session.drop_table(str(stock.name))
    session.sql(text)
    again = session.table(str(stock.name))
    assert [(c.name, c.expression) for c in again.definition.checks] == [
        ("room", "quantity <= most"),
        ("stock_quantity_check", "quantity > 0"),
    ]


@pytest.mark.parametrize(
    ("condition", "code", "named"),
    [
        ("quantty > 0", "COLUMN_NOT_FOUND", "quantity"),
        ("quantity", "TYPE_MISMATCH", ""),
        ("quantity > (SELECT 1)", "NOT_SUPPORTED", "subquery"),
        ("rand() > 0.5", "NOT_SUPPORTED", "same answer"),
        ("quantity >", "SYNTAX_ERROR", ""),
        ("max(quantity) > 1", None, ""),
    ],
)
def test_conditions_that_cannot_be(session: Session, condition: str, code: str | None, named: str) -> None:
    columns = [Column("id", "int"), Column("quantity", "int")]
    with pytest.raises(TrinityError) as caught:
        session.create_table("parquet.default.t", columns, checks={"odd": condition})
    assert code is None or caught.value.code == code, caught.value
    assert named in caught.value.message
    assert session.find_table(session.table_name(["parquet", "default", "t"])) is None


def test_tables_that_fold_by_column_have_none(session: Session) -> None:
    with refused("NOT_SUPPORTED", "partial-update", "'few'"):
        session.sql(
            "CREATE TABLE t (id INT PRIMARY KEY, n INT CONSTRAINT few CHECK (n < 3)) "
            "TBLPROPERTIES ('merge-engine' = 'partial-update')"
        )


def test_dialects_keep_their_meaning(session: Session) -> None:
    """In Trino, 7 / 2 is 3."""
    session.sql("CREATE TABLE halves (n INT, CHECK (n / 2 = 3))", dialect="trino")
    session.sql("INSERT INTO halves VALUES (6), (7)")
    with refused("CONSTRAINT_VIOLATION", "n = 8"):
        session.sql("INSERT INTO halves VALUES (8)")


@pytest.mark.full
def test_constraints_of_an_external_delta_table(session: Session, tmp_path: Path) -> None:
    """They follow Delta's rules: a condition that is NULL is violated, and a tombstone is a row, too."""
    spark, name = session.spark, f"delta.`{tmp_path}/theirs`"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, gone BOOLEAN, n INT) USING delta")
    spark.sql(f"ALTER TABLE {name} ADD CONSTRAINT positive CHECK (n > 0)")
    spark.sql(f"INSERT INTO {name} VALUES (1, false, 1), (2, false, 2)")
    for bad in ("(3, false, 0)", "(3, false, NULL)"):
        with pytest.raises(Exception, match="positive"):
            spark.sql(f"INSERT INTO {name} VALUES {bad}")
    options = {"primary-key": "id", "tombstone-key": "gone"}
    table = session.register("theirs", "delta", tmp_path / "theirs", options)
    for n in (0, None):
        with refused("CONSTRAINT_VIOLATION", "'positive'", f"n = {'NULL' if n is None else n}"):
            table.upsert(pa.table({"id": [3], "n": pa.array([n], pa.int32())}))
    with refused("CONSTRAINT_VIOLATION", "'positive'"):
        session.sql("UPDATE theirs SET n = n - 1 WHERE id = 1")
    table.upsert(pa.table({"id": [1, 3], "n": pa.array([10, 30], pa.int32())}))
    table.delete([2])
    assert {(r.id, r.n) for r in table.to_df().collect()} == {(1, 10), (3, 30)}
    assert spark.sql(f"SELECT * FROM {name} WHERE n > 0").count() == 5
    spark.sql(f"ALTER TABLE {name} ADD CONSTRAINT there CHECK (gone IS NULL OR NOT gone OR id = 2)")
    with refused("NOT_SUPPORTED", "'there'", "'gone'"):
        table.delete([1])
