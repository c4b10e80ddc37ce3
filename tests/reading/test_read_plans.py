"""Plans of merged reads in words, by ``table.explain()`` and EXPLAIN, compared with what the reads do (L9, L10)."""

from __future__ import annotations

import pyarrow as pa
import pytest

from trinity import Session, Table

OPTIONS = "'watermark-key' = 'ts', 'tombstone-key' = 'gone', 'bucket' = '2'"
COLUMNS = "id BIGINT, ts INT, gone BOOLEAN, v STRING, PRIMARY KEY (id)"


def put_range(table: Table, first: int, last: int, ts: int) -> None:
    ids = list(range(first, last))
    stamps, gone = pa.array([ts] * len(ids), pa.int32()), [key % 7 == 3 and ts > 1 for key in ids]
    table.upsert(pa.table({"id": ids, "ts": stamps, "gone": gone, "v": ["v"] * len(ids)}))


def plan(words: str) -> str:
    [line] = [line for line in words.splitlines() if line.startswith("plan: ")]
    return line.removeprefix("plan: ")


@pytest.fixture
def stock(session: Session, tiered_fmt: str) -> Table:
    session.sql(f"CREATE TABLE {tiered_fmt}.default.stock ({COLUMNS}) TBLPROPERTIES ({OPTIONS})")
    return session.table(f"{tiered_fmt}.default.stock")


def test_a_plan_goes_with_what_is_in_the_table(stock: Table) -> None:
    put_range(stock, 0, 40, 1)
    assert plan(stock.explain()).startswith("the log is exchanged by key and folded; there is no base")
    stock.compact(full=True)
    words = stock.explain()
    assert plan(words) == "a scan"
    assert words.splitlines()[0] == f"merged read of {stock.name} at version {stock.splits().version}"
    assert "base: 2 of 2 files, 40 rows" in words.splitlines()
    put_range(stock, 10, 20, 2)
    assert "log: 1 of 1 file, 10 rows, 1 commit" in stock.explain().splitlines()
    assert "neither exchanged nor sorted" in plan(stock.explain())


def test_a_plan_goes_with_how_large_the_base_is(stock: Table) -> None:
    put_range(stock, 0, 10_000, 1)
    stock.compact(full=True)
    put_range(stock, 10, 20, 2)
    assert "finds the positions first" in plan(stock.explain())
    assert "finds the positions first" in plan(stock.explain())  # (an explained read is not executed)
    assert "the positions of the requested keys are found first" in plan(stock.explain(where="id IN (1, 12)"))
    assert "neither exchanged nor sorted" in plan(stock.explain(where="id < 12"))
    assert stock.to_df().count() == 9_998
    assert "known from an earlier read" in plan(stock.explain())
    assert "known from an earlier read" in plan(stock.explain(where="id IN (1, 12)"))
    put_range(stock, 50, 52, 2)
    words = stock.explain()
    assert "finds the positions first" in plan(words)
    assert "log: 2 of 2 files, 12 rows, 2 commits" in words.splitlines()
    assert "log: 1 of 2 files, 10 rows, 1 commit" in stock.explain(where="id = 12").splitlines()


def test_a_resolved_table_is_a_scan(session: Session, stock: Table) -> None:
    put_range(stock, 0, 40, 1)
    stock.compact(full=True)
    put_range(stock, 10, 20, 2)
    stock.compact("resolve")
    words = stock.explain()
    assert plan(words) == "a scan"
    assert any(line.startswith("deleted by position: 10 rows") for line in words.splitlines())
    put_range(stock, 0, 1, 3)
    assert any(line.startswith("sidecar: 2 rows moved there by compaction") for line in stock.explain().splitlines())
    before = stock.splits().version - 1
    assert plan(stock.explain(version=before)) == "a scan"


def test_explain_says_how_each_table_is_read(session: Session, stock: Table) -> None:
    put_range(stock, 0, 4, 1)
    session.sql(f"CREATE TABLE {stock.name.catalog}.default.notes (id BIGINT, note STRING)")
    session.sql(f"INSERT INTO {stock.name.catalog}.default.notes VALUES (1, 'a')")
    query = f"SELECT note FROM {stock.name} JOIN {stock.name.catalog}.default.notes USING (id) WHERE v = 'v'"
    [text] = [row[0] for row in session.sql(f"EXPLAIN {query}").collect()]
    assert f"merged read of {stock.name} at version" in text
    assert f"merged read of {stock.name.catalog}.default.notes at version" in text
    assert "== Physical Plan ==" in text
    assert session.sql("EXPLAIN SELECT 1").columns == ["plan"]
    assert "merged read" not in session.sql("EXPLAIN SELECT 1").collect()[0][0]


def test_engines_that_fold_by_column_have_a_plan_of_their_own(session: Session, tiered_fmt: str) -> None:
    session.sql(
        f"CREATE TABLE {tiered_fmt}.default.sums (id BIGINT, n BIGINT, PRIMARY KEY (id)) TBLPROPERTIES "
        "('merge-engine' = 'aggregation', 'fields.n.aggregate-function' = 'sum')"
    )
    sums = session.table(f"{tiered_fmt}.default.sums")
    sums.upsert(pa.table({"id": [1], "n": [2]}))
    assert "folded column by column" in plan(sums.explain())
