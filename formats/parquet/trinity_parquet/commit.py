"""The commit of a version puts its manifest if absent. Checkpoints and deletions of old manifests follow."""

from __future__ import annotations

from trinity.storage import AlreadyExists, CommitRaced, ObjectStore, TableVersion
from trinity_parquet.manifest import LOG, NEWEST, Manifest, checkpoint_name, manifest_name, to_checkpoint, to_hint


def put_manifest(store: ObjectStore, change: Manifest) -> None:
    """Put the manifest of a version.

    Raises:
        CommitRaced: another writer took the version.
    """
    try:
        store.put_if_absent(manifest_name(change.number), change.to_json(store))
    except AlreadyExists as taken:
        raise CommitRaced(f"version {change.number} was taken") from taken


def write_checkpoint(store: ObjectStore, version: TableVersion) -> None:
    """Write all of a version beside its manifest. An existing checkpoint says the same, and stays."""
    try:
        store.put_if_absent(checkpoint_name(version.number), to_checkpoint(store, version), commits=False)
    except AlreadyExists:
        return


def write_hint(store: ObjectStore, number: int) -> None:
    """Record that a version exists, so that readers need not count up to it from the first one."""
    store.put(NEWEST, to_hint(number), sync=False)


def delete_log(store: ObjectStore, oldest: int, older_than_ms: int) -> None:
    """Delete the manifests and checkpoints before version ``oldest``, which needs none of them, lowest number first.

    Stop at the first one that is not older than ``older_than_ms``, milliseconds since the epoch. The first manifest
    stays: it identifies the folder as a table.
    """
    before = f"{LOG}/{oldest:020d}"
    # a crashed put of a manifest leaves a file whose name begins with a dot
    store.delete(e.path for e in store.list(LOG) if e.path.startswith(f"{LOG}/.") and e.modified_ms < older_than_ms)
    for entry in store.list(LOG, after=manifest_name(0)):
        if entry.path >= before or entry.modified_ms >= older_than_ms:
            return
        store.delete([entry.path])
