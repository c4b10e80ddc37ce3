"""The suite's own failure, and the row diff that it shows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trinity_conformance.model import Key, Model, Row
from trinity_conformance.traces import History
from trinity_conformance.values import encode, equal_form

__all__ = ["NonConformance", "compare"]

_SHOWN_AT_MOST = 5


class NonConformance(Exception):
    """An adapter did what the rules do not allow.

    Attributes:
        check: id of the check that it fails.
        message: what was expected and what happened, with a row diff where there is one.
        keys: keys of the rows that differ; empty where none do.
        history: the trace, once it is known.
        step: number of the step after which it was seen; -1 outside of histories.
    """

    def __init__(self, check: str, message: str, keys: Iterable[Key] = ()) -> None:
        super().__init__(message)
        self.check = check
        self.message = message
        self.keys = frozenset(keys)
        self.history: History | None = None
        self.step = -1

    def __str__(self) -> str:
        return f"{self.check}: {self.message}"

    def report(self) -> str:
        """Everything a person needs: message, the trace's steps, and how to run it again."""
        if self.history is None:
            return str(self)
        where = f"step {self.step}" if 0 <= self.step < len(self.history.steps) else "the end"
        return (
            f"{self.check}, seen at {where} of history {self.history.id}:\n{self.message}\n\n"
            f"{self.history.table()}\n\nreplay: trinity-conformance replay {self.history.id}"
        )


def compare(
    model: Model, expected: Mapping[Key, Row], found: Sequence[Row], columns: Sequence[str] | None = None
) -> tuple[str, frozenset[Key]] | None:
    """Compares a read with the model; None when they are equal as bags of rows.

    Args:
        model: gives types and keys.
        expected: the rows by key.
        found: the rows that the adapter returned.
        columns: the columns compared; all by default. Without all key columns differences are shown by row.

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


def _form(model: Model, row: Row, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(equal_form(model.shape.type_of(n), row[n]) for n in names)


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
    lines += [f"    expected {_shown(model, row, names)}" for row in wanted] or ["    expected no row"]
    lines += [f"    read     {_shown(model, row, names)}" for row in read] or ["    read     no row"]
    for number, commit in enumerate(model.commits):
        for version in commit:
            if model.key_of(version.row) == key:
                mark = " deleted by the writer" if version.deleted else ""
                lines.append(f"      commit {number}: {_shown(model, version.row, model.shape.names)}{mark}")
    return lines


def _shown(model: Model, row: Row, names: Sequence[str]) -> str:
    return ", ".join(f"{n}={encode(model.shape.type_of(n), row[n])!r}" for n in names)
