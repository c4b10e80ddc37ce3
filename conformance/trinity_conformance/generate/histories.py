"""Hypothesis strategies: tables and histories. One example is a whole history over dozens of keys.

Values come from small pools, so that late rows, ties, NULLs, tombstones and revivals are the rule, not the exception.
Column ``v`` numbers the row versions: whichever version a reader returns, its ``v`` tells which one it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from random import Random
from typing import Final

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from trinity_conformance.generate.profiles import BUCKETS, FEATURES, KEYS, PRODUCERS, TOMBSTONES, WATERMARKS, Profile
from trinity_conformance.model.conditions import OPERATORS, Condition
from trinity_conformance.model.shapes import PRODUCER, Column, Shape
from trinity_conformance.model.values import POOLS, Json
from trinity_conformance.playing.names import WIDER
from trinity_conformance.playing.needs import with_types
from trinity_conformance.playing.traces import (
    Alter,
    Compact,
    Delete,
    History,
    Log,
    Query,
    Read,
    ReadPast,
    Reopen,
    Resolve,
    Step,
    Upsert,
    Vacuum,
)

GENERAL: Final[Mapping[str, int]] = {
    "upsert": 5, "delete": 2, "compact": 3, "resolve": 1, "vacuum": 1, "reopen": 1, "query": 2, "read-past": 3,
    "read": 1, "log": 1, "alter": 3,
}  # fmt: skip
"""The weight of each kind of step in the draw."""

_OF_ROUNDS: Final = {"compact": 5, "vacuum": 0, "alter": 1}
"""The weights for changes between full compactions; there is no vacuum, as it would remove the feed's beginning."""
_KEYS_AT_MOST: Final = 28
_PAYLOADS: Final = tuple(sorted(POOLS))
_COMPARABLE: Final = tuple(t for t in POOLS if not t.startswith(("char", "varchar")))
_SETTINGS: Final = settings(
    max_examples=4, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)


def profiles() -> st.SearchStrategy[Profile]:
    """Return a strategy for any kind of table."""
    return st.builds(
        Profile,
        key=st.sampled_from(KEYS),
        watermark=st.sampled_from(WATERMARKS),
        tombstone=st.sampled_from(TOMBSTONES),
        feature=st.sampled_from(FEATURES),
        producer=st.sampled_from(PRODUCERS),
    )


@st.composite
def shapes(draw: st.DrawFn, profile: Profile | None = None) -> Shape:
    """Draw a table of a profile, with columns in any order and payload of any type."""
    kind = profile or draw(profiles())
    key = [Column(f"k{i}", t, nullable=False) for i, t in enumerate(kind.key)]
    watermark = [Column(f"w{i}", t) for i, t in enumerate(kind.watermark)]
    marks = [Column("gone", kind.tombstone[0])] if kind.tombstone else []
    retracts = kind.feature in ("row-kind", "ignore-delete")
    kinds = [Column("kind", "string", nullable=False)] if retracts else []
    payloads = st.sampled_from(with_types(_PAYLOADS, lambda t: (t,), kind.capabilities))
    payload = [Column(f"p{i}", t) for i, t in enumerate(draw(st.lists(payloads, max_size=2)))]
    columns = [*key, Column("v", "bigint", nullable=False), *watermark, *marks, *kinds, *payload]
    return Shape(
        columns=tuple(draw(st.permutations(columns))),
        key=tuple(c.name for c in key),
        partition_by=_partition(kind) if kind.feature == "partitioned" else (),
        watermark=tuple(c.name for c in watermark),
        alias=bool(watermark) and kind.feature in ("alias", "descending"),
        descending=bool(watermark) and kind.feature == "descending",
        tombstone="gone" if kind.tombstone else None,
        tombstone_value=kind.tombstone[1] if kind.tombstone else None,
        row_kind="kind" if retracts else None,
        ignore_delete=kind.feature == "ignore-delete",
        properties=_properties(draw, kind),
    )


def _properties(draw: st.DrawFn, kind: Profile) -> dict[str, str]:
    found = {"bucket": draw(st.sampled_from(BUCKETS))} if kind.feature == "buckets" else {}
    return found if kind.producer == "none" else {**found, PRODUCER: kind.producer}


def _partition(kind: Profile) -> tuple[str, ...]:
    """Return the first key column of a type by which every format can partition."""
    usable = [f"k{i}" for i, t in enumerate(kind.key) if t not in ("float", "double", "binary")]
    return tuple(usable[:1])


class Writer:
    """A writer that draws the steps of one history."""

    def __init__(self, draw: st.DrawFn, shape: Shape) -> None:
        self.draw = draw
        self.shape = shape
        self.key_columns = [c for c in shape.columns if c.name in shape.key]
        self.row_parts = [self.part(c) for c in shape.columns if c.name not in (*shape.key, "v")]
        self.keys = st.sampled_from(self.key_pool())
        self.numbered = 0

    def key_pool(self) -> list[tuple[Json, ...]]:
        """Return key values in the order of the table's columns."""
        if [c.type for c in self.key_columns] == ["int"]:
            return [(n,) for n in (*POOLS["int"], *range(2, 7), *range(8, 20))]
        # A fixed shuffle: neighbours in the product share their first part.
        # Delta's partitions have no empty string.
        empty = [("",) if c.name in self.shape.partition_by else () for c in self.key_columns]
        pools = zip(self.key_columns, empty, strict=True)
        pool = list(product(*([v for v in POOLS[c.type] if v not in without] for c, without in pools)))
        Random(len(pool)).shuffle(pool)
        return pool[:_KEYS_AT_MOST]

    def part(self, column: Column) -> st.SearchStrategy[Json]:
        """Return a strategy for the values of a column outside the key."""
        if column.name == self.shape.row_kind:
            return st.sampled_from(("+I", "+I", "+U", "+I", "-D", "-U"))
        pool: tuple[Json, ...] = POOLS[column.type]
        if column.name == self.shape.tombstone:
            value = self.shape.tombstone_value
            marks = (None, False, True, None) if column.type == "boolean" else (None, None, None, pool[0])
            return st.sampled_from(marks if value is None else (None, "N", value, "N", value.lower()))
        return st.sampled_from((*pool, None))

    def row(self) -> tuple[Json, ...]:
        """Draw one row version, in table order."""
        key = dict(zip((c.name for c in self.key_columns), self.draw(self.keys), strict=True))
        parts = iter(self.draw(st.tuples(*self.row_parts)))
        self.numbered += 1
        return tuple(key[n] if n in key else self.numbered if n == "v" else next(parts) for n in self.shape.names)

    def split(self, most: int) -> tuple[tuple[Json, ...], ...]:
        """Draw at most ``most`` rows."""
        return tuple(self.row() for _ in range(self.draw(st.integers(0, most))))

    def upsert(self, most: int = 12) -> Upsert:
        """Draw a commit of one to three splits; its transaction may repeat an earlier one."""
        splits = tuple(self.split(most) for _ in range(self.draw(st.integers(1, 3))))
        if not any(splits):
            splits = ((self.row(),), *splits[1:])
        txn = self.draw(st.sampled_from((None, None, ("app", 1), ("app", 2), ("app", 3), ("other", 1))))
        return Upsert(splits, self.draw(st.sampled_from(("arrow", "spark"))), txn)

    def condition(self) -> Condition | None:
        """Draw a comparison on any column whose type SQL compares as the model does."""
        columns = [c for c in self.shape.columns if c.type in _COMPARABLE]
        column = self.draw(st.sampled_from(columns))
        pool = (1, 3, 10, 20) if column.name == "v" else POOLS[column.type]
        return Condition(
            column.name,
            self.draw(st.sampled_from((*OPERATORS, "IS NULL", "IS NOT NULL"))),
            self.draw(st.sampled_from(pool)),
        )

    def delete(self) -> Delete:
        """Draw a delete by keys or by condition."""
        if self.draw(st.booleans()):
            return Delete(keys=tuple(self.draw(st.lists(self.keys, min_size=1, max_size=5, unique=True))))
        return Delete(condition=self.condition())

    def alter(self) -> Alter:
        """Draw a change of columns."""
        kind = self.draw(st.sampled_from(("swap", "default", "blank", "widen", "move", "extra")))
        names = [n for n in self.shape.names if n not in self.shape.partition_by]
        if kind == "swap":
            # Iceberg names a partition after its column, and that name stays taken
            return Alter(kind, tuple(self.draw(st.permutations(names))[:2])) if len(names) > 1 else Alter("extra")
        if kind == "widen":
            names = [n for n in names if self.shape.type_of(n) in WIDER and n != self.shape.row_kind]
        elif kind in ("blank", "default"):
            names = [n for n in names if n.startswith("p")]
        elif kind == "extra":
            names = []
        return Alter(kind, (self.draw(st.sampled_from(names)),)) if names else Alter("extra")

    def step(self, op: str) -> Step:
        """Draw one step of a kind."""
        if op == "upsert":
            return self.upsert()
        if op == "delete":
            return self.delete()
        if op == "query":
            names = self.draw(st.lists(st.sampled_from(self.shape.names), min_size=1, max_size=3, unique=True))
            return Query(self.condition() or Condition("v", ">", 0), tuple(names))
        if op == "read-past":
            return ReadPast(self.draw(st.integers(1, 4)), self.draw(st.sampled_from(("version", "timestamp"))))
        if op == "compact":
            return Compact(self.draw(st.booleans()))
        if op == "alter":
            return self.alter()
        return {"resolve": Resolve, "vacuum": Vacuum, "reopen": Reopen, "read": Read, "log": Log}[op]()


@st.composite
def histories(
    draw: st.DrawFn,
    profile: Profile | None = None,
    emphasis: Mapping[str, int] = GENERAL,
    min_steps: int = 5,
    max_steps: int = 10,
) -> History:
    """Draw a history.

    Args:
        draw: given by Hypothesis.
        profile: the kind of table; any by default.
        emphasis: weights of the kinds of steps.
        min_steps: least number of steps after the first upsert.
        max_steps: greatest number of steps after the first upsert.
    """
    shape = draw(shapes(profile))
    writer = Writer(draw, shape)
    weights = {**emphasis, **_OF_ROUNDS} if shape.producer == "full-compaction" else emphasis
    weighted = [op for op, weight in weights.items() for _ in range(weight)]
    first: list[Step] = [writer.upsert(most=24)]
    if "log" in emphasis and draw(st.booleans()):
        first += [writer.upsert(), Log()]  # before the first compaction, where log() can be compared
    drawn = [
        writer.step(op) for op in draw(st.lists(st.sampled_from(weighted), min_size=min_steps, max_size=max_steps))
    ]
    return History(shape, (*first, *drawn))


def sample(strategy: st.SearchStrategy[History], number: int) -> History:
    """Return the history of a seed: the largest of a few that Hypothesis generates from it.

    It is stable as long as Hypothesis is. To keep a history across releases, keep its trace, not its number.
    """
    found: list[History] = []

    @seed(number)
    @_SETTINGS
    @given(strategy)
    def collect(history: History) -> None:
        found.append(history)

    collect()
    return max(found, key=lambda h: (len(h.steps), h.rows))
