"""Models of merge engines in which a compaction or a resolve changes what is read (against L3, R1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from trinity_conformance.model.engine_model import EngineModel
from trinity_conformance.model.tables import Key, Version


class CompactionForgetsDeleted(EngineModel):
    """Compaction keeps nothing of keys without a row (against E3)."""

    forgotten: frozenset[int] = frozenset()

    def compact(self, full: bool) -> None:
        live = self.merged()
        self.forgotten |= {id(v) for v in self.arrivals(None) if self.key_of(v.row) not in live}

    def by_key(self, commits: int | None = None) -> dict[Key, list[Version]]:
        found = super().by_key(commits)
        if commits is not None:
            return found
        return {key: [v for v in versions if id(v) not in self.forgotten] for key, versions in found.items()}


class CompactionForgetsContributions(EngineModel):
    """Compaction keeps only the row that each key reads (against A2, E3)."""

    folded: Mapping[Key, tuple[int, list[Version]]] = {}

    def compact(self, full: bool) -> None:
        arrived, live = super().by_key(), self.merged()
        if not self.overflows():
            self.folded = {k: (len(v), [Version(live[k])] if k in live else []) for k, v in arrived.items()}

    def by_key(self, commits: int | None = None) -> dict[Key, list[Version]]:
        found = super().by_key(commits)
        if commits is None:
            for key, (count, kept) in self.folded.items():
                found[key] = [*kept, *found[key][count:]]
        return found


class ResolveForgetsContributions(CompactionForgetsContributions):
    """Resolve keeps only the row that each key reads (against R1, A2)."""

    def compact(self, full: bool) -> None:
        EngineModel.compact(self, full)

    def resolve(self) -> None:
        CompactionForgetsContributions.compact(self, False)


class ResolveLeavesFoldedRows(EngineModel):
    """Resolve leaves in the base the rows that it has folded into its run (against R1)."""

    left: Mapping[Key, Version] = {}

    def resolve(self) -> None:
        if not self.overflows():
            self.left = {key: Version(row) for key, row in self.merged().items()}

    def by_key(self, commits: int | None = None) -> dict[Key, list[Version]]:
        found = super().by_key(commits)
        if commits is not None:
            return found
        return {key: [*([self.left[key]] if key in self.left else []), *versions] for key, versions in found.items()}


ENGINE_MAINTENANCE: Final[tuple[type[EngineModel], ...]] = (
    CompactionForgetsDeleted, CompactionForgetsContributions, ResolveForgetsContributions, ResolveLeavesFoldedRows,
)  # fmt: skip
