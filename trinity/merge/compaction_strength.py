"""The strengths of a compaction."""

from __future__ import annotations

from enum import StrEnum

from trinity.errors import TrinityError, nearest


class Strength(StrEnum):
    """The strength of a compaction: how much of the table it folds."""

    MINOR = "minor"
    """The log by itself, unless it is large compared with the base."""
    RESOLVE = "resolve"
    """The log into a run beside the base, whose superseded rows are deleted by position (R1)."""
    FULL = "full"
    """Everything into a new base."""

    @classmethod
    def of(cls, given: str | bool | None, full: bool = False) -> Strength:
        """Return the strength that ``compact`` was asked for.

        Args:
            given: the strength's name, or True for a full compaction; if None or False, ``full`` decides.
            full: True for a full compaction, and then ``given`` may not name another; False for a minor one.

        Raises:
            TrinityError: INVALID_ARGUMENTS for an unknown name, or two strengths.
        """
        if given is None or isinstance(given, bool):
            return cls.FULL if given or full else cls.MINOR
        names = [strength.value for strength in cls]
        if given.lower() not in names:
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"There is no compaction '{given}'.{nearest(given, names)} There are: {', '.join(names)}.",
            )
        if full and given.lower() != cls.FULL.value:
            raise TrinityError("INVALID_ARGUMENTS", f"compact('{given}', full=True) names two strengths; give one.")
        return cls(given.lower())
