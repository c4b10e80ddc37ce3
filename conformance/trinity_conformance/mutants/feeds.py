"""Change feeds with one fault each, which generated histories must find."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from trinity_conformance.model.tables import Changed, Model, Row, Version


class LateRowsAreChanges(Model):
    """Every row version that arrives is a change (against C4)."""

    def changes(self, after: int) -> list[Changed]:
        commits = enumerate(self.arrived(), 1)
        return [Changed("insert", n, v.row) for n, commit in commits if n > after for v in commit]


class EqualRowsAreUpdates(Model):
    """A row that is written again unchanged is an update (against C1)."""

    def changed(self, version: int, before: Row | None, after: Row | None) -> list[Changed]:
        if before is None or after is None:
            return super().changed(version, before, after)
        return [Changed("update_preimage", version, before), Changed("update_postimage", version, after)]


class PreimagesOfToday(Model):
    """The row before an update has the ``v`` of the row after it (against C1)."""

    def changed(self, version: int, before: Row | None, after: Row | None) -> list[Changed]:
        found = super().changed(version, before, after)
        return [replace(c, row={**c.row, "v": after["v"]}) if after and len(found) == 2 else c for c in found]


class ChangesOfTheLastCommit(Model):
    """The feed begins with the newest version (against C2)."""

    def changes(self, after: int) -> list[Changed]:
        return super().changes(max(after, len(self.commits) - 1))


class LookupOfTheCommitAlone(Model):
    """The changes written after a commit compare its rows with nothing: all of them are new (against C1)."""

    def feed(self, after: int) -> list[Changed]:
        found = super().feed(after)
        if self.shape.producer != "lookup":
            return found
        return [replace(c, kind="insert") for c in found if c.kind in ("insert", "update_postimage")]


class LookupLostByCompaction(Model):
    """The changes that were written before a compaction are lost with it (against C3)."""

    def feed(self, after: int) -> list[Changed]:
        lost = max(self.cuts, default=0) if self.shape.producer == "lookup" else 0
        return super().feed(max(after, lost))


class InputIsMerged(Model):
    """Rows as they came are shown only where they change the merged read (against C6)."""

    def arrivals_after(self, after: int) -> list[Changed]:
        return self.changes(after)


class InputWithoutRepeats(Model):
    """Of a commit's rows of one key only the last is shown (against C6)."""

    def arrivals_after(self, after: int) -> list[Changed]:
        return list({(c.version, self.key_of(c.row)): c for c in super().arrivals_after(after)}.values())


class KindsOfInputAreLost(Model):
    """A row that came with its own kind is an insert or a delete (against C6)."""

    def kind_of(self, version: Version) -> str:
        return "delete" if self.is_deleted(version) else "insert"


class DeletesAreInserted(Model):
    """A tombstone that came is an insert (against C6)."""

    def kind_of(self, version: Version) -> str:
        found = super().kind_of(version)
        return "insert" if found == "delete" else found


class CommitsInsteadOfRounds(Model):
    """Every commit is a round (against C6)."""

    def rounds(self, after: int) -> list[Changed]:
        return self.changes(after)


class RoundsFromTheBeginning(Model):
    """A full compaction compares with the empty table (against C6)."""

    def rounds(self, after: int) -> list[Changed]:
        return [c for cut in self.cuts for c in self.between(0, cut, cut)]


class TheNewestRoundIsMissing(Model):
    """The changes of the last full compaction show only after the next one (against C6)."""

    def rounds(self, after: int) -> list[Changed]:
        found = super().rounds(after)
        return [c for c in found if c.version != self.cuts[-1]]


class FirstImagesOfRounds(Model):
    """A key that changed more than once in a round shows the first of its rows (against C6)."""

    def rounds(self, after: int) -> list[Changed]:
        found, start = list[Changed](), 0
        for cut in self.cuts:
            found += self.between(start, min(cut, start + 1), cut)
            start = cut
        return found


FEED_MUTANTS: Final[Mapping[str, type[Model]]] = {c.__name__: c for c in (
    LateRowsAreChanges, EqualRowsAreUpdates, PreimagesOfToday, ChangesOfTheLastCommit,
    LookupOfTheCommitAlone, LookupLostByCompaction, InputIsMerged, InputWithoutRepeats, KindsOfInputAreLost,
    DeletesAreInserted, CommitsInsteadOfRounds, RoundsFromTheBeginning, TheNewestRoundIsMissing, FirstImagesOfRounds,
)}  # fmt: skip
"""Name -> a model whose feed has one fault; its docstring names the rule that it breaks."""
