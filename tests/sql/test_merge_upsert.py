"""A MERGE that is an upsert reads the target only for its counts, and has the effect of the join."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.refusals import refused
from trinity import Session, TrinityError

STAR = "UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
NAMED = "UPDATE SET a = s.a, w = s.w, d = s.d WHEN NOT MATCHED THEN INSERT (k, a, w, d) VALUES (s.k, s.a, s.w, s.d)"
COLUMNS = "(k INT, a SMALLINT NOT NULL, w INT, d BOOLEAN, PRIMARY KEY (k))"
OPTIONS = "TBLPROPERTIES ('watermark-key' = 'w', 'tombstone-key' = 'd')"

SOURCES = {
    "late, equal, newer, without a watermark, deleting, reviving, new": """
        (1, 11, 1, false), (2, 12, 2, false), (3, 13, 3, false), (4, 14, NULL, false), (5, 15, 9, true),
        (6, 16, 9, false), (7, 17, 0, false), (8, 18, 9, true)""",
    "matched twice": "(1, 11, 9, false), (1, 12, 9, false)",
    "not matched twice": "(9, 11, 9, false), (9, 12, 9, false)",
    "without a key": "(NULL, 11, 9, false), (1, 12, 9, false)",
    "without a value": "(1, CAST(NULL AS INT), 9, false)",
    "out of range": "(1, 40000, 9, false)",
    "forbidden": "(1, -1, 9, false)",
    "empty": "(1, 11, 9, false) LIMIT 0",
}


@pytest.fixture
def twins(session: Session, tiered_fmt: str) -> tuple[str, str]:
    """Make two tables with the same rows: in the base, in the log, and deleted."""
    names = (f"{tiered_fmt}.default.one", f"{tiered_fmt}.default.other")
    for name in names:
        session.sql(f"CREATE TABLE {name} {COLUMNS} {OPTIONS}")
        session.sql(f"ALTER TABLE {name} ADD CONSTRAINT positive CHECK (a > 0)")
        session.sql(f"INSERT INTO {name} VALUES (1, 1, 2, false), (2, 2, 2, false), (5, 5, 2, false), (6, 6, 2, true)")
        session.table(name).compact(full=True)
        session.sql(f"INSERT INTO {name} VALUES (3, 3, 2, false), (4, 4, 2, false), (1, 10, 3, false)")
    return names


def outcome(session: Session, table: str, source: str, clauses: str) -> Any:
    """Run a MERGE, and return its counts or its error, with the rows and row versions afterwards."""
    session.sql(f"SELECT * FROM VALUES {source}").toDF("k", "a", "w", "d").createOrReplaceTempView("s")
    try:
        reported: Any = tuple(
            session.sql(f"MERGE INTO {table} t USING s ON t.k = s.k WHEN MATCHED {clauses}").collect()[0]
        )
    except TrinityError as error:
        reported = (error.code, error.message.replace(table, "the table"))
    found = session.table(table)
    versions = found.log().select("k", "a", "w", "d").collect()
    return reported, sorted(found.to_df().collect(), key=repr), sorted(versions, key=repr)


@pytest.mark.full
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("clauses", [STAR, NAMED], ids=["star", "named"])
def test_an_upsert_does_what_the_join_does(session: Session, twins: tuple[str, str], source: str, clauses: str) -> None:
    one, other = twins
    explained = session.sql(f"EXPLAIN MERGE INTO {one} t USING {one} s ON t.k = s.k WHEN MATCHED THEN {clauses}")
    assert "upsert: " in str(explained.collect()[0][0])
    joined = outcome(session, other, SOURCES[source], f"AND s.k IS NOT NULL THEN {clauses}")
    assert outcome(session, one, SOURCES[source], f"THEN {clauses}") == joined


@pytest.mark.full
def test_a_commit_that_comes_between_is_seen(session: Session, twins: tuple[str, str], monkeypatch: Any) -> None:
    """The counts are those of the version to which the statement is committed (L7)."""
    one, _ = twins
    metadata = session.table(one).connector.metadata
    finish, rows = metadata.finish_merge, [(7, 7, 1, False)]

    def after_another(*given: Any) -> Any:
        monkeypatch.setattr(metadata, "finish_merge", finish)
        session.table(one).upsert(session.spark.createDataFrame(rows, "k INT, a SMALLINT, w INT, d BOOLEAN"))
        return finish(*given)

    monkeypatch.setattr(metadata, "finish_merge", after_another)
    reported, *_ = outcome(session, one, "(7, 70, 9, false), (9, 9, 9, false)", f"THEN {STAR}")
    assert reported == (2, 1, 0, 1)


def test_keys_other_than_those_of_on_are_looked_up(session: Session, twins: tuple[str, str]) -> None:
    """It is no upsert, since the new key may be live (M4)."""
    one, _ = twins
    session.sql("SELECT 8 AS x, 1 AS k, CAST(1 AS SMALLINT) AS a, 9 AS w, false AS d").createOrReplaceTempView("s")
    with refused("CONSTRAINT_VIOLATION", "k = 1"):
        session.sql(f"MERGE INTO {one} t USING s ON t.k = s.x WHEN MATCHED THEN {STAR}")
