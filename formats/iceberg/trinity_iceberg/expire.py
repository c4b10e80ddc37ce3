"""Expiry: snapshots that are forgotten, and metadata files that no snapshot needs any more."""

from __future__ import annotations

import time
from itertools import pairwise

from pyiceberg.table import Table
from pyiceberg.table.update import RemoveSnapshotsUpdate

from trinity.storage import COMMIT_TIMEOUT_S, ObjectStore
from trinity_iceberg.carried import OPERATION, indexes, lineage, summary_of
from trinity_iceberg.index import SIDECAR_FOLDER, stale_guards
from trinity_iceberg.swap import commit_updates

__all__ = ["delete_metadata", "expire"]


def expire(loaded: Table, older_than_ms: int) -> bool:
    """Forgets the versions whose successor is old enough; whether there was any."""
    chain = lineage(loaded.metadata)
    heads = {ref.snapshot_id for ref in loaded.metadata.refs.values()}
    old = [s for s, following in pairwise(chain) if following.timestamp_ms <= older_than_ms]
    # what older versions of other engines' commits carry is said by the last commit of Trinity's before them
    while old and len(old) < len(chain) - 1 and OPERATION not in summary_of(chain[len(old)]):
        old.pop()
    gone = {s.snapshot_id for s in old} - heads
    if not gone:
        return False
    update = RemoveSnapshotsUpdate.model_validate({"snapshot-ids": sorted(gone)})
    stale = stale_guards(loaded.metadata, indexes(loaded.metadata, gone))
    commit_updates(loaded, (update, *stale), (), lambda now: gone.isdisjoint(s.snapshot_id for s in now.snapshots))
    return True


def delete_metadata(store: ObjectStore, needed: set[str], older_than_ms: int) -> None:
    """Deletes metadata files that no snapshot needs; a commit under way may need those of the last minutes."""
    limit = min(older_than_ms, int((time.time() - COMMIT_TIMEOUT_S) * 1000))
    for folder in ("metadata", SIDECAR_FOLDER):
        store.delete(
            entry.path
            for entry in store.list(folder)
            if entry.path.endswith((".avro", ".metadata.json", ".json"))
            and entry.path not in needed
            and entry.modified_ms < limit
        )
