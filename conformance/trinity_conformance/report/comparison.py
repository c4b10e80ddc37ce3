"""What changed between two runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trinity_conformance.report.results import Outcome, Results

_RANKS: Final = {
    "failed": 0,
    "known gap": 0,
    "blocked": 0,
    "inconclusive": 1,
    "left out": 1,
    "not supported": 1,
    "not played": 1,
    "passed": 2,
}
"""Status -> the rank of what it proves for the adapter."""


def regressions(before: Results, after: Results) -> list[str]:
    """Return a line for each check that proved more before than after."""
    return [f"{o.id}: {was}, now {now}" for o, was, now in _changed(before, after) if _rank(now) < _rank(was)]


def changes(before: Results, after: Results) -> list[str]:
    """Return a line for each other difference: statuses, versions, and how the runs were made."""
    lines = [f"{o.id}: {was}, now {now}" for o, was, now in _changed(before, after) if _rank(now) >= _rank(was)]
    for name in ("connector", "budget", "seed", "spark"):
        was, now = getattr(before, name), getattr(after, name)
        lines += [f"{name}: {was}, now {now}"] if was != now else []
    for name in dict.fromkeys((*before.versions, *after.versions)):
        was, now = before.versions.get(name, "none"), after.versions.get(name, "none")
        lines += [f"version of {name}: {was}, now {now}"] if was != now else []
    lines.append(f"seconds: {before.seconds}, now {after.seconds}")
    return lines


def _changed(before: Results, after: Results) -> Iterator[tuple[Outcome, str, str]]:
    """Yield the checks whose status differs, with both; ``absent`` where a run had no such check."""
    earlier, later = ({o.id: o for o in results.checks} for results in (before, after))
    for check, outcome in (earlier | later).items():
        was, now = (found[check].status if check in found else "absent" for found in (earlier, later))
        if was != now:
            yield outcome, was, now


def _rank(status: str) -> int:
    return _RANKS.get(status, -1 if status == "absent" else 1)
