"""The expiry of snapshots, and the deletion of metadata files that no snapshot needs any more."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import RemovePropertiesUpdate, RemoveSnapshotsUpdate, TableUpdate

from trinity.clock import now_ms
from trinity.limits import Limit
from trinity.storage import ObjectStore
from trinity.storage.commits import COMMIT_TIMEOUT_S
from trinity_iceberg.carried import OPERATION, indexes, lineage, recorded_appends, stale_definitions, summary_of
from trinity_iceberg.index import SIDECAR_FOLDER, stale_guards
from trinity_iceberg.restored import is_own_tag, without_tag
from trinity_iceberg.swap import commit_updates, same_schema

EXPIRED_AT_ONCE: Final = Limit(50)
"""How many versions a commit forgets at least, so that few commits have to forget any."""
AGE: Final = "history.expire.max-snapshot-age-ms"
"""Property of a table whose commits forget old versions."""
_KEEP: Final = "history.expire.min-snapshots-to-keep"


def expire(loaded: Table, older_than_ms: int) -> bool:
    """Forget the versions whose successor is old enough, and their definitions; return whether there were any."""
    metadata = loaded.metadata
    gone = _expired_versions(metadata, older_than_ms)
    definitions = stale_definitions(metadata, gone)
    if not gone and not definitions:
        return False

    def stands(now: TableMetadata) -> bool:
        return gone.isdisjoint(s.snapshot_id for s in now.snapshots) and now.properties.keys().isdisjoint(definitions)

    updates = (RemovePropertiesUpdate(removals=definitions),) if definitions else ()
    removal = _removal(metadata, gone, _oldest_rows(loaded, gone))
    commit_updates(loaded, (*removal, *updates), same_schema(metadata), stands)
    return True


def expiry_due(metadata: TableMetadata) -> tuple[TableUpdate, ...]:
    """Return the updates by which a commit forgets old versions, if the table's properties ask for it; files stay.

    A table with ``history.expire.max-snapshot-age-ms`` keeps the versions that were the newest within that time, and at
    least ``history.expire.min-snapshots-to-keep`` of them. Others are forgotten many at a time. Without the property
    all stay.
    """
    age, keep = (_number(metadata.properties.get(name)) for name in (AGE, _KEEP))
    snapshots = metadata.snapshots
    if age is None or len(snapshots) < (keep or 1) + EXPIRED_AT_ONCE.value:
        return ()
    limit = now_ms() - age
    if snapshots[EXPIRED_AT_ONCE.value].timestamp_ms > limit:
        return ()
    gone = _expired_versions(metadata, limit, keep or 1)
    return _removal(metadata, gone) if len(gone) >= EXPIRED_AT_ONCE.value else ()


def _expired_versions(metadata: TableMetadata, older_than_ms: int, keep: int = 1) -> set[int]:
    """Return the ids of versions to forget: those whose successor is old enough, and old unreferenced snapshots.

    The newest ``keep`` versions stay.
    """
    chain = lineage(metadata)
    heads = _heads(metadata)
    old = [s for s, following in pairwise(chain) if following.timestamp_ms <= older_than_ms]
    old = old[: max(0, len(chain) - keep)]
    # versions of other engines are read with the facts of Trinity's last commit before them, which has to stay
    while old and len(old) < len(chain) - 1 and OPERATION not in summary_of(chain[len(old)]):
        old.pop()
    return {s.snapshot_id for s in old} - heads | _unreferenced_snapshots(metadata, older_than_ms)


def _heads(metadata: TableMetadata) -> set[int]:
    """Return the ids of the snapshots of branches and tags, without those that a restore has tagged."""
    return {ref.snapshot_id for name, ref in metadata.refs.items() if not is_own_tag(name)}


def _unreferenced_snapshots(metadata: TableMetadata, older_than_ms: int) -> set[int]:
    """Return the ids of old snapshots that no branch and no tag reaches.

    Another engine rolled the table back from them, or only staged them. If one of them was the newest version recently,
    all stay, so that the rollback can be undone.
    """
    known, reached = {s.snapshot_id: s for s in metadata.snapshots}, set[int]()
    for head in (metadata.current_snapshot_id, *_heads(metadata)):
        at = head
        while at in known and at not in reached:
            reached.add(at)
            at = known[at].parent_snapshot_id
    left = known.keys() - reached
    gone_back = [then.timestamp_ms for entry, then in pairwise(metadata.snapshot_log) if entry.snapshot_id in left]
    if max(gone_back, default=0) > older_than_ms:
        return set()
    return {number for number in left if known[number].timestamp_ms <= older_than_ms}


def _oldest_rows(loaded: Table, gone: set[int]) -> int:
    """Return the lowest version of any row in the oldest and the newest snapshot that stay."""
    kept = [s for s in loaded.metadata.snapshots if s.snapshot_id not in gone]
    manifests = [m for s in (*kept[:1], *kept[-1:]) for m in s.manifests(loaded.io)]
    return min((m.min_sequence_number or 0 for m in manifests), default=0)


def _removal(metadata: TableMetadata, gone: set[int], oldest_rows: int = 0) -> tuple[TableUpdate, ...]:
    if not gone:
        return ()
    tags = (without_tag(name) for name, ref in metadata.refs.items() if ref.snapshot_id in gone)
    update = RemoveSnapshotsUpdate.model_validate({"snapshot-ids": sorted(gone)})
    appends = recorded_appends(metadata, gone, oldest_rows)
    return *tags, update, *stale_guards(metadata, indexes(metadata, gone)), *appends


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.strip().isdecimal() else None


def delete_metadata(store: ObjectStore, needed: set[str], older_than_ms: int) -> None:
    """Delete metadata files that no snapshot needs; a running commit may need those of the last minutes, which stay."""
    limit = min(older_than_ms, now_ms() - int(COMMIT_TIMEOUT_S * 1000))
    for folder in ("metadata", SIDECAR_FOLDER):
        store.delete(
            entry.path
            for entry in store.list(folder)
            if entry.path.endswith((".avro", ".json", ".metadata.json.gz"))
            and entry.path not in needed
            and entry.modified_ms < limit
        )
