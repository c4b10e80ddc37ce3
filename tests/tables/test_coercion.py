"""Values of two types in ON: a MERGE matches the rows that Spark's own join matches (M1, M4)."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from typing import Final

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.support.refusals import refused
from trinity import Column, Session, TrinityError

NUMBERS: Final = ("-1", "0", "7", "100", "127")
TIMES: Final = ("2020-01-01", "2020-03-08", "1999-12-31")
VALUES: Final[dict[str, Sequence[str]]] = {
    "tinyint": NUMBERS,
    "int": (*NUMBERS, "300", "2147483647"),
    "bigint": (*NUMBERS, "16777217", "9007199254740992", "9007199254740993", "9223372036854775807"),
    "float": ("-0.0", "7", "7.5", "0.1", "16777216", "NaN", "Infinity"),
    "double": ("0.0", "-0.0", "7", "7.5", "0.1", "9007199254740992", "9223372036854775807", "NaN"),
    "decimal(10,2)": ("0", "7", "7.5", "0.1", "1.01", "16777217"),
    "decimal(12,4)": ("0", "7", "7.4999", "7.5", "0.1", "1.005", "1.01"),
    "decimal(38,0)": ("0", "7", "8", "9007199254740993", "9223372036854775807", "92233720368547758070"),
    "string": ("7", "007", " 7", "100", "7   "),
    "char(4)": ("7", "007", "100"),
    "varchar(4)": ("7", "007", "100", "7 "),
    "date": TIMES,
    "timestamp": (*TIMES, "2020-01-01 10:00:00", "2020-03-08 03:30:00"),
    "timestamp_ntz": (*TIMES, "2020-01-01 10:00:00", "2020-03-08 02:30:00", "2020-03-08 03:30:00"),
    "boolean": ("true", "false"),
    "binary": ("7", "007", "100", "true", "2020-01-01"),
}
BESIDE_TEXT: Final = {
    "date": ("2020-01-01", "2020", "2020-1-1", " 1999-12-31 "),
    "timestamp": ("2020-01-01", "2020", "2020-1-1 10:00:00", "2020-01-01T10:00:00"),
    "timestamp_ntz": ("2020-01-01", "2020", "2020-1-1 10:00:00", "2020-03-08 02:30:00"),
    "boolean": ("true", "t", "1", "no"),
}
"""Type -> texts that can be compared with it: Spark refuses others."""


def rows_of(spark: SparkSession, kind: str, beside: str, name: str) -> DataFrame:
    """Return the values of a type, one a row, with their numbers."""
    text = kind.startswith(("string", "char", "varchar"))
    values = BESIDE_TEXT.get(beside, VALUES[kind]) if text else VALUES[kind]
    if kind in ("char(4)", "varchar(4)"):
        values = [v for v in values if len(v) <= 4]
    if kind == "char(4)":
        values = [v.ljust(4) for v in values]
    plain = "string" if text else kind
    lines = ", ".join(f"({n}, CAST('{value}' AS {plain}))" for n, value in enumerate(values))
    return spark.sql(f"SELECT * FROM VALUES {lines} AS v(n, {name})")


def joined(target: DataFrame, source: DataFrame, kind: str) -> dict[int, list[int]]:
    """Return number of a source row -> numbers of the target rows that Spark's join finds, for rows that share none.

    CHAR ignores trailing blanks of the other side, whatever its type (K2).
    """
    blanks = kind == "char(4)" and source.schema["id"].dataType.simpleString() == "string"
    on = F.expr("rtrim(t.k) = rtrim(s.id)" if blanks else "t.k = s.id")
    pairs = target.alias("t").join(source.alias("s"), on).select("s.n", "t.n").collect()
    kept: dict[int, list[int]] = {}
    for row in sorted(source.select("n").collect()):
        mine = [t for s, t in pairs if s == row.n]
        if not any(t in others for others in kept.values() for t in mine):
            kept[row.n] = mine
    return kept


def tables(session: Session, fmt: str, kind: str, rows: DataFrame) -> tuple[str, str]:
    """Make a plain and a keyed table with the rows in two files each."""
    plain, keyed = f"{fmt}.default.plain", f"{fmt}.default.keyed"
    session.sql(f"CREATE TABLE {plain} (n INT, k {kind}, m INT)")
    session.sql(f"CREATE TABLE {keyed} (n INT, k {kind}, m INT, PRIMARY KEY (k))")
    data = rows.toArrow()
    for half in (data.slice(0, data.num_rows // 2), data.slice(data.num_rows // 2)):
        session.table(plain).append(half)
        session.table(keyed).upsert(half)
    return plain, keyed


def numbers(session: Session, table: str) -> list[tuple[int | None, int | None]]:
    found = session.table(table).to_df().select("n", "m").collect()
    return sorted(((r.n, r.m) for r in found), key=repr)


def only(source: DataFrame, rows: Collection[int]) -> None:
    """Make the view ``s`` of some rows of a source."""
    source.where(F.col("n").isin(list(rows))).createOrReplaceTempView("s")


def check_plain(session: Session, table: str, kind: str, source: DataFrame) -> None:
    """Check MATCHED and NOT MATCHED of a plain table."""
    kept = joined(session.table(table).to_df(), source, kind)
    only(source, kept)
    session.sql(f"""
        MERGE INTO {table} t USING s ON t.k = s.id WHEN MATCHED THEN UPDATE SET m = s.n
        WHEN NOT MATCHED THEN INSERT (m) VALUES (s.n)""")
    matched = {t: s for s, found in kept.items() for t in found}
    assert {n: m for n, m in numbers(session, table) if n is not None and n in matched} == matched
    assert [m for n, m in numbers(session, table) if n is None] == [s for s, found in kept.items() if not found]


def check_keyed(session: Session, table: str, kind: str, source: DataFrame) -> None:
    """Check MATCHED and NOT MATCHED of a keyed table: the key that would be stored must be new, not the value in ON."""
    before = session.table(table).to_df()
    kept = joined(before, source, kind)
    matched = {t: s for s, found in kept.items() for t in found}
    plain = "string" if kind.startswith(("char", "varchar")) else kind
    stored = source.selectExpr("n", f"try_cast(id AS {plain}) AS k").where("k IS NOT NULL")
    if kind == "char(4)":
        stored = stored.selectExpr("n", "rpad(k, 4, ' ') AS k")
    unmatched = stored.where(F.col("n").isin([s for s, found in kept.items() if not found]))
    first = unmatched.groupBy("k").agg(F.min("n").alias("n"))
    new = [r.n for r in first.join(before, "k", "left_anti").collect()]
    taken = [r.n for r in unmatched.join(before, "k", "left_semi").collect()]
    insert = "WHEN NOT MATCHED THEN INSERT (n, k, m) VALUES (1000 + s.n, s.id, s.n)"
    update = f"MERGE INTO {table} t USING s ON s.id = t.k WHEN MATCHED THEN UPDATE SET m = s.n"
    only(source, {*matched.values(), *new})
    try:
        counts = session.sql(f"{update} {insert}").collect()[0]
    except TrinityError as error:
        if error.code != "TYPE_MISMATCH":  # such an INSERT needs a CAST
            raise
        new, taken = [], []
        only(source, matched.values())
        counts = session.sql(update).collect()[0]
    assert (counts.num_updated_rows, counts.num_inserted_rows) == (len(matched), len(new))
    found = numbers(session, table)
    assert {n: m for n, m in found if n in matched} == matched
    assert {m for n, m in found if n is not None and n >= 1000} == set(new)
    if taken:
        only(source, taken[:1])
        with refused("CONSTRAINT_VIOLATION"):
            session.sql(f"{update} {insert}")


def check_pairs(session: Session, fmt: str, kind: str, others: Sequence[str]) -> None:
    for other in others:
        spark = session.spark
        rows, source = rows_of(spark, kind, other, "k"), rows_of(spark, other, kind, "id")
        if kind.startswith(("float", "double")):  # one key, K2
            rows = rows.where("k <> 0 OR n <> 1")
        plain, keyed = tables(session, fmt, kind, rows)
        try:
            rows.alias("t").join(source.alias("s"), F.expr("t.k = s.id"))
        except AnalysisException:
            with refused("TYPE_MISMATCH"):
                source.createOrReplaceTempView("s")
                session.sql(f"MERGE INTO {plain} t USING s ON t.k = s.id WHEN MATCHED THEN DELETE")
        else:
            check_plain(session, plain, kind, source)
            check_keyed(session, keyed, kind, source)
        for name in (plain, keyed):
            session.sql(f"DROP TABLE {name}")


@pytest.mark.full
def test_a_merge_matches_what_spark_joins(session: Session) -> None:
    check_pairs(session, "parquet", "bigint", ["double"])


@pytest.mark.full
@pytest.mark.parametrize("kind", [k for k in VALUES if k != "boolean"])
def test_merges_match_what_spark_joins(session: Session, fmt: str, kind: str) -> None:
    """The engine compares; the format matters only for how a value is read back."""
    drawn = random.Random(f"{fmt} {kind}")
    check_pairs(session, fmt, kind, drawn.sample(sorted(VALUES), 4 if fmt == "parquet" else 2))


@pytest.mark.full
def test_text_beside_numbers(session: Session, tiered_fmt: str) -> None:
    """'007' = 7: in the condition of a MERGE, in what it stores, and in WHERE."""
    table = session.create_table(
        f"{tiered_fmt}.default.texts", [Column("k", "string"), Column("m", "int")], primary_key=["k"]
    )
    table.upsert(pa.table({"k": ["007", "8"], "m": [0, 0]}))
    table.compact(full=True)
    table.upsert(pa.table({"k": ["100"], "m": [0]}))
    session.sql("SELECT * FROM VALUES (7), (9) AS v(id)").createOrReplaceTempView("s")
    merge = f"""MERGE INTO {table.name} t USING s ON t.k = s.id WHEN MATCHED THEN UPDATE SET m = s.id
        WHEN NOT MATCHED THEN INSERT (k, m) VALUES (CAST(s.id AS STRING), s.id)"""
    assert tuple(session.sql(merge).collect()[0])[1:] == (1, 0, 1)
    assert sorted(map(tuple, table.to_df().collect())) == [("007", 7), ("100", 0), ("8", 0), ("9", 9)]
    assert [r.k for r in table.to_df(where="k = 7").collect()] == ["007"]
    assert session.sql(f"SELECT k FROM {table.name} WHERE k = 7").collect() == [("007",)]
    assert session.sql(f"DELETE FROM {table.name} WHERE k = 7").collect()[0].num_deleted_rows == 1


def test_keys_given_as_data_are_compared_as_keys(session: Session) -> None:
    texts = session.create_table("parquet.default.texts", [Column("k", "char(4)")], primary_key=["k"])
    texts.upsert(pa.table({"k": ["7", "007", "8"]}))
    for keys in ([7], session.spark.sql("SELECT 7 AS k")):
        with refused("TYPE_MISMATCH", "k"):
            texts.delete(keys)
    assert texts.delete(session.spark.sql("SELECT '7' AS k UNION ALL SELECT '7   '")).rows == 1
    whole = session.create_table("parquet.default.whole", [Column("k", "int")], primary_key=["k"])
    whole.upsert(pa.table({"k": [7, 8]}))
    given = session.spark.sql("SELECT explode(array(7.5D, 8D, 8.0D, 1e10D, CAST('NaN' AS DOUBLE))) AS k")
    assert whole.delete(given).rows == 1
    assert [r.k for r in whole.to_df().collect()] == [7]
