"""Expiry: snapshots that are forgotten, and metadata files that no snapshot needs any more."""

from __future__ import annotations

import time
from itertools import pairwise

from pyiceberg.table import Table
from pyiceberg.table.update import RemoveSnapshotsUpdate

from trinity.storage import COMMIT_TIMEOUT_S, ObjectStore
from trinity_iceberg.commit import Change, commit_change
from trinity_iceberg.snapshot import OPERATION, SIDECAR_FOLDER, lineage
from trinity_iceberg.swap import commit_updates

__all__ = ["delete_metadata", "expire"]


def expire(loaded: Table, older_than_ms: int) -> bool:
    """Forgets the versions whose successor is old enough; whether there was any."""
    chain = lineage(loaded.metadata)
    heads = {ref.snapshot_id for ref in loaded.metadata.refs.values()}
    expired = [
        old.snapshot_id
        for old, new in pairwise(chain)
        if new.timestamp_ms <= older_than_ms and old.snapshot_id not in heads
    ]
    if not expired:
        return False
    update = RemoveSnapshotsUpdate.model_validate({"snapshot-ids": expired})
    own = chain[-1].summary.additional_properties if chain[-1].summary else {}
    if OPERATION in own:
        gone = set(expired)
        commit_updates(loaded, (update,), (), lambda now: gone.isdisjoint(s.snapshot_id for s in now.snapshots))
    else:  # the newest commit is another engine's: what its parents carry must outlive them
        commit_change(loaded, Change("vacuum", updates=(update,)))
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
