"""Models in which a compaction, a vacuum or a restart changes what is read (against L3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from trinity_conformance.model.tables import Model, Version


class CompactionForgetsTombstones(Model):
    """Compaction keeps live rows only (against U4, L3)."""

    def compact(self, full: bool) -> None:
        _keep_live(self)


class ResolveForgetsTombstones(Model):
    """Resolve keeps live rows only (against R1, U4)."""

    def resolve(self) -> None:
        _keep_live(self)


def _keep_live(model: Model) -> None:
    _fold_into(model, [v for v in model.winners().values() if not model.is_deleted(v)])


def _fold_into(model: Model, versions: list[Version]) -> None:
    """Make row versions the only ones, as of the last commit."""
    model.commits = [*([] for _ in model.commits[:-1]), versions]


class ResolveDeletesWhatWins(Model):
    """Resolve deletes the stored row of a key that came again, late or not (against R1, U1)."""

    def resolve(self) -> None:
        if self.commits:
            last = {self.key_of(version.row): version for version in self.commits[-1]}
            kept = {key: v for key, v in self.winners().items() if key not in last}
            _fold_into(self, [*kept.values(), *last.values()])


class CompactionForgetsOrder(Model):
    """Compaction makes its rows beat ties that arrive later (against K6)."""

    folded: frozenset[int] = frozenset()

    def compact(self, full: bool) -> None:
        self.folded = frozenset(v.row["v"] for v in self.winners().values())

    def takes_over(self, later: Version, earlier: Version) -> bool:
        if earlier.row["v"] in self.folded and self.shape.watermark:
            return self.compare(later.row, earlier.row) > 0
        return super().takes_over(later, earlier)


class VacuumForgetsTransactions(Model):
    """Vacuum forgets recorded transactions (against L4)."""

    def vacuum(self) -> None:
        self.recorded.clear()


class ReopenLosesLastCommit(Model):
    """The last commit was in memory only (against L3)."""

    def reopen(self) -> None:
        self.commits[-1:] = [[]]


MAINTENANCE_MUTANTS: Final[Mapping[str, type[Model]]] = {c.__name__: c for c in (
    CompactionForgetsTombstones, CompactionForgetsOrder, ResolveForgetsTombstones, ResolveDeletesWhatWins,
    VacuumForgetsTransactions, ReopenLosesLastCommit,
)}  # fmt: skip
"""Name -> a model with one fault; its docstring names the rule that it breaks."""
