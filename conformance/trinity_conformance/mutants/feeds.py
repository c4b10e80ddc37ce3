"""Change feeds with one fault each, which generated histories must find out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from trinity_conformance.model.tables import Changed, Model, Row

__all__ = ["FEED_MUTANTS"]


class LateRowsAreChanges(Model):
    """Every row version that arrives is a change (against C4)."""

    def changes(self, after: int) -> list[Changed]:
        commits = enumerate(self.arrived(), 1)
        return [Changed("insert", n, v.row) for n, commit in commits if n > after for v in commit]


class EqualRowsAreUpdates(Model):
    """A row that is written as it was is an update (against C1)."""

    def changed(self, version: int, before: Row | None, after: Row | None) -> list[Changed]:
        if before is None or after is None:
            return super().changed(version, before, after)
        return [Changed("update_preimage", version, before), Changed("update_postimage", version, after)]


class PreimagesOfToday(Model):
    """A row before an update is the one after it, but for what is not equal (against C1)."""

    def changed(self, version: int, before: Row | None, after: Row | None) -> list[Changed]:
        found = super().changed(version, before, after)
        return [replace(c, row={**c.row, "v": after["v"]}) if after and len(found) == 2 else c for c in found]


class ChangesOfTheLastCommit(Model):
    """The feed begins with the newest version (against C2)."""

    def changes(self, after: int) -> list[Changed]:
        return super().changes(max(after, len(self.commits) - 1))


FEED_MUTANTS: Final[Mapping[str, type[Model]]] = {c.__name__: c for c in (
    LateRowsAreChanges, EqualRowsAreUpdates, PreimagesOfToday, ChangesOfTheLastCommit,
)}  # fmt: skip
"""Name -> a model whose feed has one fault; its docstring names the rule that it breaks."""
