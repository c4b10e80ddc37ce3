"""Histories of ``apply_changes``: batches of events that are cut anywhere, played on a table, and on the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from tests.support.applied import Target
from tests.support.events import Event, current, filled, history
from tests.support.tables import arrow_rows
from trinity import Session

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
    """Draw batches of events, some delivered twice, each with the compaction that follows it."""
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


def _played(
    sessions: Sequence[Session], fmt: str, kind: str, batches: list[tuple[list[Event], str]]
) -> list[tuple[Any, ...]]:
    """Apply the batches to a table, by each session in turn, and return its rows."""
    name = f"{fmt}.default.t"
    sessions[0].sql(f"DROP TABLE IF EXISTS {name}")
    target = Target(sessions[0], name, **KINDS[kind])
    for number, (part, after) in enumerate(batches):
        target.table = sessions[number % len(sessions)].table(name)
        target.apply(*part, txn=("batches", number))
        assert target.apply(*part, txn=("batches", number)).skipped
        if after:
            target.table.compact(full=after == "full")
    columns = {"rows": ("id", "n", "m", "name", "city"), "filled": ("id", "name", "city")}
    return arrow_rows(target.table, *columns.get(kind, ()))


def check(sessions: Sequence[Session], fmt: str, kind: str, batches: list[tuple[list[Event], str]]) -> None:
    """Apply the batches by some sessions in turn, and check that the table is as the model has it (H1-H5)."""
    if kind == "left out":  # one sequence column: events equal in it tie
        batches = [([replace(e, sequence=e.sequence[:1]) for e in part], after) for part, after in batches]
    came = [event for part, _ in batches for event in part]
    assert _played(sessions, fmt, kind, batches) == sorted(model(kind, came), key=repr)
