"""The actions of Delta's log that a commit of Trinity's consists of."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

from trinity.spi import DataFile, TableDefinition, TransactionId
from trinity.storage import ObjectStore
from trinity_delta.partition import to_delta_partition
from trinity_delta.schema import configuration, schema_string
from trinity_delta.stats import to_delta

__all__ = [
    "LOG",
    "SIDECAR_DOMAIN",
    "TAG_BUCKET",
    "TAG_COMMIT",
    "TAG_ORDER",
    "TAG_TIER",
    "VACUUM_DOMAIN",
    "Action",
    "add",
    "commit_name",
    "domain",
    "new_metadata",
    "remove",
    "remove_added",
    "sidecar_list",
    "transaction",
    "vacuum_mark",
]

LOG: Final = "_delta_log"
SIDECAR_DOMAIN: Final = "trinity.sidecar"
"""Domain metadata: the sidecar's files, paths relative to the table."""
VACUUM_DOMAIN: Final = "trinity.vacuum"
"""Domain metadata: the oldest readable version."""
TAG_TIER: Final = "trinity.tier"
TAG_COMMIT: Final = "trinity.commit"
"""Tag of a file from compaction: the highest commit folded (K6). An appended file has its commit's own number."""
TAG_ORDER: Final = "trinity.order"
"""Tag of an appended file: the number that its commit is about to have. Read only where the log's commit files, which
tell it otherwise, are gone."""
TAG_BUCKET: Final = "trinity.bucket"

Action = dict[str, Any]


def commit_name(version: int) -> str:
    """Object name of a version's commit file."""
    return f"{LOG}/{version:020d}.json"


def add(file: DataFile, store: ObjectStore, definition: TableDefinition, *, order: int | None = None) -> Action:
    """Adds a file of a sink.

    Args:
        file: the fragment's file, absolute path.
        store: the table's folder.
        definition: the table, for the types of statistics and partition values.
        order: of an append, the number that its commit is about to have; None for compaction, which changes no row
            for a stream that reads the table.
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
    """Removes a file.

    Args:
        path: as the log has it.
        file: the file.
        definition: the table, for the types of partition values.
        changes: True when rows change with it; False in a compaction.
    """
    return {
        "remove": {
            "path": path,
            "deletionTimestamp": _now_ms(),
            "dataChange": changes,
            "extendedFileMetadata": True,
            "partitionValues": to_delta_partition(file.partition, definition),
            "size": file.size,
        }
    }


def remove_added(added: Mapping[str, Any]) -> Action:
    """Removes a file of others by its add action, with its deletion vector: Delta knows it by both. Rows change."""
    known = {k: added[k] for k in ("path", "partitionValues", "size", "deletionVector") if added.get(k) is not None}
    return {"remove": {**known, "deletionTimestamp": _now_ms(), "dataChange": True, "extendedFileMetadata": True}}


def transaction(txn: TransactionId) -> Action:
    """Records an application's version (L4)."""
    return {"txn": {"appId": txn[0], "version": txn[1], "lastUpdated": _now_ms()}}


def sidecar_list(files: Iterable[DataFile], store: ObjectStore) -> Action:
    """Names the files that are the sidecar from this commit on."""
    listed = [replace(f, path=store.relative(f.path)).to_dict() for f in files]
    return domain(SIDECAR_DOMAIN, listed)


def vacuum_mark(oldest: int) -> Action:
    """Says which version is the oldest readable one."""
    return domain(VACUUM_DOMAIN, {"oldest": oldest})


def new_metadata(definition: TableDefinition, checked: Mapping[str, str]) -> dict[str, Any]:
    """The ``metaData`` action of a new table, with its configuration as Delta has checked it."""
    return {
        "id": str(uuid.uuid4()),
        "name": definition.name,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema_string(definition),
        "partitionColumns": list(definition.partition_columns),
        "configuration": {**configuration(definition, new=True), **checked},
        "createdTime": _now_ms(),
    }


def domain(name: str, content: Sequence[Any] | Mapping[str, Any]) -> Action:
    """Domain metadata of Trinity's: what a table keeps under a name until the next one."""
    text = json.dumps(content, separators=(",", ":"))
    return {"domainMetadata": {"domain": name, "configuration": text, "removed": False}}


def _now_ms() -> int:
    return int(time.time() * 1000)
