"""Kinds of tables of merge engines, by number of the history: a rota over engines, delete modes and functions.

The first six histories whose tables have functions cover every function, the first twelve every engine and every way to
delete. Then lengths without a common divisor make a long run cover every pair.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from trinity.spi import EVERYTHING, Capability
from trinity_conformance.generate.profiles import choice_at
from trinity_conformance.model.engine_fold import FUNCTIONS
from trinity_conformance.playing.needs import with_types

ENGINE_KEYS: Final[tuple[tuple[str, ...], ...]] = (
    ("int",),
    ("string", "int"),
    ("bigint",),
    ("double", "int"),
    ("date", "string"),
)
"""Types of the primary key columns; the deduplicate histories test keys."""

_SEQUENCES: Final[tuple[tuple[tuple[str, ...], bool], ...]] = (
    ((), False),
    ((), False),
    (("bigint",), False),
    ((), False),
    (("int", "string"), False),
    ((), False),
    (("int",), True),
)
"""Types of sequence.field, and whether it descends."""

GROUPS: Final[tuple[tuple[tuple[str, ...], ...], ...]] = (
    (("bigint",), ("int", "string")),
    (("int",),),
    (("int", "date"), ("double",)),
    (("timestamp",), ("int",), ("decimal(10,2)",)),
    (("boolean", "int"),),
)
"""Types of the sequence columns of each group."""

FUNCTION_TYPES: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        FUNCTIONS, ("int", "string", "decimal(10,2)", "date", "boolean", "double", "timestamp", "array<int>")
    ),
    "sum": ("bigint", "decimal(10,2)", "double", "int", "float", "tinyint", "smallint"),
    "product": ("int", "decimal(10,2)", "bigint", "double"),
    **dict.fromkeys(("max", "min"), ("int", "string", "double", "date", "binary", "decimal(10,2)", "timestamp")),
    **dict.fromkeys(("bool_and", "bool_or"), ("boolean",)),
    "listagg": ("string",),
    "collect": ("array<int>", "array<string>"),
    "merge_map": ("map<string,int>",),
    "merge_map_with_keytime": ("map<string,struct<x:int,ts:string>>", "map<string,struct<ts:int,x:int>>"),
    **dict.fromkeys(("nested_update", "nested_partial_update"), ("array<struct<id:int,name:string,seq:int>>",)),
    **dict.fromkeys(("hll_sketch", "theta_sketch", "rbm32", "rbm64"), ("binary",)),
}
"""Function -> types of columns on which it is tested."""

LANES: Final[tuple[tuple[str, bool, str], ...]] = (
    ("partial-update", True, "sequence-group"),
    ("aggregation", False, "retract"),
    ("partial-update", True, "remove-record-on-sequence-group"),
    ("first-row", False, "ignore-delete"),
    ("aggregation", False, "remove-record-on-delete"),
    ("partial-update", False, "remove-record-on-delete"),
    ("partial-update", True, "none"),
    ("aggregation", False, "ignore-delete"),
    ("partial-update", True, "ignore-delete"),
    ("aggregation", False, "none"),
    ("partial-update", False, "none"),
    ("first-row", False, "none"),
    ("partial-update", True, "remove-record-on-sequence-group"),
)
"""Merge engine, whether it has sequence groups, and how it deletes."""

_FEATURES: Final = ("plain", "buckets", "wide", "default-function", "partitioned", "plain", "wide", "lookup")
"""Further features of the table. ``wide`` has values so large that totals leave the range of their column (A4); the
changes of ``lookup`` are written with each commit (C6).
"""

_WINDOW: Final = 6


@dataclass(frozen=True)
class EngineProfile:
    """The kind of a table.

    Attributes:
        engine: the merge engine.
        mode: how it deletes: ``none``, ``ignore-delete``, ``remove-record-on-delete``, ``sequence-group``,
            ``remove-record-on-sequence-group`` or ``retract``.
        key: types of the key columns.
        sequence: types of sequence.field.
        descending: True when the smallest is the freshest.
        groups: types of the sequence columns of each group.
        functions: aggregate functions, one column each.
        feature: one of the further features.
        capabilities: those that a table may need.
    """

    engine: str = "partial-update"
    mode: str = "none"
    key: tuple[str, ...] = ("int",)
    sequence: tuple[str, ...] = ()
    descending: bool = False
    groups: tuple[tuple[str, ...], ...] = ()
    functions: tuple[str, ...] = ()
    feature: str = "plain"
    capabilities: Collection[Capability] = EVERYTHING

    def types_of(self, function: str) -> Sequence[str]:
        """Return the types of columns on which a function is tested."""
        return with_types(FUNCTION_TYPES[function], lambda text: (text,), self.capabilities)


def engine_rota(number: int, capabilities: Collection[Capability] = EVERYTHING) -> EngineProfile:
    """Return the profile of history ``number`` (from 0), of an engine and with types that an adapter has."""
    lanes = [lane for lane in LANES if Capability(lane[0]) in capabilities] or LANES
    engine, grouped, mode = lane = choice_at(number, lanes)
    sequence, descending = choice_at(number, _SEQUENCES) if engine != "first-row" else ((), False)
    found = EngineProfile(
        engine,
        mode,
        choice_at(number, with_types(ENGINE_KEYS, tuple, capabilities)),
        sequence,
        descending,
        choice_at(number, with_types(GROUPS, chain.from_iterable, capabilities)) if grouped else (),
        feature=choice_at(number, _FEATURES),
        capabilities=capabilities,
    )
    return replace(found, functions=_functions(found, _tables_before(number, lanes))) if _folds(lane) else found


def _folds(lane: tuple[str, bool, str]) -> bool:
    """Return whether the tables of a lane have functions."""
    engine, grouped, _ = lane
    return grouped or engine == "aggregation"


def _tables_before(number: int, lanes: Sequence[tuple[str, bool, str]]) -> int:
    """Return the number of tables with functions before a history."""
    turns, lane = divmod(number, len(lanes))
    return turns * sum(map(_folds, lanes)) + sum(map(_folds, lanes[:lane]))


def _functions(profile: EngineProfile, before: int) -> tuple[str, ...]:
    """Return the next few functions, by the number of tables with functions so far."""
    names = [name for name in FUNCTIONS if profile.types_of(name)]
    window = tuple(names[(before * _WINDOW + i) % len(names)] for i in range(_WINDOW))
    return ("sum", *window) if profile.feature == "wide" and "sum" not in window else window
