"""Hypothesis strategies: tables of the merge engines and their histories, over few keys and many rows of each.

A table has what its profile says, with its columns in any order. These histories have no rows that the table must
refuse: a retract that a function cannot take back becomes an add.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Final

from hypothesis import strategies as st

from trinity_conformance.generate.engine_profiles import EngineProfile
from trinity_conformance.generate.engine_statements import EngineStatements
from trinity_conformance.generate.engine_values import WIDE_TOTALS, function_options, pool_of
from trinity_conformance.generate.histories import Writer
from trinity_conformance.generate.profiles import BUCKETS
from trinity_conformance.model.conditions import OPERATORS, Condition
from trinity_conformance.model.engine_model import EngineModel
from trinity_conformance.model.shapes import PRODUCER, Column, Group, Shape
from trinity_conformance.model.tables import Version
from trinity_conformance.model.values import POOLS, Json
from trinity_conformance.playing.coverage import RETRACTING
from trinity_conformance.playing.needs import with_types
from trinity_conformance.playing.traces import (
    Compact,
    Delete,
    History,
    Log,
    Query,
    Read,
    Reopen,
    Resolve,
    RowChangeStep,
    Step,
    Upsert,
)

ENGINE_GENERAL: Final[Mapping[str, int]] = {
    "upsert": 7, "delete": 1, "change": 4, "compact": 2, "resolve": 1, "vacuum": 1, "reopen": 1, "query": 2,
    "read-past": 1, "read": 1, "log": 1,
}  # fmt: skip
"""The weight of each kind of step in the draw."""

_RETRACTING_MODES: Final = ("sequence-group", "remove-record-on-sequence-group", "retract")
_PAYLOADS: Final = ("int", "string", "bigint", "boolean", "double", "decimal(10,2)")
_COMPARED: Final = ("int", "bigint", "string", "double", "decimal(10,2)", "date", "boolean", "timestamp")


@st.composite
def _engine_shapes(draw: st.DrawFn, profile: EngineProfile) -> Shape:
    """Draw a table of a profile."""
    key = [Column(f"k{i}", t, nullable=False) for i, t in enumerate(profile.key)]
    sequence = [Column(f"w{i}", t) for i, t in enumerate(profile.sequence)]
    functions = [Column(f"f{i}", draw(st.sampled_from(_types(profile, f)))) for i, f in enumerate(profile.functions)]
    parts = [[Column(f"s{i}{j}", t) for j, t in enumerate(types)] for i, types in enumerate(profile.groups)]
    payloads = st.sampled_from(with_types(_PAYLOADS, lambda t: (t,), profile.capabilities))
    plain = [Column(f"a{i}", draw(payloads)) for i in range(len(parts))]
    kinds = [Column("kind", "string", nullable=False)] if profile.mode != "none" else []
    payload = [Column(f"p{i}", t) for i, t in enumerate(draw(st.lists(payloads, min_size=1, max_size=2)))]
    # a function may leave NULL, so v may be NOT NULL only where it has none
    number = Column("v", "bigint", nullable=profile.engine == "aggregation")
    columns = [*key, number, *sequence, *functions, *(c for p in parts for c in p), *plain, *kinds, *payload]
    groups = tuple(
        Group(tuple(c.name for c in part), (plain[i].name, *(c.name for c in functions[i :: len(parts)])))
        for i, part in enumerate(parts)
    )
    return Shape(
        columns=tuple(draw(st.permutations(columns))),
        key=tuple(c.name for c in key),
        partition_by=("k1",) if profile.feature == "partitioned" and len(key) > 1 else (),
        watermark=tuple(c.name for c in sequence),
        alias=bool(sequence) and (profile.descending or draw(st.booleans())),
        descending=profile.descending,
        row_kind="kind" if kinds else None,
        ignore_delete=profile.mode == "ignore-delete",
        engine=profile.engine,
        groups=groups,
        functions=dict(zip((c.name for c in functions), profile.functions, strict=True)),
        default_function=draw(_default_function(profile)) if profile.feature == "default-function" else None,
        function_options=draw(_options(profile, functions)),
        remove_on_delete=profile.mode == "remove-record-on-delete",
        remove_on_groups=draw(_listed(groups)) if profile.mode == "remove-record-on-sequence-group" else (),
        properties=_properties(draw, profile),
    )


def _properties(draw: st.DrawFn, profile: EngineProfile) -> dict[str, str]:
    if profile.feature == "buckets":
        return {"bucket": draw(st.sampled_from(BUCKETS))}
    return {PRODUCER: "lookup"} if profile.feature == "lookup" else {}


def _types(profile: EngineProfile, function: str) -> Sequence[str]:
    """Return the types of a function's column."""
    found = profile.types_of(function)
    return [t for t in found if t in WIDE_TOTALS] if profile.feature == "wide" and function == "sum" else found


def _default_function(profile: EngineProfile) -> st.SearchStrategy[str | None]:
    """Return a strategy for ``fields.default-aggregate-function``, by the functions that A5 allows."""
    names = {"aggregation": ("last_value", "last_non_null_value"), "partial-update": ("last_non_null_value",)}
    return st.sampled_from(names.get(profile.engine, (None,)))


@st.composite
def _options(draw: st.DrawFn, profile: EngineProfile, columns: list[Column]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    # a function that refuses retracts keeps them from a whole aggregation table, and from its group
    strict = draw(st.sampled_from((*profile.functions, *([None] * 12)))) if profile.engine != "aggregation" else None
    for column, function in zip(columns, profile.functions, strict=True):
        options = draw(function_options(function, column.type))
        ignores = draw(st.integers(0, 4)) == 0 if function in RETRACTING else function != strict
        if profile.mode in _RETRACTING_MODES and ignores:
            options["ignore-retract"] = "true"
        found |= {column.name: options} if options else {}
    return found


@st.composite
def _listed(draw: st.DrawFn, groups: tuple[Group, ...]) -> tuple[str, ...]:
    """Draw sequence columns of one group, or of two."""
    chosen = groups[: draw(st.integers(1, 2))]
    return tuple(draw(st.sampled_from(g.sequence)) for g in chosen)


class EngineWriter(Writer):
    """A writer that draws the steps of one history, and applies them to a model."""

    keys_at_most = 5

    def __init__(self, draw: st.DrawFn, shape: Shape, wide: bool) -> None:
        self.wide = wide
        super().__init__(draw, shape)
        self.model = EngineModel(shape)

    def key_pool(self) -> list[tuple[Json, ...]]:
        pool = super().key_pool()
        Random(len(pool)).shuffle(pool)
        return pool[: self.keys_at_most]

    def part(self, column: Column) -> st.SearchStrategy[Json]:
        if column.name == self.shape.row_kind:
            return st.sampled_from(("+I", "+I", "+I", "+U", "-D", "-D", "-U"))
        pool = pool_of(self.shape, column.name, self.wide)
        return st.sampled_from((*pool, *pool, *pool, None, None)) if len(pool) < 4 else st.sampled_from((*pool, None))

    def row(self) -> tuple[Json, ...]:
        """Draw one row; an add where the table would refuse it as a retract."""
        row = super().row()
        if self.model.refusal(Version(self.shape.decode_row(row))) is None:
            return row
        return tuple("+I" if n == self.shape.row_kind else v for n, v in zip(self.shape.names, row, strict=True))

    def upsert(self, most: int = 16) -> Upsert:
        """Draw a commit; now and then one whose rows are adds that omit columns (P1)."""
        found = super().upsert(most)
        if self.shape.engine != "first-row" and self.draw(st.integers(0, 3)) == 0:
            found = self.narrowed(found)
        self.model.upsert(found.rows, found.txn, found.names)
        return found

    def narrowed(self, step: Upsert) -> Upsert:
        """Return the commit without some columns, and without retracts, whose meaning without them is open."""
        shape = self.shape
        kept = {c.name for c in shape.columns if not c.nullable or self.draw(st.integers(0, 3)) > 0}
        names = tuple(n for n in shape.names if n in kept)

        def cut(row: tuple[Json, ...]) -> tuple[Json, ...]:
            values = dict(zip(shape.names, row, strict=True))
            if shape.row_kind:
                values[shape.row_kind] = "+I"
            return tuple(values[n] for n in names)

        return replace(step, splits=tuple(tuple(map(cut, split)) for split in step.splits), names=names)

    def condition(self) -> Condition | None:
        """Draw a comparison on any column of a simple type; on a folded value it must not be pushed down (L9)."""
        column = self.draw(st.sampled_from([c for c in self.shape.columns if c.type in _COMPARED]))
        pool: tuple[Json, ...] = (
            POOLS[column.type] if column.name in self.shape.key else pool_of(self.shape, column.name)
        )
        if column.name == self.shape.row_kind:
            pool = ("+I", "-D")
        operator = self.draw(st.sampled_from((*OPERATORS, "IS NULL", "IS NOT NULL")))
        return Condition(column.name, operator, self.draw(st.sampled_from((1, 3, 10) if column.name == "v" else pool)))

    def step(self, op: str) -> Step:
        if op in ("delete", "change") and (self.shape.engine == "first-row" or self.model.overflows()):
            return Read()
        if op == "change":
            statement = EngineStatements(self.draw, self.model).statement()
            if statement is None:
                return Read()
            self.model.change(statement)
            return RowChangeStep(statement)
        found = super().step(op)
        if isinstance(found, Delete) and found.condition is not None:
            self.model.delete_where(found.condition)
        elif isinstance(found, Delete):
            self.model.delete_keys(self.model.key_form(key) for key in found.keys or ())
        return found


@st.composite
def engine_histories(
    draw: st.DrawFn,
    profile: EngineProfile,
    emphasis: Mapping[str, int] = ENGINE_GENERAL,
    min_steps: int = 5,
    max_steps: int = 9,
) -> History:
    """Draw a history of a table of a merge engine.

    Args:
        draw: given by Hypothesis.
        profile: the kind of table.
        emphasis: weights of the kinds of steps.
        min_steps: least number of steps after the first upserts.
        max_steps: greatest number of steps after the first upserts.
    """
    writer = EngineWriter(draw, draw(_engine_shapes(profile)), profile.feature == "wide")
    weighted = [op for op, weight in emphasis.items() for _ in range(weight)]
    first: list[Step] = [writer.upsert(most=28), writer.upsert()]
    if "log" in emphasis and draw(st.booleans()):
        first.append(Log())  # before the first compaction, where log() can be compared
    drawn = draw(st.lists(st.sampled_from(weighted), min_size=min_steps, max_size=max_steps))
    return History(writer.shape, (*first, *(writer.step(op) for op in drawn)))


def resplit(history: History, number: int) -> History:
    """Return a history with the same rows in other commits (L2): neighbouring upserts are joined, others are cut.

    Steps about versions and single commits (Vacuum, ReadPast, Log) are left out.
    """
    chance, steps = Random(number), list[Step]()
    for step in history.steps:
        last = steps[-1] if steps else None
        if isinstance(step, Upsert) and step.txn is None and len(step.rows) > 1 and chance.random() < 0.6:
            steps += _pieces(step, chance)
        elif isinstance(step, Upsert) and isinstance(last, Upsert) and _joinable(last, step):
            steps[-1] = replace(last, splits=(last.rows + step.rows,))
        elif isinstance(step, (Upsert, Delete, RowChangeStep, Compact, Resolve, Query, Read, Reopen)):
            steps.append(step)
    return replace(history, steps=tuple(steps))


def _joinable(one: Upsert, other: Upsert) -> bool:
    return one.txn is None and other.txn is None and one.names == other.names


def _pieces(step: Upsert, chance: Random) -> list[Step]:
    cuts = sorted({0, *(chance.randrange(1, len(step.rows)) for _ in range(2))})
    return [replace(step, splits=(step.rows[a:b],)) for a, b in pairwise((*cuts, len(step.rows)))]
