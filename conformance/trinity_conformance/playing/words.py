"""A history in words: the table's DDL, and a numbered line for each step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from trinity_conformance.model.shapes import Shape
from trinity_conformance.model.values import Json
from trinity_conformance.playing.cases import Case
from trinity_conformance.playing.races import Race
from trinity_conformance.playing.traces import (
    FAULTS,
    Alter,
    Compact,
    Delete,
    Fault,
    Log,
    Other,
    Query,
    Read,
    ReadPast,
    Reopen,
    Resolve,
    RowChangeStep,
    Step,
    Trace,
    Upsert,
    Vacuum,
)

_LONG: Final = 16
"""Maximum characters of a value that are shown, unless ``whole`` is set."""
_MANY: Final = 4
"""Maximum number of rows of a split that are shown, unless ``whole`` is set."""
_EXECUTORS: Final = {"spark": "Spark", "local": "this process"}


def story(trace: Trace, *, whole: bool = False) -> str:
    """Return the DDL and the numbered steps of a history, a case or a race.

    Args:
        trace: the history, the case or the race.
        whole: show every row and every character of a value.
    """
    if isinstance(trace, (Case, Race)):
        return trace.story
    executors = list(dict.fromkeys(step.executor for step in trace.steps))
    lines = [trace.shape.ddl("t")]
    for number, step in enumerate(trace.steps):
        by = f"[{_EXECUTORS[step.executor]}] " if len(executors) > 1 else ""
        lines.append(f"{number:>3}  {by}{in_words(step, trace.shape, whole=whole)}")
    if len(executors) == 1:
        lines.append(f"     All steps are executed by {_EXECUTORS[executors[0]]}.")
    return "\n".join(lines)


def in_words(step: Step, shape: Shape, *, whole: bool = False) -> str:
    """Return one line for a step; arguments as for :func:`story`."""
    text = _WORDS[type(step)](step, shape, whole)
    return text if step.fault is None else f"{text}; {_fault(step.fault)}"


def _fault(fault: Fault) -> str:
    """Return what goes wrong, in words."""
    return f"fault {fault.kind!r} ({FAULTS[fault.kind]}), at number {fault.at} of the operations that it can happen to"


def _upsert(step: Upsert, shape: Shape, whole: bool) -> str:
    splits = " | ".join(_rows(split, whole) for split in step.splits)
    names = ", ".join(step.names or shape.names)
    data = "a Spark DataFrame" if step.path == "spark" else "Arrow data"
    parts = f" in {len(step.splits)} partitions" if len(step.splits) > 1 else ""
    txn = f" as transaction {step.txn[1]} of {step.txn[0]!r}" if step.txn else ""
    verb = "upsert" if shape.key else "append"
    return f"{verb} {_count(len(step.rows), 'row')} of {data}{parts}{txn}, ({names}): {splits}"


def _delete(step: Delete, shape: Shape, whole: bool) -> str:
    if step.condition is not None:
        return f"delete the rows WHERE {step.condition.sql(shape)}"
    return f"delete the keys {_rows(step.keys or (), whole)}"


def _compact(step: Compact, shape: Shape, whole: bool) -> str:
    return "compact the table into its base" if step.full else "compact the log into one run"


def _query(step: Query, shape: Shape, whole: bool) -> str:
    return f"read {', '.join(step.columns)} WHERE {step.condition.sql(shape)}"


def _read_past(step: ReadPast, shape: Shape, whole: bool) -> str:
    by = "its number" if step.by == "version" else "its time"
    return f"read, by {by}, the table as it was {_count(step.back, 'version')} before the newest"


def _change(step: RowChangeStep, shape: Shape, whole: bool) -> str:
    return step.statement.sql("t", shape)


def _alter(step: Alter, shape: Shape, whole: bool) -> str:
    names = " and ".join(step.columns)
    return {
        "swap": f"exchange the names of {names}",
        "move": f"move column {names} to the front",
        "widen": f"give column {names} a wider type",
        "extra": "add a column that holds nothing, or drop it again",
        "blank": f"drop column {names}, and add another one of its name",
        "default": f"add a column with a DEFAULT in the place of column {names}",
    }[step.kind]


def _other(step: Other, shape: Shape, whole: bool) -> str:
    return f"another engine (way {step.how}): {in_words(step.step, shape, whole=whole)}"


def _always(text: str) -> Callable[[Step, Shape, bool], str]:
    return lambda step, shape, whole: text


_WORDS: Final[Mapping[type[Step], Callable[[Any, Shape, bool], str]]] = {
    Upsert: _upsert,
    Delete: _delete,
    Compact: _compact,
    Resolve: _always("resolve: delete rows by position"),
    Vacuum: _always("vacuum, and keep no earlier version"),
    Reopen: _always("close the session, and open another one"),
    Read: _always("read the table"),
    Query: _query,
    ReadPast: _read_past,
    Log: _always("read the log"),
    RowChangeStep: _change,
    Alter: _alter,
    Other: _other,
}


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _rows(rows: Sequence[Iterable[Json]], whole: bool) -> str:
    shown = rows if whole else rows[:_MANY]
    texts = ["(" + ", ".join(_value(value, whole) for value in row) + ")" for row in shown]
    return " ".join([*texts, *(["..."] if len(shown) < len(rows) else [])]) or "none"


def _value(value: Json, whole: bool) -> str:
    text = "NULL" if value is None else str(value)
    return text if whole or len(text) <= _LONG else text[: _LONG - 3] + "..."
