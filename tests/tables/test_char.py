"""CHAR(n) equals its own value, with trailing blanks or without, wherever Trinity compares (K2)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from tests.support.refusals import refused
from tests.support.tables import spark_rows
from trinity import Column, Session, Table


@pytest.fixture(params=["plain", pytest.param("keyed", marks=pytest.mark.full)])
def kind(request: pytest.FixtureRequest) -> str:
    """Return each kind of table: without and with a primary key."""
    return str(request.param)


@pytest.fixture
def chars(session: Session, tiered_fmt: str, kind: str) -> Table:
    """Make the table of :func:`of_three_rows`."""
    return of_three_rows(session, tiered_fmt, kind)


def of_three_rows(session: Session, fmt: str, kind: str) -> Table:
    """Make a table t with ('ab', 1), ('cd', 2), (' x', 3), two of them in the base if it is keyed."""
    session.use(fmt, "default")
    table = session.create_table(
        f"{fmt}.default.t",
        [Column("c", "char(4)", nullable=kind == "plain"), Column("n", "int")],
        primary_key=["c"] if kind == "keyed" else (),
    )
    add(table, {"c": ["ab", "cd"], "n": [1, 2]})
    if kind == "keyed":
        table.compact(full=True)
    add(table, {"c": [" x"], "n": [3]})
    return table


def add(table: Table, rows: dict[str, Any]) -> None:
    data = pa.table(rows)
    if table.definition.keyed:
        table.upsert(data)
    else:
        table.append(data)


def numbers(session: Session, text: str, parameters: Any = None) -> list[int]:
    return sorted(row[0] for row in session.sql(text, parameters).collect())


PREDICATES = {
    "c = 'ab'": [1], "'ab  ' = c": [1], "c = 'ab      '": [1], "c <=> 'ab'": [1], "c <> 'ab'": [2, 3],
    "c IN ('ab', 'nothing at all')": [1], "c IN (NULL, 'cd', 'ab ')": [1, 2], "c NOT IN ('ab', NULL)": [],
    "c NOT IN ('ab', 'x')": [2, 3], "c BETWEEN 'ab' AND 'cd'": [1, 2], "c NOT BETWEEN 'ab' AND 'cd'": [3],
    "c <= 'ab'": [1, 3], "c > 'ab'": [2], "c >= 'cd' OR c = ' x'": [2, 3], "c = 'abcde'": [], "c < 'ab\\t'": [3],
    "c = concat('a', 'b')": [1], "CASE c WHEN 'ab' THEN TRUE END": [1],
}  # fmt: skip


def test_predicates(session: Session, chars: Table) -> None:
    for predicate, found in PREDICATES.items():
        assert numbers(session, f"SELECT n FROM t WHERE {predicate}") == found, predicate
        assert sorted(chars.to_arrow(where=predicate)["n"].to_pylist()) == found, predicate


@pytest.mark.parametrize("kind", ["keyed", pytest.param("plain", marks=pytest.mark.full)])
def test_every_format(session: Session, fmt: str, kind: str) -> None:
    table = of_three_rows(session, fmt, kind)
    assert numbers(session, "SELECT n FROM t WHERE c = 'ab'") == [1]
    assert [row.n for row in table.to_df(where="c IN ('cd', NULL)").collect()] == [2]
    session.sql(f"""MERGE INTO t USING {SOURCES["literals"]} ON t.c = s.c
        WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT (c, n) VALUES (s.c, s.n)""")
    assert table.delete("c = 'cd'").rows == 1
    assert spark_rows(table) == [(" x  ", 3), ("ab  ", 10), ("new ", 20)]


def test_parameters_joins_and_frames(session: Session, chars: Table) -> None:
    assert numbers(session, "SELECT n FROM t WHERE c = ?", ["ab"]) == [1]
    assert numbers(session, "SELECT n FROM t WHERE c IN (?, ?, ?)", [None, "ab", "cd"]) == [1, 2]
    frame = chars.to_df()
    assert [row.n for row in frame.where(F.col("c") == "ab").collect()] == [1]
    assert sorted(row.n for row in frame.where(F.col("c").isin("ab", "cd")).collect()) == [1, 2]
    session.sql("CREATE TABLE wide (w CHAR(6), m INT)")
    session.sql("INSERT INTO wide VALUES ('ab', 10), ('zz', 20)")
    assert numbers(session, "SELECT t.n + w.m FROM t JOIN wide w ON t.c = w.w") == [11]
    assert numbers(session, "SELECT n FROM t WHERE EXISTS (SELECT 1 FROM wide w WHERE w.w = t.c)") == [1]
    assert numbers(session, "WITH q AS (SELECT c AS d, n FROM t) SELECT n FROM q WHERE d = 'cd'") == [2]
    assert session.sql("SELECT c FROM t WHERE c = 'ab'").collect() == [("ab  ",)]


def test_deletes_and_updates(session: Session, chars: Table) -> None:
    assert session.sql("UPDATE t SET n = 10 WHERE c = 'ab'").collect()[0].num_updated_rows == 1
    assert chars.delete("c = 'cd'").rows == 1
    assert session.sql("DELETE FROM t WHERE c IN (NULL, ' x')").collect()[0].num_deleted_rows == 1
    assert chars.update("c BETWEEN 'a' AND 'ab'", {"n": "n + 1"}).updated == 1
    assert spark_rows(chars) == [("ab  ", 11)]
    assert session.sql("DELETE FROM t WHERE c = ?", ["ab"]).collect()[0].num_deleted_rows == 1


SOURCES = {
    "literals": "(VALUES ('ab', 10), ('new', 20)) AS s(c, n)",
    "longer": "(SELECT c || '      ' AS c, n FROM VALUES ('ab', 10), ('new', 20) AS v(c, n)) s",
    "varchar": "words s",
    "char": "wide s",
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_merge_finds_its_row(session: Session, chars: Table, source: str) -> None:
    for name, type_ in (("words", "VARCHAR(9)"), ("wide", "CHAR(6)")):
        session.sql(f"CREATE TABLE {name} (c {type_}, n INT)")
        session.sql(f"INSERT INTO {name} VALUES ('ab', 10), ('new', 20)")
    counts = session.sql(f"""MERGE INTO t USING {SOURCES[source]} ON t.c = s.c
        WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT (c, n) VALUES (s.c, s.n)""").collect()[0]
    assert tuple(counts)[1:] == (1, 0, 1)
    assert spark_rows(chars) == [(" x  ", 3), ("ab  ", 10), ("cd  ", 2), ("new ", 20)]


def test_other_row_changes_with_a_source(session: Session, chars: Table) -> None:
    session.sql("CREATE TABLE s (d STRING, m INT)")
    session.sql("INSERT INTO s VALUES ('ab', 10), ('cd ', 20)")
    updated = session.sql("UPDATE t SET n = m FROM s WHERE c = d AND m = 10").collect()[0]
    assert updated.num_updated_rows == 1
    deleted = session.sql("DELETE FROM t USING s WHERE s.d = t.c AND s.m = 20").collect()[0]
    assert deleted.num_deleted_rows == 1
    merged = chars.merge(pa.table({"d": ["ab"], "m": [30]}), "t.c = s.d AND t.c >= s.d").when_matched_update(
        {"n": "s.m"}
    )
    assert merged.execute().updated == 1
    merged = chars.merge(pa.table({"d": ["ab", " x"]}), "t.n > 0").when_matched_delete("t.c <> s.d AND t.n = 3")
    assert merged.execute().deleted == 1
    assert spark_rows(chars) == [("ab  ", 30)]


def test_numbers_beside_char_are_no_text(session: Session, chars: Table) -> None:
    chars.delete()
    add(chars, {"c": ["007", "8"], "n": [0, 0]})
    merge = "MERGE INTO t USING (VALUES (7)) AS s(c) ON t.c = s.c WHEN MATCHED THEN UPDATE SET n = s.c"
    assert session.sql(merge).collect()[0].num_updated_rows == 1
    assert spark_rows(chars) == [("007 ", 7), ("8   ", 0)]


def test_blanks_beyond_the_length_are_cut(session: Session, chars: Table) -> None:
    """VARCHAR and Spark cut them, too."""
    session.sql("INSERT INTO t VALUES ('ef       ', 4)")
    add(chars, {"c": ["gh     "], "n": [5]})
    assert spark_rows(chars)[-2:] == [("ef  ", 4), ("gh  ", 5)]
    with refused("CONSTRAINT_VIOLATION", "abcde"):
        session.sql("INSERT INTO t VALUES ('abcde', 4)")


def test_partitions_defaults_and_checks(session: Session, tiered_fmt: str) -> None:
    session.use(tiered_fmt, "default")
    session.sql("""CREATE TABLE p (c CHAR(4) DEFAULT 'ab', n INT, CONSTRAINT some CHECK (c IN ('ab', 'cd')),
        CONSTRAINT whole CHECK (length(c) = 4)) PARTITIONED BY (c)""")
    session.sql("INSERT INTO p (n) VALUES (1)")
    session.sql("INSERT INTO p VALUES ('cd', 2)")
    session.table("p").append(pa.table({"c": ["ab  ", "cd"], "n": [3, 4]}))
    assert numbers(session, "SELECT n FROM p WHERE c = 'ab'") == [1, 3]
    assert numbers(session, "SELECT n FROM p WHERE c IN (NULL, 'cd')") == [2, 4]
    with refused("CONSTRAINT_VIOLATION", "some"):
        session.sql("UPDATE p SET c = 'x' WHERE c = 'cd'")
    session.sql("UPDATE p SET c = 'ab' WHERE c = 'cd' AND n = 4")
    assert session.sql("DELETE FROM p WHERE c = 'cd'").collect()[0].num_deleted_rows == 1
    assert numbers(session, "SELECT n FROM p WHERE c <> 'cd'") == [1, 3, 4]


@pytest.mark.parametrize("kind", ["keyed"])
def test_changes_and_versions(session: Session, chars: Table) -> None:
    begin = chars.history().orderBy("version").first()
    assert begin is not None
    add(chars, {"c": ["ab"], "n": [5]})
    found = chars.changes(begin.version).where("c = 'ab' AND _change_type = 'update_postimage'").collect()
    assert [row.n for row in found] == [5]
    assert [row.n for row in chars.log().where("c = 'ab'").orderBy("_commit_version").collect()][-1] == 5
