"""The histories that Paimon is tested with: those of the conformance suite, reduced to the features of 0.9.0.

Each is played three times: as it is, with all of its rows in one commit, and with its first rows only, so that keys
have one or two of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from tests.paimon.prediction import readable
from trinity_conformance.generate.engine_histories import engine_histories
from trinity_conformance.generate.engine_profiles import GROUPS, EngineProfile
from trinity_conformance.generate.histories import histories, sample
from trinity_conformance.generate.profiles import WATERMARKS, Profile
from trinity_conformance.model.engine_fold import FUNCTIONS
from trinity_conformance.model.shapes import DEDUPLICATE, Shape
from trinity_conformance.model.values import Json
from trinity_conformance.playing.coverage import RETRACTING
from trinity_conformance.playing.traces import Compact, History, Step, Upsert

NUMBERS: Final = range(22)
"""Numbers of the histories: each number always makes the same history."""

FUNCTIONS_OF_0_9: Final = tuple(
    f for f in FUNCTIONS if f not in ("merge_map_with_keytime", "nested_partial_update", "rbm64")
)
"""Functions of Trinity and Paimon 0.9: the first two left out are of later releases, ``rbm64`` has other bytes."""

_LANES: Final[tuple[tuple[str, bool, str], ...]] = (
    ("partial-update", True, "none"),
    ("aggregation", False, "none"),
    ("partial-update", True, "sequence-group"),
    ("aggregation", False, "retract"),
    (DEDUPLICATE, False, "row-kind"),
    ("partial-update", False, "remove-record-on-delete"),
    ("first-row", False, "none"),
    ("partial-update", False, "none"),
    ("partial-update", True, "ignore-delete"),
    (DEDUPLICATE, False, "ignore-delete"),
    ("first-row", False, "ignore-delete"),
)
"""(merge engine, whether it has sequence groups, how it deletes)."""
_KEYS: Final = (("int",), ("string", "int"), ("bigint",), ("date", "string"))
_SEQUENCES: Final = ((), ("bigint",), (), ("int", "string"), ())
_WINDOW: Final = 9
_STRIDE: Final = 5
_FEW: Final = 3
_FIRST_DAY: Final = "1582-10-15"
_STEPS: Final[Mapping[str, int]] = {"upsert": 5, "compact": 2}
_OPTIONS: Final = ("ignore-retract", "distinct", "nested-key", "list-agg-delimiter")
"""Options of functions in 0.9.0; ``distinct`` only for collect."""


def chosen() -> Iterator[tuple[str, History]]:
    """Yield (name of a table, its history)."""
    for number in NUMBERS:
        history = _history(number)
        yield f"h{number}", readable(history)
        yield f"h{number}_whole", readable(_whole(history))
        yield f"h{number}_brief", readable(_brief(history))


def _history(number: int) -> History:
    engine, grouped, mode = _LANES[number % len(_LANES)]
    turn = number // len(_LANES)
    key = _KEYS[number % len(_KEYS)]
    if engine == DEDUPLICATE:
        watermark = WATERMARKS[number % len(WATERMARKS)]
        history = sample(histories(Profile(key, watermark, None, mode), _STEPS, 4, 6), number)
    else:
        with_functions = grouped or engine == "aggregation"
        sequence = _SEQUENCES[number % len(_SEQUENCES)] if engine != "first-row" else ()
        profile = EngineProfile(
            engine,
            mode,
            key,
            sequence,
            groups=GROUPS[turn % len(GROUPS)] if grouped else (),
            functions=_functions(number) if with_functions else (),
            feature="default-function" if engine == "aggregation" and turn % 2 else "plain",
        )
        history = sample(engine_histories(profile, _STEPS, 4, 6), number)
    return _known_to_paimon(history)


def _functions(number: int) -> tuple[str, ...]:
    return tuple(FUNCTIONS_OF_0_9[(number * _STRIDE + i) % len(FUNCTIONS_OF_0_9)] for i in range(_WINDOW))


def _known_to_paimon(history: History) -> History:
    """Return the history without the features that Paimon 0.9.0 lacks or cannot read."""
    shape = history.shape
    options = {c: _options(shape, c) for c in shape.functions}
    known = replace(
        shape, alias=bool(shape.watermark), function_options={c: o for c, o in options.items() if o}, properties={}
    )
    steps = [_adapted(known, step) for step in history.steps if isinstance(step, (Upsert, Compact))]
    return History(known, tuple(steps))


def _options(shape: Shape, column: str) -> dict[str, str]:
    function = shape.functions[column]
    found = {o: v for o, v in shape.function_options.get(column, {}).items() if o in _OPTIONS}
    if function == "listagg":
        found.pop("distinct", None)
    # 10.00 / 3.00 raises an ArithmeticException there; a retracted NULL of a collect or a map fails, too
    strict = function in ("collect", "merge_map") or (function == "product" and "decimal" in shape.type_of(column))
    if shape.row_kind and not shape.ignore_delete and (strict or function not in RETRACTING):
        found["ignore-retract"] = "true"
    return found


def _adapted(shape: Shape, step: Upsert | Compact) -> Step:
    if isinstance(step, Compact):
        return Compact(full=True)
    names = step.names or shape.names
    rows = tuple(tuple(_value(shape, n, v) for n, v in zip(names, row, strict=True)) for row in step.rows)
    if shape.remove_on_delete:  # Paimon cannot fold rows after a -D, so there are few of them
        kind = names.index(shape.row_kind or "")
        rows = tuple((*r[:kind], r[kind] if n % 8 == 0 else "+I", *r[kind + 1 :]) for n, r in enumerate(rows))
    return Upsert((rows,), names=step.names)


def _value(shape: Shape, name: str, value: Json) -> Json:
    """Return a value without NULL rows of nested tables, which Paimon reads as rows of NULLs, and Julian dates."""
    if shape.type_of(name).startswith("array<struct") and isinstance(value, tuple):
        return tuple(row for row in value if row is not None)
    if shape.type_of(name) == "date" and isinstance(value, str):
        return max(value, _FIRST_DAY)
    return value


def _whole(history: History) -> History:
    """Return the history with all rows in one commit; columns that a row omits are NULL."""
    return replace(history, steps=(Upsert((_rows(history),)),))


def _brief(history: History) -> History:
    """Return the first rows of the history, in three commits."""
    rows = _rows(history)
    return replace(history, steps=tuple(Upsert((rows[at : at + _FEW],)) for at in range(0, 3 * _FEW, _FEW)))


def _rows(history: History) -> tuple[tuple[Json, ...], ...]:
    names = history.shape.names

    def padded(step: Upsert, row: tuple[Json, ...]) -> tuple[Json, ...]:
        given = dict(zip(step.names or names, row, strict=True))
        return tuple(given.get(n) for n in names)

    return tuple(padded(step, row) for step in history.steps if isinstance(step, Upsert) for row in step.rows)
