"""Earlier versions of a played table: which exist, and how the read of a missing one is refused (L10)."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import Any

from trinity.errors import TrinityError
from trinity_conformance.model.tables import Row
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.subject import LeftToSpark, Subject


class Past:
    """The versions of one table.

    Attributes:
        versions: (version, number of the model's commits) of each commit that was seen.
        vacuumed: True once versions may be gone.
        by_other: True once another engine may have removed files of versions that ``history()`` still lists.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.versions: list[tuple[Any, int]] = []
        self.vacuumed = False
        self.by_other = False

    def before(self, back: int) -> tuple[Any, int]:
        """Return the version ``back`` steps before the newest, or the first."""
        return self.versions[max(0, len(self.versions) - 1 - back)]

    def time_of(self, version: Any) -> datetime | None:
        """Return the commit time of a version; None when vacuum removed the version, as it may."""
        found = dict(self.listed()).get(version)
        if found is None:
            self.check_may_be_missing(version)
        return found

    def rows(self, version: Any, timestamp: datetime | None) -> list[Row] | None:
        """Return the rows of an earlier version; None when vacuum removed it, as it may (L10)."""
        try:
            return self.subject.read(version=version if timestamp is None else None, timestamp=timestamp)
        except TrinityError as error:
            if not self.vacuumed or error.code != "INVALID_ARGUMENTS":
                raise NonConformance("time-travel", f"reading version {version} raised {error}") from error
            self.names_oldest(error)
            return None

    def listed(self) -> list[tuple[Any, datetime]]:
        """Return ``history()``, which must not fail."""
        try:
            return self.subject.history()
        except LeftToSpark:
            raise
        except Exception as error:
            raise NonConformance("time-travel", f"a legal read-past raised {type(error).__name__}: {error}") from error

    def check_may_be_missing(self, version: Any) -> None:
        """Check that a version may be missing."""
        if not self.vacuumed:
            raise NonConformance("time-travel", f"history() does not list version {version}, and nothing was vacuumed")

    def names_oldest(self, error: TrinityError) -> None:
        """Check that a refusal names the oldest readable version."""
        listed = [version for version, _ in self.listed()]
        may_be = listed if self.by_other else listed[:1]
        if not any(str(version) in error.message for version in may_be):
            raise NonConformance(
                "time-travel",
                f"a vacuumed version is refused without naming the oldest readable one of {may_be}: {error}",
            )

    def check(self) -> None:
        """Check that versions and times strictly increase, and that no commit is missing (L10)."""
        listed = self.listed()
        if any(not (a[0] < b[0] and a[1] < b[1]) for a, b in pairwise(listed)):
            raise NonConformance("time-travel", f"history() does not increase strictly: {listed}")
        for version in {version for version, _ in self.versions} - {version for version, _ in listed}:
            self.check_may_be_missing(version)
