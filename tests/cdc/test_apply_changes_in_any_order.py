"""``trinity.apply_changes`` against its model: batches cut anywhere, in any order, repeated, streamed (H1-H5)."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, seed, settings

import trinity
from tests.support.applied import Target, arrow
from tests.support.events import Event
from tests.support.histories import GENERATED, KINDS, check, deliveries, model
from tests.support.tables import arrow_rows
from trinity import CommitResult, Session, Table


@pytest.mark.parametrize(
    "kind", [k if k == "one column tracked" else pytest.param(k, marks=pytest.mark.full) for k in KINDS]
)
def test_the_order_of_arrival_does_not_matter(session: Session, kind: str) -> None:
    """Batches are cut anywhere, delivered twice, and compacted; the rows are the model's (H1, H2, H3, H4, H5)."""

    @settings(GENERATED, max_examples=1)
    @seed(23)
    @given(deliveries(1))
    def one(batches: list[tuple[list[Event], str]]) -> None:
        check([session], "parquet", kind, batches)

    one()


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_arrival_does_not_matter_at_length(session: Session, warehouse: Path, fmt: str, kind: str) -> None:
    """Spark and this process apply batches by turns."""

    @settings(GENERATED, max_examples=3)
    @given(deliveries(3))
    def many(batches: list[tuple[list[Event], str]]) -> None:
        check([session, here], fmt, kind, batches)

    with trinity.connect(warehouse, engine="local") as here:
        many()


@pytest.mark.full
@pytest.mark.parametrize("kind", [kind for kind, words in KINDS.items() if words.get("stored_as_scd_type") == 2])
def test_this_process_writes_the_rows_that_spark_does(session: Session, warehouse: Path, fmt: str, kind: str) -> None:
    """After each batch, shown and hidden rows are the same; compactions in between depend on which rows are hidden."""

    def stored(table: Table) -> list[str]:
        found = table.log().to_arrow().drop_columns(["_commit_version", "_file", "_pos"])
        return sorted(map(repr, found.to_pylist()))

    @settings(GENERATED, max_examples=2)
    @given(deliveries(3))
    def some(batches: list[tuple[list[Event], str]]) -> None:
        targets = []
        for made, name in ((session, "by_spark"), (here, "by_this_process")):
            made.sql(f"DROP TABLE IF EXISTS {fmt}.default.{name}")
            targets.append(Target(made, f"{fmt}.default.{name}", **KINDS[kind]))
        for part, after in batches:
            assert len({target.apply(*part).rows for target in targets}) == 1
            for target in targets if after else ():
                target.table.compact(full=after == "full")
            assert stored(targets[0].table) == stored(targets[1].table)

    with trinity.connect(warehouse, engine="local") as here:
        some()


# -- streams --------------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("kind", ["rows", "one column tracked"])
def test_a_stream_applies_each_batch_once(session: Session, fmt: str, kind: str, tmp_path: Path) -> None:
    target = Target(session, f"{fmt}.default.t", **KINDS[kind])
    came = [Event(1, (1, 1), ("a", "x")), Event(1, (3, 1), ("a", "z")), Event(1, (2, 1), ("b", "y"))]
    (tmp_path / "in").mkdir()
    for number, event in enumerate(came):
        pq.write_table(arrow([event]), tmp_path / f"in/{number}.parquet")
    schema = session.spark.read.parquet(str(tmp_path / "in")).schema
    for _ in range(2):
        frame = session.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        query = trinity.apply_changes(
            frame.parquet(str(tmp_path / "in")), target.table, checkpoint=tmp_path / "at", available_now=True,
            **target.words,
        )  # fmt: skip
        assert not isinstance(query, CommitResult)
        query.awaitTermination()
    columns = ("id", "n", "m", "name", "city") if kind == "rows" else ()
    assert arrow_rows(target.table, *columns) == sorted(model(kind, came), key=repr)
    assert len(target.table.history().where("operation <> 'create'").collect()) <= 4
