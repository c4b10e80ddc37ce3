"""The suite's own failure, and the row diff in its message."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trinity_conformance.model.shapes import Shape
from trinity_conformance.model.sketches import SKETCH_FORMS
from trinity_conformance.model.tables import Key, Model, Row, Version
from trinity_conformance.model.values import Value, encode, equal_form, order_form
from trinity_conformance.playing.cases import Case
from trinity_conformance.playing.races import Race
from trinity_conformance.playing.traces import History, Trace
from trinity_conformance.playing.words import story

_SHOWN_AT_MOST = 5
_TINY = 1e-9


class NonConformance(Exception):
    """An adapter did what the rules do not allow.

    Attributes:
        check: id of the check that it fails.
        message: the expected and the actual result, with a diff if rows differ.
        keys: keys of the rows that differ; empty if none do.
        history: the history in which it was seen, once it is known.
        case: the case written by hand in which it was seen, once it is known.
        race: the race in which it was seen, once it is known.
        step: number of the step after which it was seen; -1 outside histories.
    """

    def __init__(self, check: str, message: str, keys: Iterable[Key] = ()) -> None:
        super().__init__(message)
        self.check = check
        self.message = message
        self.keys = frozenset(keys)
        self.history: History | None = None
        self.case: Case | None = None
        self.race: Race | None = None
        self.step = -1

    def __str__(self) -> str:
        return f"{self.check}: {self.message}"

    @property
    def trace(self) -> Trace | None:
        """The history, case or race to replay; None without one."""
        return self.history or self.case or self.race

    def report(self, *, whole: bool = False, adapter: str = "") -> str:
        """Return a report to read: the message, the trace's steps, and the command that replays it.

        Args:
            whole: show every row and every character of the steps.
            adapter: the adapter in the line that runs it again; all adapters by default.
        """
        trace = self.trace
        if trace is None:
            return str(self)
        where = f"step {self.step}" if 0 <= self.step < len(trace.steps) else "the end"
        return (
            f"{self.check}, seen at {where} of {trace.id}:\n{self.message}\n\n"
            f"{story(trace, whole=whole)}\n\nreplay: {again(trace.id, adapter)}"
        )


def again(trace: str, adapter: str = "") -> str:
    """Return the command that plays a trace again."""
    return f"trinity-conformance replay {trace}{f' --format {adapter}' if adapter else ''}"


def compare(
    model: Model, expected: Mapping[Key, Row], found: Sequence[Row], columns: Sequence[str] | None = None
) -> tuple[str, frozenset[Key]] | None:
    """Compare a read with the model; return None when they are equal as bags of rows.

    Args:
        model: gives types and keys.
        expected: the rows by key.
        found: the rows that the adapter returned.
        columns: the columns to compare; all by default. Without all key columns, differences are shown by row.

    Returns:
        a readable diff, and the keys that differ.
    """
    names = tuple(columns or model.shape.names)
    if found and set(found[0]) != set(names):
        return f"columns {sorted(found[0])} instead of {sorted(names)}", frozenset()
    wanted = Counter(_form(model, row, names) for row in expected.values())
    got = Counter(_form(model, row, names) for row in found)
    if wanted == got:
        return None
    if not model.shape.key or not set(model.shape.key) <= set(names):
        return _by_row(wanted, got, names), frozenset()
    return _by_key(model, expected, found, names)


def compare_arrivals(model: Model, found: Sequence[Sequence[Row]]) -> str | None:
    """Compare the row versions of ``log()``, by commit, with all arrivals; return None when they are equal."""
    wanted = [commit for commit in model.arrived() if commit]
    if [len(c) for c in found] != [len(c) for c in wanted]:
        return f"log() has commits of {[len(c) for c in found]} rows, not {[len(c) for c in wanted]}"
    for number, (got, commit) in enumerate(zip(found, wanted, strict=True)):
        if not _same_commit(model, got, commit):
            return f"commit {number} of log() differs:\n  wanted {[v.row for v in commit]}\n  found  {got}"
    return None


def _same_commit(model: Model, got: Sequence[Row], commit: Sequence[Version]) -> bool:
    """Compare row by row; for a delete or an UPDATE only the keys, as the adapter chooses how to mark these."""
    if any(v.deleted or v.assigned for v in commit):
        return Counter(map(model.key_of, got)) == Counter(model.key_of(v.row) for v in commit)

    def partition_of(row: Row) -> tuple[Any, ...]:
        return tuple(order_form(model.shape.type_of(n), row[n]) for n in model.shape.partition_by)

    # a commit has no order between partitions, and needs none: a key lies within one (K5)
    rows = zip(sorted(got, key=partition_of), sorted((v.row for v in commit), key=partition_of), strict=True)
    columns = [(c.name, c.type) for c in model.shape.columns]
    return all(equal_form(t, g[n]) == equal_form(t, w[n]) for g, w in rows for n, t in columns)


def _form(model: Model, row: Row, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(cell_form(model.shape, n, row[n]) for n in names)


def cell_form(shape: Shape, name: str, value: Value) -> Any:
    """Return the form in which values of a column are compared, by its type and by what its function promises."""
    function, kind = shape.function_of(name), shape.type_of(name)
    if value is None:
        return None
    if function is not None and function in SKETCH_FORMS:
        return _sketch(function, bytes(value))
    if function == "merge_map_with_keytime":  # the only function that promises no order of keys
        return frozenset(equal_form(kind, value))
    return _rounded(equal_form(kind, value)) if _is_total(shape, name) else equal_form(kind, value)


def _is_total(shape: Shape, name: str) -> bool:
    return shape.function_of(name) in ("sum", "product") and shape.type_of(name) in ("float", "double")


def with_rounded_totals(shape: Shape, row: Row) -> Row:
    """Return a row with nine digits of its floating-point totals: the executors add in orders of their own (L1)."""
    return {n: _rounded(v) if v is not None and _is_total(shape, n) else v for n, v in row.items()}


def _sketch(function: str, data: bytes) -> Any:
    """Return the value of a sketch or bitmap; its bytes if these are invalid."""
    try:
        return SKETCH_FORMS[function](data)
    except (ValueError, IndexError):
        return data


def _rounded(value: Any) -> Any:
    """Return a floating-point total with nine digits: no order of additions is promised (L2)."""
    if value == "NaN" or not math.isfinite(value):
        return value
    return 0.0 if abs(value) < _TINY else float(f"{value:.9g}")


def _by_row(wanted: Counter[Any], got: Counter[Any], names: Sequence[str]) -> str:
    lines = [f"rows of ({', '.join(names)}) differ:"]
    lines += [f"  missing    {row} x{count}" for row, count in list((wanted - got).items())[:_SHOWN_AT_MOST]]
    lines += [f"  unexpected {row} x{count}" for row, count in list((got - wanted).items())[:_SHOWN_AT_MOST]]
    return "\n".join(lines)


def _by_key(
    model: Model, expected: Mapping[Key, Row], found: Sequence[Row], names: Sequence[str]
) -> tuple[str, frozenset[Key]]:
    read: dict[Key, list[Row]] = defaultdict(list)
    for row in found:
        read[model.key_of(row)].append(row)
    bad = [
        key
        for key in dict.fromkeys((*expected, *read))
        if [_form(model, r, names) for r in read[key]] != [_form(model, r, names) for r in _listed(expected, key)]
    ]
    lines = [f"{len(bad)} of {len(expected)} keys differ:"]
    for key in bad[:_SHOWN_AT_MOST]:
        lines += _explain(model, key, _listed(expected, key), read[key], names)
    if len(bad) > _SHOWN_AT_MOST:
        lines.append(f"  ... and {len(bad) - _SHOWN_AT_MOST} more")
    return "\n".join(lines), frozenset(bad)


def _listed(rows: Mapping[Key, Row], key: Key) -> list[Row]:
    return [rows[key]] if key in rows else []


def _explain(model: Model, key: Key, wanted: list[Row], read: list[Row], names: Sequence[str]) -> list[str]:
    lines = [f"  key {key}"]
    lines += [f"    expected {_row_text(model, row, names)}" for row in wanted] or ["    expected no row"]
    lines += [f"    read     {_row_text(model, row, names)}" for row in read] or ["    read     no row"]
    for number, commit in enumerate(model.commits):
        for version in commit:
            if model.key_of(version.row) == key:
                mark = " deleted" if version.deleted else " assigned" if version.assigned else ""
                if version.named is not None:
                    mark += f", names {sorted(version.named)}"
                lines.append(f"      commit {number}: {_row_text(model, version.row, model.shape.names)}{mark}")
    return lines


def _row_text(model: Model, row: Row, names: Sequence[str]) -> str:
    return ", ".join(f"{n}={encode(model.shape.type_of(n), row[n])!r}" for n in names)
