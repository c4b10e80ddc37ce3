"""The commit: one JSON manifest per version, put if absent.

``<table>/_trinity/log/<20 digits>.json`` holds what a version changes: added and removed files, the sidecar, a new
definition, txn records. Every n-th version also has ``<20 digits>.checkpoint.json`` with the whole state.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trinity.errors import TrinityError
from trinity.spi import DataFile, TableDefinition
from trinity.storage import AlreadyExists, CommitRaced, ObjectStore, after_commit, next_timestamp_ms

__all__ = [
    "LOG",
    "REMEDY",
    "Change",
    "State",
    "checkpoint_name",
    "delete_log",
    "manifest_name",
    "put_manifest",
    "read_json",
    "version_of",
    "write_version",
]

LOG = "_trinity/log"
REMEDY = "restore it from a copy, or go back to the newest version that can be read by session.repair()."


@dataclass(frozen=True)
class State:
    """A table at one version.

    Attributes:
        version: manifest number; 0 is the empty table.
        timestamp_ms: commit time, milliseconds since the epoch.
        definition: columns, key, properties.
        files: live base and log files and the sidecar; paths relative to the table.
        txns: application -> highest recorded version (L4).
        oldest: the oldest version that vacuum left readable.
    """

    version: int
    timestamp_ms: int
    definition: TableDefinition
    files: Mapping[str, DataFile] = field(default_factory=dict)
    txns: Mapping[str, int] = field(default_factory=dict)
    oldest: int = 0

    @classmethod
    def begun(cls, change: Change) -> State:
        """The state that a change with ``begins`` makes."""
        assert change.definition is not None
        files = {f.path: f for f in change.added}
        return cls(change.version, change.timestamp_ms, change.definition, files, dict(change.txns), change.oldest or 0)

    def apply(self, change: Change) -> State:
        """The state after the next version."""
        files = {path: f for path, f in self.files.items() if path not in change.removed}
        files.update({f.path: f for f in change.added})
        return State(
            change.version,
            change.timestamp_ms,
            change.definition or self.definition,
            files,
            {**self.txns, **change.txns},
            max(self.oldest, change.oldest or 0),
        )

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form: a checkpoint."""
        return {
            "version": self.version,
            "timestamp": self.timestamp_ms,
            "definition": self.definition.to_dict(),
            "files": [f.to_dict() for f in self.files.values()],
            "txns": dict(self.txns),
            "oldest": self.oldest,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> State:
        """The state that :meth:`to_dict` wrote."""
        files = [DataFile.from_dict(f) for f in data["files"]]
        return cls(
            data["version"],
            data["timestamp"],
            TableDefinition.from_dict(data["definition"]),
            {f.path: f for f in files},
            dict(data["txns"]),
            data["oldest"],
        )


@dataclass(frozen=True)
class Change:
    """What one version changes; paths relative to the table.

    ``commit`` is unique: by it a writer knows its own manifest.
    """

    version: int
    timestamp_ms: int
    operation: str
    added: Sequence[DataFile] = ()
    removed: frozenset[str] = frozenset()
    definition: TableDefinition | None = None
    txns: Mapping[str, int] = field(default_factory=dict)
    oldest: int | None = None
    commit: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def begins(self) -> bool:
        """True for one that names everything, so that nothing before it is read."""
        return self.operation in ("create", "repair")

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form: a manifest."""
        out: dict[str, Any] = {
            "version": self.version,
            "timestamp": self.timestamp_ms,
            "operation": self.operation,
            "commit": self.commit,
        }
        if self.definition:
            out["definition"] = self.definition.to_dict()
        if self.added:
            out["add"] = [f.to_dict() for f in self.added]
        if self.removed:
            out["remove"] = sorted(self.removed)
        if self.txns:
            out["txns"] = dict(self.txns)
        if self.oldest is not None:
            out["oldest"] = self.oldest
        return out

    def to_json(self) -> bytes:
        """The manifest's bytes."""
        return _encode(self.to_dict())

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Change:
        """The change that :meth:`to_dict` wrote."""
        return cls(
            data["version"],
            data["timestamp"],
            data["operation"],
            [DataFile.from_dict(f) for f in data.get("add", ())],
            frozenset(data.get("remove", ())),
            TableDefinition.from_dict(data["definition"]) if "definition" in data else None,
            data.get("txns", {}),
            data.get("oldest"),
            data.get("commit", ""),
        )


def manifest_name(version: int) -> str:
    """Object name of a version's manifest."""
    return f"{LOG}/{version:020d}.json"


def version_of(name: str) -> int | None:
    """The version of an object that is a manifest; None for any other."""
    stem = name[len(LOG) + 1 :].removesuffix(".json")
    return int(stem) if stem.isdecimal() and name == manifest_name(int(stem)) else None


def checkpoint_name(version: int) -> str:
    """Object name of a version's checkpoint."""
    return f"{LOG}/{version:020d}.checkpoint.json"


def read_json(store: ObjectStore, name: str) -> dict[str, Any]:
    """A manifest or checkpoint. Raises BAD_DATA naming a file that is no JSON object; FileNotFoundError."""
    try:
        found = json.loads(store.get(name))
    except ValueError as error:
        raise TrinityError("BAD_DATA", f"Manifest '{store.path(name)}' is corrupt ({error}); {REMEDY}") from error
    if not isinstance(found, dict) or "version" not in found:
        raise TrinityError("BAD_DATA", f"Manifest '{store.path(name)}' is corrupt: it holds no version; {REMEDY}")
    return found


def write_version(store: ObjectStore, before: State, change: Change, checkpoint_interval: int) -> State:
    """Commits the version after ``before``.

    Added files without a commit number get the new version's; those that compaction wrote keep theirs (K6).

    Raises:
        CommitRaced: another writer took the version.
    """
    version = before.version + 1
    change = replace(
        change,
        version=version,
        timestamp_ms=next_timestamp_ms(before.timestamp_ms),
        added=[f.at_commit(version) for f in change.added],
    )
    try:
        put_manifest(store, change)
    except AlreadyExists as taken:
        raise CommitRaced(f"version {version} was taken") from taken
    after = before.apply(change)
    if version % checkpoint_interval == 0:
        after_commit(f"Version {version} has no checkpoint", lambda: write_checkpoint(store, after))
    return after


def put_manifest(store: ObjectStore, change: Change) -> None:
    """Puts a manifest: the commit. Whatever the storage answers, a manifest that is there and ours stands.

    Raises:
        AlreadyExists: another writer took the version.
    """
    name = manifest_name(change.version)
    try:
        store.put_if_absent(name, change.to_json())
    except (AlreadyExists, TrinityError):
        if _commit_of(store, name) != change.commit:
            raise


def _commit_of(store: ObjectStore, name: str) -> str | None:
    try:
        return str(read_json(store, name).get("commit"))
    except (FileNotFoundError, TrinityError):
        return None


def write_checkpoint(store: ObjectStore, state: State) -> None:
    """Writes a version's whole state beside its manifest; one that is there already says the same."""
    try:
        store.put_if_absent(checkpoint_name(state.version), _encode(state.to_dict()))
    except AlreadyExists:
        return


def delete_log(store: ObjectStore, oldest: int, older_than_ms: int) -> None:
    """Deletes the manifests and checkpoints before a version that needs none of them, from the lowest number on.

    The first manifest stays: by it a folder is known for a table.
    """
    before = f"{LOG}/{oldest:020d}"
    # what was left of a manifest that was about to be put
    store.delete(e.path for e in store.list(LOG) if e.path.startswith(f"{LOG}/.") and e.modified_ms < older_than_ms)
    for entry in store.list(LOG, after=manifest_name(0)):
        if entry.path >= before or entry.modified_ms >= older_than_ms:
            return
        store.delete([entry.path])


def _encode(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode()
