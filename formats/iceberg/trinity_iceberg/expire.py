"""Expiry: snapshots that are forgotten, and metadata files that no snapshot needs any more."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Final

from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import RemoveSnapshotsUpdate, TableUpdate

from trinity.storage import COMMIT_TIMEOUT_S, ObjectStore
from trinity_iceberg.carried import OPERATION, indexes, lineage, summary_of
from trinity_iceberg.index import SIDECAR_FOLDER, stale_guards
from trinity_iceberg.swap import commit_updates

__all__ = ["delete_metadata", "expire", "expiry_due"]

EXPIRED_AT_ONCE: Final = 50
"""Versions that a commit forgets at once, so that few commits have that to do."""
_AGE: Final = "history.expire.max-snapshot-age-ms"
_KEEP: Final = "history.expire.min-snapshots-to-keep"


def expire(loaded: Table, older_than_ms: int) -> bool:
    """Forgets the versions whose successor is old enough; whether there was any."""
    gone = _expired(loaded.metadata, older_than_ms)
    if not gone:
        return False
    updates = _removal(loaded.metadata, gone)
    commit_updates(loaded, updates, (), lambda now: gone.isdisjoint(s.snapshot_id for s in now.snapshots))
    return True


def expiry_due(metadata: TableMetadata) -> tuple[TableUpdate, ...]:
    """Updates by which a commit forgets old versions, as the table's own properties ask for; their files stay.

    A table that sets ``history.expire.max-snapshot-age-ms`` keeps the versions that were the newest one within that
    time, and ``history.expire.min-snapshots-to-keep`` in any case. They go many at a time. All stay without it.
    """
    age, keep = (_number(metadata.properties.get(name)) for name in (_AGE, _KEEP))
    snapshots = metadata.snapshots
    if age is None or len(snapshots) < (keep or 1) + EXPIRED_AT_ONCE:
        return ()
    limit = int(time.time() * 1000) - age
    if snapshots[EXPIRED_AT_ONCE].timestamp_ms > limit:
        return ()
    gone = _expired(metadata, limit, keep or 1)
    return _removal(metadata, gone) if len(gone) >= EXPIRED_AT_ONCE else ()


def _expired(metadata: TableMetadata, older_than_ms: int, keep: int = 1) -> set[int]:
    """The ids of versions whose successor is old enough, but for the newest ones."""
    chain = lineage(metadata)
    heads = {ref.snapshot_id for ref in metadata.refs.values()}
    old = [s for s, following in pairwise(chain) if following.timestamp_ms <= older_than_ms]
    old = old[: max(0, len(chain) - keep)]
    # what older versions of other engines' commits carry is said by the last commit of Trinity's before them
    while old and len(old) < len(chain) - 1 and OPERATION not in summary_of(chain[len(old)]):
        old.pop()
    return {s.snapshot_id for s in old} - heads


def _removal(metadata: TableMetadata, gone: set[int]) -> tuple[TableUpdate, ...]:
    update = RemoveSnapshotsUpdate.model_validate({"snapshot-ids": sorted(gone)})
    return update, *stale_guards(metadata, indexes(metadata, gone))


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.strip().isdecimal() else None


def delete_metadata(store: ObjectStore, needed: set[str], older_than_ms: int) -> None:
    """Deletes metadata files that no snapshot needs; a commit under way may need those of the last minutes."""
    limit = min(older_than_ms, int((time.time() - COMMIT_TIMEOUT_S) * 1000))
    for folder in ("metadata", SIDECAR_FOLDER):
        store.delete(
            entry.path
            for entry in store.list(folder)
            if entry.path.endswith((".avro", ".json", ".metadata.json.gz"))
            and entry.path not in needed
            and entry.modified_ms < limit
        )
