"""Findings of the demo, and their differences from the source."""

from __future__ import annotations

from dataclasses import dataclass, field

from trinity.demo.answers import Answers
from trinity.demo.load import STAGES, Figures
from trinity.demo.readers import READERS, Seen
from trinity.demo.streams import StreamAnswers


@dataclass
class FormatFindings:
    """Findings of the demo in one format.

    Attributes:
        commits: seconds of each commit that this run made; empty when an earlier run made them all.
        took: stage -> seconds of the compaction to it, if this run made it.
        figures: stage -> figures, if this run measured them.
        answers: the answers of every merged read.
        streams: the answers of the second scene's tables, before and after their compaction.
    """

    commits: list[float] = field(default_factory=list)
    took: dict[str, float] = field(default_factory=dict)
    figures: dict[str, Figures] = field(default_factory=dict)
    answers: list[Answers] = field(default_factory=list)
    streams: list[StreamAnswers] = field(default_factory=list)


@dataclass
class Findings:
    """All findings of the demo.

    Attributes:
        truth: what DuckDB computed from the source.
        delivered, late, batches: the numbers of rows of the change stream, of late rows, and of micro-batches.
        seen: (reader's name, stage) -> result of the read, if it was made.
    """

    truth: Answers
    delivered: int
    late: int
    batches: int
    formats: dict[str, FormatFindings] = field(default_factory=dict)
    seen: dict[tuple[str, str], Seen] = field(default_factory=dict)

    def differences(self) -> list[str]:
        """Return the findings that differ from the truth; empty when there are none."""
        wrong = [
            f"{catalog}: the merged read differs from the source: {found}"
            for catalog, findings in self.formats.items()
            for found in findings.answers
            if found != self.truth
        ]
        answers = StreamAnswers(self.truth.flown, self.truth.delays, self.truth.delays)
        wrong += [
            f"{catalog}: the two streams differ from the source: {found}"
            for catalog, findings in self.formats.items()
            for found in findings.streams
            if found != answers
        ]
        expected = Seen(self.truth.live, sum(total for total, _ in self.truth.delays.values()))
        readers = [
            f"{reader.name}: sees {seen.rows} rows of the {stage} table, {expected.rows} are live"
            for reader in READERS
            for stage in STAGES
            if stage in reader.merged and (seen := self.seen.get((reader.name, stage))) not in (None, expected)
        ]
        return wrong + readers
