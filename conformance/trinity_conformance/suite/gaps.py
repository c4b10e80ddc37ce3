"""Known gaps of an adapter: failures that are expected, each with its reason, an issue, and a day on which it expires.

A TOML file with a table ``[[gap]]`` for each::

    [[gap]]
    check = "time-travel"
    reason = "versions are numbered anew when the server restarts"
    issue = "https://example.org/acme/issues/7"
    expires = 2027-06-30

A gap that has expired fails, and so does one whose check passes: the file lists what fails, and no more.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import date
from pathlib import Path
from typing import Any

from trinity.errors import TrinityError, nearest
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.suite.checks import CHECKS


@dataclass(frozen=True)
class Gap:
    """A check that an adapter is known to fail.

    Attributes:
        check: id of the check.
        reason: why it fails.
        issue: where it is followed.
        expires: the first day on which it counts as a failure again.
    """

    check: str
    reason: str
    issue: str
    expires: date


def load_gaps(file: Path) -> tuple[Gap, ...]:
    """Return the known gaps of a file.

    Raises:
        TrinityError: INVALID_ARGUMENTS naming the file, and the entry that is wrong.
    """
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TrinityError("INVALID_ARGUMENTS", f"Known gaps '{file}' cannot be read: {error}.") from error
    if unknown := set(data) - {"gap"}:
        raise TrinityError("INVALID_ARGUMENTS", f"Known gaps '{file}' has '{min(unknown)}'; each gap is a [[gap]].")
    gaps = tuple(_gap(f"Gap {n} of '{file}'", entry) for n, entry in enumerate(data.get("gap", []), 1))
    if repeated := [g.check for g in gaps if [other.check for other in gaps].count(g.check) > 1]:
        raise TrinityError("INVALID_ARGUMENTS", f"Known gaps '{file}' has '{repeated[0]}' twice; keep one entry.")
    return gaps


def _gap(where: str, entry: dict[str, Any]) -> Gap:
    names = [f.name for f in fields(Gap)]
    if set(entry) != set(names):
        raise TrinityError("INVALID_ARGUMENTS", f"{where} has {sorted(entry)}; it needs {', '.join(names)}.")
    if not isinstance(entry["expires"], date) or not all(isinstance(entry[n], str) and entry[n] for n in names[:3]):
        raise TrinityError(
            "INVALID_ARGUMENTS", f"{where} has a value of another kind; give three texts, and expires = 2027-06-30."
        )
    ids = [check.id for check in CHECKS]
    if entry["check"] not in ids:
        raise TrinityError(
            "INVALID_ARGUMENTS", f"{where}: there is no check '{entry['check']}'.{nearest(entry['check'], ids)}"
        )
    return Gap(**entry)


def stale(gaps: Iterable[Gap], passed: Sequence[str], today: date) -> list[NonConformance]:
    """Return a failure for each gap that has expired, or whose check passes."""
    found = [
        NonConformance(gap.check, f"passes, although it is a known gap ({gap.issue}); take it out of the file")
        for gap in gaps
        if gap.check in passed
    ]
    expired = [
        NonConformance(gap.check, f"the known gap expired on {gap.expires} ({gap.issue}): {gap.reason}")
        for gap in gaps
        if gap.expires <= today
    ]
    return [*found, *expired]
