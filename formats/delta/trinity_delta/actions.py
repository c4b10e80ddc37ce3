"""The actions of Delta's log that Trinity's commits consist of, and what the actions of a commit say of it."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote, unquote

from trinity.spi import DataFile, TableDefinition, TransactionId
from trinity.storage import Location, ObjectStore, is_absolute
from trinity_delta.deletes import DeletionVector
from trinity_delta.file_values import loosened, to_delta, to_delta_partition
from trinity_delta.schema import schema_string

LOG: Final = "_delta_log"
LAST_CHECKPOINT: Final = f"{LOG}/_last_checkpoint"
"""The hint at the newest checkpoint."""
SIDECAR_DOMAIN: Final = "trinity.sidecar"
"""Domain metadata: the sidecar's files, with paths relative to the table."""
VACUUM_DOMAIN: Final = "trinity.vacuum"
"""Domain metadata: the oldest readable version."""
ORDER_DOMAIN: Final = "trinity.row-order"
"""Domain metadata: the table's :class:`~trinity.spi.RowOrder`."""
DOMAINS: Final = frozenset({SIDECAR_DOMAIN, VACUUM_DOMAIN, ORDER_DOMAIN})
"""All that Trinity keeps in domain metadata."""
TAG_TIER: Final = "trinity.tier"
TAG_COMMIT: Final = "trinity.commit"
"""Tag of a file from compaction: the highest commit folded (K6). An appended file has its commit's own number."""
TAG_ORDER: Final = "trinity.order"
"""Tag of an appended file: the number of its commit. It is read only where the log's commit files, which have that
number, are gone.
"""
TAG_BUCKET: Final = "trinity.bucket"
ENGINE: Final = "Trinity/"
"""The beginning of the writer's name in Trinity's own commits."""
RESTORE: Final = "RESTORE"
"""Operation of a commit that brings back an older version."""
TAG_OPERATION: Final = "trinity.operation"
"""Tag of a commit: Trinity's name for the operation, where Delta has none."""

Action = dict[str, Any]


def by_kind(actions: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the bodies of actions by their kind."""
    found: dict[str, list[Any]] = {}
    for action in actions:
        for kind, body in action.items():
            found.setdefault(kind, []).append(body)
    return found


def commit_id(found: Mapping[str, Sequence[Any]]) -> str:
    """Return the hash of a commit's ``commitInfo``, or without that of all its actions: it identifies the commit."""
    info = found.get("commitInfo") or found
    return hashlib.sha256(json.dumps(info, sort_keys=True).encode()).hexdigest()


_KNOWN: Final = (
    "path", "partitionValues", "size", "deletionVector", "tags", "baseRowId", "defaultRowCommitVersion",
)  # fmt: skip
"""Fields of an add action that a remove action also has."""


def commit_name(version: int) -> str:
    """Return the object name of a version's commit file."""
    return f"{LOG}/{version:020d}.json"


def file_key(file: Mapping[str, Any]) -> str:
    """Return the path of an ``add`` or ``remove`` action in one spelling: writers spell absolute paths differently."""
    path = str(file["path"])
    return str(Location.of(unquote(path))) if is_absolute(path) else path


def committed_ms(info: Mapping[str, Any]) -> int:
    """Return the time of a ``commitInfo``, milliseconds since the epoch; 0 if it has none."""
    at = info.get("inCommitTimestamp") or info.get("timestamp")
    return at if isinstance(at, int) else 0


def add(file: DataFile, store: ObjectStore, definition: TableDefinition, *, order: int | None = None) -> Action:
    """Return the action that adds a file of a sink.

    An append has the number of its commit. A compaction has none: it changes no row for a stream that reads the table.
    """
    tags = {TAG_TIER: file.tier.value}
    if order is not None:
        tags[TAG_ORDER] = str(order)
    if file.commit is not None:
        tags[TAG_COMMIT] = str(file.commit)
    if file.bucket:
        tags[TAG_BUCKET] = f"{file.bucket.index}/{file.bucket.count}/{file.bucket.types}"
    return {
        "add": {
            "path": quote(store.relative(file.path), safe="/="),
            "partitionValues": to_delta_partition(file.partition, definition),
            "size": file.size,
            "modificationTime": _now_ms(),
            "dataChange": order is not None,
            "stats": to_delta(file, definition),
            "tags": tags,
        }
    }


def remove(path: str, file: DataFile, definition: TableDefinition, *, changes: bool = False) -> Action:
    """Return the action that removes a file under its path in the log; rows change with it, but for a compaction."""
    gone: Action = {
        "path": path,
        "deletionTimestamp": _now_ms(),
        "dataChange": changes,
        "extendedFileMetadata": True,
        "partitionValues": to_delta_partition(file.partition, definition),
        "size": file.size,
    }
    if isinstance(file.deletes, DeletionVector):  # Delta identifies the file by both
        gone["deletionVector"] = file.deletes.to_action()
    return {"remove": gone}


def remove_added(added: Mapping[str, Any], *, changes: bool) -> Action:
    """Return the action that removes a file with its deletion vector, by its add action."""
    known = {key: added[key] for key in _KNOWN if added.get(key) is not None}
    return {"remove": {**known, "deletionTimestamp": _now_ms(), "dataChange": changes, "extendedFileMetadata": True}}


def with_vector(added: Mapping[str, Any], vector: DeletionVector) -> list[Action]:
    """Return the actions that replace a file's deletion vector and nothing else; no row changes (R1)."""
    kept = {key: value for key, value in added.items() if value is not None}
    marked = {"dataChange": False, "stats": loosened(added["stats"]), "deletionVector": vector.to_action()}
    return [remove_added(added, changes=False), {"add": {**kept, **marked}}]


def transaction(txn: TransactionId) -> Action:
    """Return the action that records an application's version (L4)."""
    return {"txn": {"appId": txn[0], "version": txn[1], "lastUpdated": _now_ms()}}


def sidecar_list(files: Iterable[DataFile], store: ObjectStore) -> Action:
    """Return the action that lists the sidecar's files from this commit on."""
    listed = [replace(f, path=store.relative(f.path)).to_dict() for f in files]
    return domain(SIDECAR_DOMAIN, listed)


def vacuum_mark(oldest: int) -> Action:
    """Return the action that marks the oldest readable version."""
    return domain(VACUUM_DOMAIN, {"oldest": oldest})


def new_metadata(definition: TableDefinition, settings: Mapping[str, str]) -> dict[str, Any]:
    """Return the ``metaData`` action of a new table, with its configuration."""
    return {
        "id": definition.id,
        "name": definition.name,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema_string(definition),
        "partitionColumns": list(definition.partition_columns),
        "configuration": dict(settings),
        "createdTime": _now_ms(),
    }


def domain(name: str, content: Sequence[Any] | Mapping[str, Any]) -> Action:
    """Return an action with domain metadata of Trinity, which holds until the next one of that name."""
    text = json.dumps(content, separators=(",", ":"))
    return {"domainMetadata": {"domain": name, "configuration": text, "removed": False}}


def with_domains(actions: Iterable[Mapping[str, Any]], further: Iterable[Action]) -> list[Action]:
    """Return a commit's actions and the domain metadata that it has to repeat, where it writes none of that name."""
    found = [dict(action) for action in actions]
    domains = {action["domainMetadata"]["domain"] for action in found if "domainMetadata" in action}
    return [*found, *(action for action in further if action["domainMetadata"]["domain"] not in domains)]


def _now_ms() -> int:
    return int(time.time() * 1000)


def is_of_trinity(actions: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether Trinity made a commit by itself, not through Delta's classes, and no restore."""
    infos = [action["commitInfo"] for action in actions if "commitInfo" in action]
    return any(str(info.get("engineInfo", "")).startswith(ENGINE) for info in infos) and not is_restore(actions)


def is_restore(actions: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether a commit brought back the files of an older version."""
    return any(action["commitInfo"].get("operation") == RESTORE for action in actions if "commitInfo" in action)
