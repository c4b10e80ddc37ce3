"""The JSON of a version: a manifest holds what it changed, a checkpoint its whole state.

``<table>/_trinity/log/<20 digits>.json`` holds added and removed files, the sidecar, a new definition, txn records.
Every n-th version also has ``<20 digits>.checkpoint.json``. Paths in both are relative to the table, so that the table
can be moved.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trinity.errors import TrinityError
from trinity.spi import CommitOperation, DataFile, TableDefinition
from trinity.storage import ObjectStore, PositionDeletes, TableVersion

LOG = "_trinity/log"
NEWEST = f"{LOG}/_newest.json"
"""The object that names a version with a checkpoint: a hint, from which the search for the newest version begins."""
REMEDY = "restore it from a copy, or go back to the newest version that can be read by session.repair()."


@dataclass(frozen=True)
class Manifest:
    """The change that makes a version out of the one before. Its paths are absolute.

    ``commit`` is unique: by it a writer recognises its own manifest. ``parent`` is the ``commit`` of the version
    before; it is empty in a manifest that needs no earlier one.
    """

    number: int
    timestamp_ms: int
    operation: str
    added: Sequence[DataFile] = ()
    removed: frozenset[str] = frozenset()
    definition: TableDefinition | None = None
    txns: Mapping[str, int] = field(default_factory=dict)
    oldest: int | None = None
    commit: str = ""
    parent: str = ""

    @classmethod
    def between(cls, before: TableVersion | None, after: TableVersion) -> Manifest:
        """Return the manifest that makes ``after`` out of ``before``; without ``before`` it names all of ``after``."""
        facts = (after.number, after.timestamp_ms, after.operation)
        if before is None:
            files, oldest = after.files, after.oldest or None
            return cls(*facts, files, frozenset(), after.definition, after.txns, oldest, after.commit)
        added, removed = after.difference(before)
        return cls(
            *facts,
            added,
            removed,
            after.definition if after.definition != before.definition else None,
            {app: number for app, number in after.txns.items() if before.txns.get(app) != number},
            after.oldest if after.oldest > before.oldest else None,
            after.commit,
            before.commit,
        )

    def applied(self, before: TableVersion | None) -> TableVersion:
        """Return the version after the change. ``before`` is None for a manifest that needs no earlier one."""
        if before is None:
            assert self.definition is not None
            before = TableVersion(self.number, self.timestamp_ms, self.operation, self.definition)
        return replace(
            before,
            number=self.number,
            timestamp_ms=self.timestamp_ms,
            operation=self.operation,
            definition=self.definition or before.definition,
            files=(*(f for f in before.files if f.path not in self.removed), *self.added),
            txns={**before.txns, **self.txns},
            oldest=max(before.oldest, self.oldest or 0),
            commit=self.commit,
        )

    def to_json(self, store: ObjectStore) -> bytes:
        """Return the manifest's bytes."""
        out: dict[str, Any] = {
            "version": self.number,
            "timestamp": self.timestamp_ms,
            "operation": self.operation,
            "commit": self.commit,
        }
        if self.parent:
            out["parent"] = self.parent
        if self.definition:
            out["definition"] = self.definition.to_dict()
        if self.added:
            out["add"] = _to_dicts(store, self.added)
        if self.removed:
            out["remove"] = sorted(store.relative(path) for path in self.removed)
        if self.txns:
            out["txns"] = dict(self.txns)
        if self.oldest is not None:
            out["oldest"] = self.oldest
        return _encode(out)

    @classmethod
    def from_dict(cls, store: ObjectStore, data: Mapping[str, Any]) -> Manifest:
        """Return the manifest that :meth:`to_json` wrote."""
        return cls(
            data["version"],
            data["timestamp"],
            data["operation"],
            _from_dicts(store, data.get("add", ())),
            frozenset(store.path(name) for name in data.get("remove", ())),
            TableDefinition.from_dict(data["definition"]) if "definition" in data else None,
            data.get("txns", {}),
            data.get("oldest"),
            data.get("commit", ""),
            data.get("parent", ""),
        )


def begins(version: TableVersion | Manifest) -> bool:
    """Return whether a version's manifest names everything, so that no earlier one is read."""
    return version.operation in (CommitOperation.CREATE, CommitOperation.REPAIR)


def to_checkpoint(store: ObjectStore, version: TableVersion) -> bytes:
    """Return the checkpoint's bytes."""
    out = {
        "version": version.number,
        "timestamp": version.timestamp_ms,
        "definition": version.definition.to_dict(),
        "files": _to_dicts(store, version.files),
        "txns": dict(version.txns),
        "oldest": version.oldest,
        "commit": version.commit,
    }
    return _encode(out)


def from_checkpoint(store: ObjectStore, data: Mapping[str, Any]) -> TableVersion:
    """Return the version that :func:`to_checkpoint` wrote. Its operation is only in the manifest."""
    return TableVersion(
        data["version"],
        data["timestamp"],
        "",
        TableDefinition.from_dict(data["definition"]),
        tuple(_from_dicts(store, data["files"])),
        dict(data["txns"]),
        data["oldest"],
        data.get("commit", ""),
    )


def manifest_name(number: int) -> str:
    """Return the object name of a version's manifest."""
    return f"{LOG}/{number:020d}.json"


def checkpoint_name(number: int) -> str:
    """Return the object name of a version's checkpoint."""
    return f"{LOG}/{number:020d}.checkpoint.json"


def to_hint(number: int) -> bytes:
    """Return the bytes of :data:`NEWEST`."""
    return _encode({"version": number})


def number_of(name: str) -> int | None:
    """Return the version of a manifest's object name; None for any other name."""
    stem = name[len(LOG) + 1 :].removesuffix(".json")
    return int(stem) if stem.isdecimal() and name == manifest_name(int(stem)) else None


def read_json(store: ObjectStore, name: str) -> dict[str, Any]:
    """Read a manifest or checkpoint. Raises BAD_DATA naming a file that is no JSON object; FileNotFoundError."""
    try:
        found = json.loads(store.get(name))
    except ValueError as error:
        raise TrinityError("BAD_DATA", f"Manifest '{store.path(name)}' is corrupt ({error}); {REMEDY}") from error
    if not isinstance(found, dict) or "version" not in found:
        raise TrinityError("BAD_DATA", f"Manifest '{store.path(name)}' is corrupt: it holds no version; {REMEDY}")
    return found


def _to_dicts(store: ObjectStore, files: Sequence[DataFile]) -> list[dict[str, Any]]:
    return [_to_dict(store, file) for file in files]


def _to_dict(store: ObjectStore, file: DataFile) -> dict[str, Any]:
    found = {**file.to_dict(), "path": store.relative(file.path)}
    if isinstance(file.deletes, PositionDeletes):
        found["deletes"] = file.deletes.to_dict(store)
    return found


def _from_dicts(store: ObjectStore, data: Sequence[Mapping[str, Any]]) -> list[DataFile]:
    return [_from_dict(store, d) for d in data]


def _from_dict(store: ObjectStore, data: Mapping[str, Any]) -> DataFile:
    file = DataFile.from_dict({**data, "path": store.path(data["path"])})
    return replace(file, deletes=PositionDeletes.from_dict(store, data["deletes"])) if "deletes" in data else file


def _encode(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode()
