"""Kinds of tables of merge engines, by number of the history: a rota over engines, delete modes and functions.

The first six histories whose tables have functions cover every function, the first twelve every engine and every way to
delete. Then lengths without a common divisor make a long run cover every pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from trinity_conformance.model.engine_fold import FUNCTIONS

__all__ = ["ENGINE_KEYS", "FUNCTION_TYPES", "GROUPS", "LANES", "EngineProfile", "engine_rota"]

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
_WITH_FUNCTIONS: Final = [n for n, (engine, groups, _) in enumerate(LANES) if groups or engine == "aggregation"]


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
    """

    engine: str = "partial-update"
    mode: str = "none"
    key: tuple[str, ...] = ("int",)
    sequence: tuple[str, ...] = ()
    descending: bool = False
    groups: tuple[tuple[str, ...], ...] = ()
    functions: tuple[str, ...] = ()
    feature: str = "plain"


def engine_rota(number: int) -> EngineProfile:
    """Return the profile of history ``number`` (from 0)."""
    lane = number % len(LANES)
    engine, grouped, mode = LANES[lane]
    sequence, descending = _SEQUENCES[number % len(_SEQUENCES)] if engine != "first-row" else ((), False)
    return EngineProfile(
        engine,
        mode,
        ENGINE_KEYS[number % len(ENGINE_KEYS)],
        sequence,
        descending,
        GROUPS[number % len(GROUPS)] if grouped else (),
        _functions(number) if lane in _WITH_FUNCTIONS else (),
        _FEATURES[number % len(_FEATURES)],
    )


def _functions(number: int) -> tuple[str, ...]:
    """Return the next few functions, by how many tables with functions came before."""
    turns, lane = divmod(number, len(LANES))
    before = turns * len(_WITH_FUNCTIONS) + sum(at < lane for at in _WITH_FUNCTIONS)
    names = tuple(FUNCTIONS)
    window = tuple(names[(before * _WINDOW + i) % len(names)] for i in range(_WINDOW))
    wide = _FEATURES[number % len(_FEATURES)] == "wide" and "sum" not in window
    return ("sum", *window) if wide else window
