"""Version checksums: totals of a version, in a file beside its commit, as Delta's protocol defines them.

Readers compare them with what they have read, and find the protocol and the metadata of a version there.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, Final

from trinity.spi import DataFile
from trinity.storage import ObjectStore
from trinity_delta.actions import LOG
from trinity_delta.schema import is_true

__all__ = ["write_checksum"]

_TIMED: Final = "delta.enableInCommitTimestamps"
_VECTORS: Final = "deletionVectors"


def write_checksum(
    store: ObjectStore,
    version: int,
    info: Mapping[str, Any],
    metadata: Mapping[str, Any],
    protocol: Mapping[str, Any],
    files: Collection[DataFile],
) -> None:
    """Write the checksum of a version. It is not synced: a crash of the machine may lose it."""
    found: dict[str, Any] = {
        "txnId": info["txnId"],
        "tableSizeBytes": sum(file.size for file in files),
        "numFiles": len(files),
        "numMetadata": 1,
        "numProtocol": 1,
        "metadata": metadata,
        "protocol": protocol,
    }
    if is_true(metadata["configuration"], _TIMED):
        found["inCommitTimestampOpt"] = info["inCommitTimestamp"]
    if _VECTORS in (protocol.get("readerFeatures") or ()):
        vectors = [file.deletes.rows for file in files if file.deletes]
        found |= {"numDeletedRecordsOpt": sum(vectors), "numDeletionVectorsOpt": len(vectors)}
    data = json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode()
    store.put(f"{LOG}/{version:020d}.crc", data, sync=False)
