"""A run of appends: the files that may have versions of the touched keys, and the moment from which each counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from trinity.engine.feed.steps import FIRST, Step
from trinity.engine.reading.files import may_share_keys, tiers
from trinity.merge.spec import MergeSpec, merge_spec
from trinity.spi import DataFile, SplitSource, Tier, arrival_order


@dataclass(frozen=True)
class Appends:
    """Consecutive commits that only added row versions.

    ``splits`` is the version that the last of them made; ``added`` has the version that added each of their files.
    """

    splits: SplitSource
    spec: MergeSpec
    added: Mapping[str, int]

    @classmethod
    def of(cls, run: Sequence[Step]) -> Appends:
        """Return the appends of consecutive steps."""
        splits = run[-1].after
        added = {file.path: step.version for step in run for file in step.added}
        return cls(splits, merge_spec(splits.definition), added)

    @cached_property
    def base(self) -> list[DataFile]:
        """The files of the base that may have versions of touched keys."""
        return [file for file in self._before if file.tier is Tier.BASE]

    @cached_property
    def log(self) -> list[DataFile]:
        """The files of the log that may have versions of touched keys, in the order of arrival."""
        earlier = [file for file in self._before if file.tier is not Tier.BASE]
        return sorted([*earlier, *self._added_files], key=arrival_order)

    @cached_property
    def _added_files(self) -> list[DataFile]:
        return [file for file in tiers(self.splits.files)[1] if file.path in self.added]

    @cached_property
    def _before(self) -> list[DataFile]:
        base, log = tiers(self.splits.files)
        before = [*base, *(file for file in log if file.path not in self.added)]
        return may_share_keys(before, self._added_files, self.splits.definition)

    def moment(self, file: DataFile) -> int:
        """Return the moment from which the rows of a file count."""
        return self.added.get(file.path, FIRST)
