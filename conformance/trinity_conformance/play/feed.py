"""The change feed of a played history: change by change it must lead from one read to the next (C1-C4)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from trinity_conformance.model.tables import Changed, Key, Model, Row
from trinity_conformance.play.differences import NonConformance, cell_form, compare

__all__ = ["check_feed"]

_TAKES = frozenset({"delete", "update_preimage"})
_GIVES = frozenset({"insert", "update_postimage"})


def check_feed(model: Model, known: Sequence[tuple[Any, int]], feed: Sequence[Changed]) -> None:
    """Applies a feed to the rows of its first version, and compares the rows wherever they are known.

    Args:
        model: the table.
        known: (version, number of the model's commits), by version; the first is the feed's start, exclusive.
        feed: its changes.

    Raises:
        NonConformance: a change that is none, or rows that are not those of a version.
    """
    start, commits = known[0]
    rows = model.merged(commits)
    expected = dict(known[1:])
    changes = {version: list(found) for version, found in groupby(sorted(feed, key=_version), key=_version)}
    for version in sorted({*expected, *changes}):
        if version <= start:
            raise NonConformance("changes", f"the feed after version {start} has changes of version {version}")
        rows = _applied(model, rows, changes.get(version, []))
        if version not in expected:
            continue
        difference = compare(model, model.merged(expected[version]), list(rows.values()))
        if difference is not None:
            text = f"the read of version {start} and the changes up to version {version} (C2): {difference[0]}"
            raise NonConformance("changes", text, difference[1])
    difference = compare(model, model.merged(), list(rows.values()))
    if difference is not None:
        text = f"the read of version {start} and all changes since (C2): {difference[0]}"
        raise NonConformance("changes", text, difference[1])


def _version(change: Changed) -> Any:
    return change.version


def _applied(model: Model, rows: dict[Key, Row], changes: Sequence[Changed]) -> dict[Key, Row]:
    """The rows after the changes of one version, each of which must be one (C1, C4)."""
    taken = _by_key(model, [c for c in changes if c.kind in _TAKES])
    given = _by_key(model, [c for c in changes if c.kind in _GIVES])
    for key in taken.keys() | given.keys():
        before, after = taken.get(key), given.get(key)
        wanted = "insert" if before is None else "delete" if after is None else "update"
        kinds = {c.kind.partition("_")[0] for c in (before, after) if c}
        if kinds != {wanted} or len(taken) + len(given) != len(changes):
            raise NonConformance("changes", f"{key} has changes {changes} in one version (C1)", [key])
        was = rows.get(key)
        if (was is None) != (before is None) or (was and before and _form(model, was) != _form(model, before.row)):
            raise NonConformance("changes", f"{key} was {was} before {before or after} (C1)", [key])
        if before and after and before.row == after.row:
            raise NonConformance("changes", f"{before} and its other half are the same (C1)", [key])
    kept = {key: row for key, row in rows.items() if key not in taken}
    return {**kept, **{key: change.row for key, change in given.items()}}


def _by_key(model: Model, changes: Sequence[Changed]) -> dict[Key, Changed]:
    return {model.key_of(change.row): change for change in changes}


def _form(model: Model, row: Row) -> tuple[Any, ...]:
    return tuple(cell_form(model.shape, name, row[name]) for name in model.shape.names)
