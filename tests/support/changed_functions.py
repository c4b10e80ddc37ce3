"""Histories of tables whose columns, and with them their functions, change between compactions (E3).

A table is played beside a twin that is never compacted: both have to read alike after each step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa
from hypothesis import strategies as st

from tests.support.refusals import refused
from trinity import Column, Session, Table

Step = tuple[str, Any]
SHAPES: Final[Mapping[str, Mapping[str, str]]] = {
    "sums": {"merge-engine": "aggregation", "sequence.field": "ts", "fields.v.aggregate-function": "sum"},
    "retracts": {
        "merge-engine": "aggregation",
        "sequence.field": "ts",
        "rowkind.field": "kind",
        "fields.v.aggregate-function": "sum",
    },
    "carts": {
        "merge-engine": "partial-update",
        "fields.ts.sequence-group": "v,last",
        "fields.v.aggregate-function": "sum",
        "fields.last.aggregate-function": "listagg",
    },
    "states": {
        "merge-engine": "aggregation",
        "sequence.field": "ts",
        "rowkind.field": "kind",
        "fields.v.aggregate-function": "last_value",
        "fields.v.ignore-retract": "true",
    },
    "prices": {
        "merge-engine": "partial-update",
        "fields.ts.sequence-group": "v,last",
        "fields.v.aggregate-function": "last_value",
    },
}
"""Shape -> table properties. Without ``last``, no function of the first three depends on the order of rows."""
NUMBERS: Final = st.integers(0, 9)
ROWS: Final = st.lists(st.tuples(st.integers(1, 3), NUMBERS, NUMBERS, st.none() | NUMBERS, st.booleans()), min_size=1)
STEPS: Final[st.SearchStrategy[list[Step]]] = st.lists(
    st.one_of(
        st.tuples(st.just("upsert"), ROWS),
        st.tuples(st.just("move"), ROWS),
        st.tuples(st.just("delete"), st.integers(1, 3)),
        st.tuples(st.just("alter"), st.just(None)),
        st.tuples(st.just("compact"), st.sampled_from(["minor", "resolve", "full"])),
    ),
    min_size=8,
    max_size=16,
)


def _row(k: int, ts: int, v: int) -> tuple[int, int, int, int | None, bool]:
    return k, ts, v, v, False


FOLDED_IN_SIDECAR: Final[list[Step]] = [
    ("upsert", [_row(1, 1, 10), _row(2, 1, 10)]),
    ("compact", "full"),
    ("alter", None),
    ("upsert", [_row(1, 2, 5)]),
    ("compact", "full"),
    ("upsert", [_row(1, 3, 1), _row(2, 3, 1)]),
    ("compact", "full"),
]
"""A history whose sidecar has rows that are the fold of others: base rows from before the ALTER."""

REVIVED_AT_ONCE: Final[list[Step]] = [
    ("upsert", [_row(1, 5, 10)]),
    ("delete", 1),
    ("upsert", [_row(1, 5, 7)]),
    ("compact", "full"),
    ("upsert", [_row(1, 6, 1)]),
]
"""A history with a delete and a newer row of one sequence, of which the arrival decides."""

KINDS: Final = {"ts": pa.int32(), "k": pa.int32(), "v": pa.int64(), "last": pa.string(), "kind": pa.string()}


def make(session: Session, name: str, shape: str) -> Table:
    columns = [Column("k", "int"), Column("ts", "int"), Column("v", "bigint")]
    columns += [Column("last", "string")] if shape in ("carts", "prices") else []
    columns += [Column("kind", "string")] if shape in ("retracts", "states") else []
    return session.create_table(name, columns, primary_key=["k"], properties=SHAPES[shape])


def rows_for(table: Table, rows: list[tuple[int, int, int, int | None, bool]]) -> pa.Table:
    """Return rows (k, ts, v, last, whether it is a retract)."""
    data = {
        "k": [row[0] for row in rows],
        "ts": [row[1] for row in rows],
        "v": [row[2] for row in rows],
        "last": [None if row[3] is None else str(row[3]) for row in rows],
        "kind": ["-U" if row[4] else "+I" for row in rows],
    }
    return pa.table({name: pa.array(data[name], KINDS[name]) for name in table.columns})


def alter(table: Table) -> None:
    """Drop the column whose function depends on the order of rows, or add it if there is none."""
    if "last" in table.columns:
        table.drop_column("last")
    else:
        table.add_column(Column("last", "string"))


def play(table: Table, twin: Table, steps: list[Step], read: Callable[[Table], list[dict[str, Any]]]) -> None:
    """Play steps on a table, and on a twin that is not compacted. Fail where ``read`` and the twin's rows differ."""
    for number, (what, given) in enumerate(steps):
        for one in (table, twin):
            if what == "upsert":
                one.upsert(rows_for(one, given))
            elif what == "move":  # adds that leave v as it is
                one.upsert(rows_for(one, [(*row[:4], False) for row in given]).drop_columns("v"))
            elif what == "delete":
                one.delete(f"k = {given}")
            elif what == "alter":
                alter(one)
        if what == "compact":
            table.compact(given)
        assert read(table) == merged(twin), f"after step {number} of {steps!r}"


def merged(table: Table) -> list[dict[str, Any]]:
    """Return the merged rows by key, without the row kind, which is not folded."""
    found = table.to_arrow([name for name in table.columns if name != "kind"]).sort_by("k")
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


OUT_OF_RANGE: Final[Mapping[str, Any]] = {
    "columns": [Column("k", "int"), Column("ts", "int"), Column("v", "int")],
    "primary_key": ["k"],
    "properties": SHAPES["sums"],
}


def out_of_range_and_repaired(table: Table) -> None:
    """Let the sum of a revived key leave INT, compact, and bring it back."""

    def put(ts: int, v: int) -> None:
        table.upsert(pa.table({"k": [1], "ts": pa.array([ts], pa.int32()), "v": pa.array([v], pa.int32())}))

    put(5, 10)
    table.delete("k = 1")
    put(5, 100)
    table.compact("full")
    put(6, 2**31 - 1)
    for _ in range(2):
        with refused("NUMERIC_VALUE_OUT_OF_RANGE", "'v'"):
            table.to_arrow()
        table.compact("full")
    put(7, -200)
    for _ in range(2):
        assert merged(table) == [{"k": 1, "ts": 7, "v": 2**31 - 101}]
        table.compact("full")
