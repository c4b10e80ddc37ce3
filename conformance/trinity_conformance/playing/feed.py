"""Checks the change feed of a played history: it must show what its producer promises, and no more (C1-C4, C6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from trinity_conformance.model.tables import Changed, Key, Model, Row
from trinity_conformance.playing.differences import NonConformance, cell_form, compare
from trinity_conformance.playing.past import Past

_TAKES = frozenset({"delete", "update_preimage"})
_GIVES = frozenset({"insert", "update_postimage"})

Known = Sequence[tuple[Any, int]]
"""(version, number of the model's commits), by version; the first is the feed's start, exclusive."""


@dataclass(frozen=True)
class Played:
    """A history that was played.

    Attributes:
        model: the table.
        past: its versions.
        cuts: (number of the model's commits, whether it was a full one) for each compaction.
        altered_at: number of the model's commits at the last change of columns; -1 without any.
    """

    model: Model
    past: Past
    cuts: Sequence[tuple[int, bool]]
    altered_at: int


def check_feed(played: Played, ask: Callable[[Any], list[Changed]]) -> list[str]:
    """Compare the feed from the oldest version from which on it is known.

    Args:
        played: the history.
        ask: returns the feed after a version.

    Returns:
        the situations that were seen; none if nothing can be compared.

    Raises:
        NonConformance: for a wrong or a missing change.
    """
    model, producer = played.model, played.model.shape.producer
    if producer == "full-compaction":
        if played.past.vacuumed or model.blanked:  # the beginning of a round may be gone, or a column of its rows
            return []
        _check_rounds(played, ask(played.past.listed()[0][0]))
        return ["changes", "changes of full-compaction", *(["changes-over-compaction"] if played.cuts else [])]
    listed = {version for version, _ in played.past.listed()}
    known = [(v, n) for v, n in played.past.versions if n > played.altered_at and v in listed]
    start = known[0][1] if known else 0
    if len(known) < 2 or any(model.overflows(commits=n) for n in range(start, len(model.commits) + 1)):
        return []
    feed = ask(known[0][0])
    if producer == "input":
        _check_rows_as_they_came(model, start, feed)
    else:
        _check_changes(model, known, feed)
    over = any(commits >= start for commits, _ in played.cuts)
    situations = ["changes", *(["changes-over-compaction"] if over else [])]
    return situations if producer == "none" else [*situations, f"changes of {producer}"]


def _check_changes(model: Model, known: Known, feed: Sequence[Changed]) -> None:
    """Apply a feed to the rows of its first version, and compare the rows at every known version."""
    start, commits = known[0]
    rows = model.merged(commits)
    expected = dict(known[1:])
    changes = _by_version(feed)
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


def _check_rows_as_they_came(model: Model, start: int, feed: Sequence[Changed]) -> None:
    """Compare the rows of each commit with the rows that the writer passed (C6)."""
    wanted, found = (list(_by_version(changes).items()) for changes in (model.arrivals_after(start), feed))
    if len(wanted) != len(found):
        raise NonConformance("changes", f"{len(found)} commits show rows as they came, of {len(wanted)} (C6)")
    for (number, came), (version, shown) in zip(wanted, found, strict=True):
        if _bag(model, came) != _bag(model, shown):
            text = f"commit {number}, version {version}, shows {shown}, and these came: {came} (C6)"
            raise NonConformance("changes", text, [model.key_of(c.row) for c in came])


def _bag(model: Model, changes: Sequence[Changed]) -> Counter[Any]:
    """Return a bag of changes; deletes count by key only, as the adapter chooses the rest of a tombstone."""
    return Counter((c.kind, model.key_of(c.row), None if c.kind == "delete" else _form(model, c.row)) for c in changes)


def _check_rounds(played: Played, feed: Sequence[Changed]) -> None:
    """Compare each version's changes with those between two compactions.

    Every full compaction ends a round. Another compaction may end one, if it becomes a full one.
    """
    model, start, rest = played.model, 0, list(played.cuts)
    for version, found in _by_version(feed).items():
        end = _end_of_round(model, start, rest, found)
        if end is None:
            text = f"version {version} shows {found}, which is no round after commit {start}, compactions at {rest}"
            raise NonConformance("changes", f"{text} (C6)", [model.key_of(c.row) for c in found])
        start, rest = rest[end][0], rest[end + 1 :]
    for commits, full in rest:
        if full and (missing := model.between(start, commits, None)):
            text = f"the full compaction after commit {commits} shows nothing, and these changed: {missing} (C6)"
            raise NonConformance("changes", text, [model.key_of(c.row) for c in missing])


def _end_of_round(model: Model, start: int, cuts: Sequence[tuple[int, bool]], found: list[Changed]) -> int | None:
    """Return the place in ``cuts`` of the compaction at which the changes in ``found`` end; None if none fits."""
    shown = Counter((c.kind, _form(model, c.row)) for c in found)
    for place, (commits, full) in enumerate(cuts):
        wanted = Counter((c.kind, _form(model, c.row)) for c in model.between(start, commits, None))
        if wanted and wanted == shown:
            return place
        if wanted and full:
            return None
    return None


def _by_version(feed: Sequence[Changed]) -> dict[Any, list[Changed]]:
    return {version: list(found) for version, found in groupby(sorted(feed, key=_version), key=_version)}


def _version(change: Changed) -> Any:
    return change.version


def _applied(model: Model, rows: dict[Key, Row], changes: Sequence[Changed]) -> dict[Key, Row]:
    """Return the rows after the changes of one version, and check each change (C1, C4)."""
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
