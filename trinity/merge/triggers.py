"""The state of a table's log in which the writer compacts it by itself: ``compaction.trigger.*``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trinity.merge.refusals import not_compacted, refused
from trinity.merge.strength import Strength

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trinity.spi import TableDefinition

__all__ = ["CompactionTrigger", "check_trigger", "compaction_trigger"]

_SHARE: Final = "compaction.trigger.log-share"
_COMMITS: Final = "compaction.trigger.commits"
_STRENGTH: Final = "compaction.trigger.strength"


@dataclass(frozen=True)
class CompactionTrigger:
    """The limits of a log: one of them, or both.

    Attributes:
        log_share: rows of the log divided by rows of the base.
        commits: commits in the log.
        strength: of the compaction. None: a full one when the share is reached, a minor one when the commits are.
    """

    log_share: float | None
    commits: int | None
    strength: Strength | None = None

    def due(self, log_share: float, commits: int) -> Strength | None:
        """Return the strength of the compaction that a log of this state needs; None when it needs none."""
        if self.log_share is not None and log_share >= self.log_share:
            # a minor compaction leaves the share as it is
            return Strength.FULL if self.strength in (None, Strength.MINOR) else self.strength
        if self.commits is not None and commits >= self.commits:
            return self.strength or Strength.MINOR
        return None


def compaction_trigger(properties: Mapping[str, str]) -> CompactionTrigger | None:
    """Return the trigger that checked properties name; None where they name no limit."""
    share, commits = properties.get(_SHARE), properties.get(_COMMITS)
    if share is None and commits is None:
        return None
    strength = properties.get(_STRENGTH)
    return CompactionTrigger(
        float(share) if share is not None else None,
        int(commits) if commits is not None else None,
        Strength(_word(strength)) if strength is not None else None,
    )


def check_trigger(definition: TableDefinition) -> None:
    """Refuse invalid limits, and limits of a table that no writer compacts.

    Raises:
        TrinityError: INVALID_TABLE_PROPERTY naming the option.
    """
    options = definition.properties
    given = [key for key in (_SHARE, _COMMITS, _STRENGTH) if key in options]
    if not given:
        return
    if why := not_compacted(definition):
        raise refused(definition, f"'{given[0]}' {why}.")
    share, commits, strength = (options.get(key) for key in (_SHARE, _COMMITS, _STRENGTH))
    if share is not None and not _is_share(share):
        raise refused(definition, f"'{_SHARE}' = '{share}'; it is a number above 0: log rows by base rows, as 0.1.")
    if commits is not None and not (commits.strip().isdecimal() and int(commits) > 1):
        raise refused(definition, f"'{_COMMITS}' = '{commits}'; it is a number from 2 on.")
    known = [each.value for each in Strength]
    if strength is not None and _word(strength) not in known:
        raise refused(definition, f"'{_STRENGTH}' = '{strength}'; it is one of {', '.join(known)}.")
    if given == [_STRENGTH]:
        raise refused(definition, f"'{_STRENGTH}' needs '{_SHARE}' or '{_COMMITS}', which say when.")
    if share is not None and strength is not None and _word(strength) == Strength.MINOR:
        raise refused(definition, f"'{_STRENGTH}' = 'minor' leaves the share of the log as it is; use full.")


def _is_share(text: str) -> bool:
    try:
        return 0 < float(text) < math.inf
    except ValueError:
        return False


def _word(text: str) -> str:
    return text.strip().lower()
