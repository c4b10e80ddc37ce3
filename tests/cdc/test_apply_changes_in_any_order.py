"""``trinity.apply_changes`` against its model: batches cut anywhere, in any order, again, and from streams (H1-H5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import trinity
from tests.support.applied import COLUMNS, Target, arrow, rows
from tests.support.events import Event, current, filled, history
from trinity import CommitResult, Session
from trinity.storage import spark_schema

# -- any order, any batches -----------------------------------------------------------------------------------

NAMES = st.sampled_from([None, "a", "b"])
EVENTS = st.builds(
    Event,
    key=st.integers(1, 6),
    sequence=st.tuples(st.integers(1, 4), st.integers(1, 2)),
    values=st.tuples(NAMES, NAMES),
    deletes=st.sampled_from([False, False, True]),
)
STORED = {"except_columns": ["op"], "sequence_by": ["n", "m"]}
KINDS: Mapping[str, Mapping[str, Any]] = {
    "left out": {"except_columns": ["op", "n", "m"], "stored_as_scd_type": 2},
    "tracked": {**STORED, "stored_as_scd_type": 2},
    "one column tracked": {**STORED, "stored_as_scd_type": 2, "track_history_column_list": ["name"]},
    "nothing tracked": {**STORED, "stored_as_scd_type": 2, "track_history_column_list": []},
    "rows": STORED,
    "filled": {**STORED, "ignore_null_updates": True},
}
GENERATED = settings(
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate),
    print_blob=True,
)


@st.composite
def deliveries(draw: st.DrawFn, cuts_at_most: int) -> list[tuple[list[Event], str]]:
    """Batches of events, some delivered again, each with what is done to the table after it."""
    came = draw(st.lists(EVENTS, min_size=20, max_size=60))
    came += draw(st.lists(st.sampled_from(came), max_size=10))
    cuts = sorted(draw(st.sets(st.integers(1, len(came) - 1), min_size=1, max_size=cuts_at_most)))
    parts = [came[a:b] for a, b in pairwise([0, *cuts, len(came)])]
    return [(part, draw(st.sampled_from(["", "compact", "full"]))) for part in parts]


def model(kind: str, came: list[Event]) -> list[tuple[Any, ...]]:
    if kind == "rows":
        return [(key, *e.sequence, *e.values) for key, e in current(came).items()]
    if kind == "filled":
        return [(key, *values) for key, values in filled(came).items()]
    tracked = {"one column tracked": lambda e: e.values[0], "nothing tracked": lambda e: None}
    found = history(came, tracked.get(kind, lambda e: e.values))
    if kind == "left out":
        return [(key, *e.values, start[0], end and end[0]) for key, e, start, end in found]
    return [(key, *e.sequence, *e.values, start, end) for key, e, start, end in found]


def played(session: Session, fmt: str, kind: str, batches: list[tuple[list[Event], str]]) -> list[tuple[Any, ...]]:
    """The rows of a table to which the batches were applied."""
    session.sql(f"DROP TABLE IF EXISTS {fmt}.default.t")
    target = Target(session, f"{fmt}.default.t", **KINDS[kind])
    for number, (part, after) in enumerate(batches):
        target.apply(*part, txn=("batches", number))
        assert target.apply(*part, txn=("batches", number)).skipped
        if after:
            target.table.compact(full=after == "full")
    columns = {"rows": ("id", "n", "m", "name", "city"), "filled": ("id", "name", "city")}
    return rows(target.table, *columns.get(kind, ()))


def check(session: Session, fmt: str, kind: str, batches: list[tuple[list[Event], str]]) -> None:
    if kind == "left out":  # one column of sequence: what is equal in it is a tie
        batches = [([replace(e, sequence=e.sequence[:1]) for e in part], after) for part, after in batches]
    came = [event for part, _ in batches for event in part]
    assert played(session, fmt, kind, batches) == sorted(model(kind, came), key=repr)


@pytest.mark.parametrize(
    "kind", [k if k == "one column tracked" else pytest.param(k, marks=pytest.mark.full) for k in KINDS]
)
def test_the_order_of_arrival_does_not_matter(session: Session, kind: str) -> None:
    """Batches cut anywhere, delivered again, compacted in between: as the model has it (H1, H2, H3, H4, H5)."""

    @settings(GENERATED, max_examples=1)
    @seed(23)
    @given(deliveries(1))
    def one(batches: list[tuple[list[Event], str]]) -> None:
        check(session, "parquet", kind, batches)

    one()


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_arrival_does_not_matter_at_length(session: Session, fmt: str, kind: str) -> None:
    @settings(GENERATED, max_examples=8)
    @given(deliveries(3))
    def many(batches: list[tuple[list[Event], str]]) -> None:
        check(session, fmt, kind, batches)

    many()


# -- streams --------------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("kind", ["rows", "one column tracked"])
def test_a_stream_applies_each_batch_once(session: Session, fmt: str, kind: str, tmp_path: Path) -> None:
    target = Target(session, f"{fmt}.default.t", **KINDS[kind])
    came = [Event(1, (1, 1), ("a", "x")), Event(1, (3, 1), ("a", "z")), Event(1, (2, 1), ("b", "y"))]
    (tmp_path / "in").mkdir()
    for number, event in enumerate(came):
        pq.write_table(arrow([event]), tmp_path / f"in/{number}.parquet")
    for _ in range(2):
        frame = session.spark.readStream.schema(spark_schema(COLUMNS)).option("maxFilesPerTrigger", 1)
        query = trinity.apply_changes(
            frame.parquet(str(tmp_path / "in")), target.table, checkpoint=tmp_path / "at", available_now=True,
            **target.words,
        )  # fmt: skip
        assert not isinstance(query, CommitResult)
        query.awaitTermination()
    columns = ("id", "n", "m", "name", "city") if kind == "rows" else ()
    assert rows(target.table, *columns) == sorted(model(kind, came), key=repr)
    assert len(target.table.history().where("operation <> 'create'").collect()) <= 4
