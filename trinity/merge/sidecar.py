"""The rows of a sidecar: their place in the order of arrival, and how long they stay, in SQL and in Arrow (U4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from trinity.clock import now_ms
from trinity.hidden import SINCE
from trinity.merge.spec import MergeSpec

SIDECAR_ROWS: Final = 1 << 40
"""Subtracted from the arrival of the sidecar's rows, so that they arrive before the base, whose arrival is -1."""


@dataclass(frozen=True)
class Retention:
    """The rule by which one compaction drops tombstones of the sidecar, with the ages of the rows.

    A row's age counts from the compaction that moved the row to the sidecar.

    Attributes:
        now_ms: the compaction's time, milliseconds since the epoch.
        limit_ms: the age up to which tombstones are kept, milliseconds; None keeps them for ever.
    """

    now_ms: int
    limit_ms: int | None

    @classmethod
    def now(cls, spec: MergeSpec) -> Retention:
        """Return the rule for a compaction that begins now."""
        return cls(now_ms(), spec.tombstone_retention_ms)

    @property
    def since_sql(self) -> str:
        """SQL of the time when a row was moved to the sidecar, milliseconds since the epoch; now for new rows."""
        return f"coalesce({SINCE}, {self.now_ms})"

    @property
    def keeps_sql(self) -> str:
        """SQL that is true for a row that stays if it is a tombstone."""
        return "true" if self.limit_ms is None else f"{self.since_sql} >= {self.now_ms - self.limit_ms}"

    def since(self, rows: pa.Table | pa.RecordBatch) -> pa.ChunkedArray | pa.Array:
        """Return when each row was moved to the sidecar, milliseconds since the epoch; now for new rows."""
        return pc.fill_null(rows.column(SINCE), self.now_ms)

    def keeps(self, rows: pa.Table | pa.RecordBatch) -> pa.ChunkedArray | pa.Array:
        """Return True for each row that stays if it is a tombstone."""
        if self.limit_ms is None:
            return pa.repeat(True, rows.num_rows)
        return pc.greater_equal(self.since(rows), self.now_ms - self.limit_ms)
