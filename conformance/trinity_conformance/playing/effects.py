"""The effect of a step on the model, and on what the suite remembers of a history."""

from __future__ import annotations

from typing import Any

from trinity_conformance.playing.observations import Observations
from trinity_conformance.playing.traces import Alter, Compact, Delete, Upsert


class Effects(Observations):
    """The effects of the steps of one history."""

    def upserted(self, step: Upsert, version: Any) -> bool:
        """Append rows that a version has; return False for a transaction that was recorded before (L4)."""
        done = self.model.upsert(step.rows, step.txn, step.names)
        if done:
            self.past.versions.append((version, len(self.model.commits)))
        return done

    def deleted(self, step: Delete, version: Any) -> bool:
        """Delete rows that a version has no more; return whether there were any."""
        if step.condition is not None:
            hit = self.model.delete_where(step.condition)
        else:
            hit = self.model.delete_keys([self.model.key_form(k) for k in step.keys or ()])
        if hit:
            self.past.versions.append((version, len(self.model.commits)))
        return bool(hit)

    def altered(self, step: Alter) -> None:
        """Change columns; a DEFAULT is stored in the existing rows by the newest version."""
        before = len(self.model.commits)
        self.model.alter(step.kind, step.columns)
        self.altered_at = len(self.model.commits)
        if self.altered_at > before:
            self.past.versions.append((self.newest(), self.altered_at))

    def compacted(self, step: Compact) -> None:
        """Note a compaction."""
        self.model.compact(step.full)
        self._cut(full=step.full)

    def resolved(self) -> None:
        """Note a compaction that deletes rows by position."""
        self.model.resolve()
        self._cut(full=False)
        self.tally.coverage.saw("resolve")

    def _cut(self, *, full: bool) -> None:
        self.compacted_at = len(self.model.commits)
        self.cuts.append((self.compacted_at, full))
        self.tally.coverage.compacted(self.model)

    def vacuumed(self) -> None:
        """Note that a vacuum may have removed versions."""
        self.past.vacuumed = True
        self.tally.coverage.saw("vacuum")
