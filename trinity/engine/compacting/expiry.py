"""Tombstones of a sidecar that a compaction would not keep any more (U4)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.reading.data_files import live_pages
from trinity.hidden import SINCE
from trinity.merge.sidecar import Retention
from trinity.spi import DataFile


def has_expired(sidecar: Sequence[DataFile], retention: Retention) -> bool:
    """Return True when a tombstone is in the sidecar for longer than it is kept. Only the times are read.

    Raises:
        TrinityError: BAD_DATA naming a file that cannot be read.
    """
    if retention.limit_ms is None:
        return False
    since = pa.schema([(SINCE, pa.int64())])
    return not all(pc.all(retention.keeps(page)).as_py() for file in sidecar for page in live_pages(file, since))
