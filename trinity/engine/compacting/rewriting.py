"""What the rows of a compaction are put into, whoever makes them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from trinity.hidden import ARRIVAL, SINCE
from trinity.merge.spec import MergeSpec
from trinity.spi import DataFile

__all__ = ["highest_commit", "sidecar_schema"]


def highest_commit(files: Sequence[DataFile]) -> int:
    """Return the commit number of what a compaction writes from some files (K6)."""
    return max(f.commit or 0 for f in files)


def sidecar_schema(storage: pa.Schema, spec: MergeSpec) -> pa.Schema | None:
    """Return the columns of the sidecar, with the time since when its rows are in it; None where nothing is.

    Of an engine that folds by column these are whole row versions, with their order. What a -D of a group leaves of a
    row (D5) has no values, not even of NOT NULL columns.
    """
    if not spec.may_need_sidecar:
        return None
    if spec.by_column:
        further = [pa.field(SINCE, pa.int64()), pa.field(ARRIVAL, pa.int64())]
        return pa.schema([*(f.with_nullable(True) for f in storage), *further])
    wanted = [f for f in storage if spec.tombstone_rows or f.name in spec.sidecar_columns]
    return pa.schema([*wanted, pa.field(SINCE, pa.int64())])
