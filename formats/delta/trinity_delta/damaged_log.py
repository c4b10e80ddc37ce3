"""Logs with damaged newest commits: finding out who made the table, and moving those commits away."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any, Final

from trinity.errors import TrinityError
from trinity.storage import ObjectStore
from trinity_delta.actions import LAST_CHECKPOINT, LOG, commit_name
from trinity_delta.schema import DEFINITION

_DAMAGED: Final = "_trinity/damaged"
"""Folder below the table's, in which no reader looks."""


def damaged(table: str, commit: str, what: str) -> TrinityError:
    """Return the error of a read that found a damaged commit file."""
    return TrinityError(
        "BAD_DATA",
        f"Commit file '{commit}' of Delta table '{table}' is {what}; restore it from a copy. A table that Trinity made "
        "goes back to the newest version that can be read by session.repair().",
    )


def made_by_trinity(location: str) -> bool:
    """Return whether any readable commit or checksum shows that Trinity made the table."""
    found = (action.get("metaData") or action.get("metadata") or {} for action in _actions(ObjectStore(location)))
    return any(DEFINITION in metadata.get("configuration", {}) for metadata in found)


def _actions(store: ObjectStore) -> Iterator[dict[str, Any]]:
    for name in sorted(name for name in store.names(LOG) if name[:20].isdigit() and name.endswith((".json", ".crc"))):
        for line in store.get(f"{LOG}/{name}").splitlines():
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict):
                yield found


def move_damaged(location: str, readable: int, newest: int) -> None:
    """Move the log files of versions above a readable one to where no reader looks.

    The newest version is moved first, and of each version the commit file last. So after a crash the log has no gap,
    and a second run continues.
    """
    store, damaged = ObjectStore(location), f"{_DAMAGED}/{uuid.uuid4().hex}"
    store.make_folder(damaged)
    store.delete([LAST_CHECKPOINT])  # a hint, which may name one of those versions
    for version in range(newest, readable, -1):
        commit = commit_name(version).removeprefix(f"{LOG}/")
        found = [name for name in store.names(LOG) if name.lstrip(".").startswith(f"{version:020d}.")]
        for name in sorted(found, key=lambda name: name == commit):
            store.move(f"{LOG}/{name}", f"{damaged}/{name}")
    store.sync_folders([LOG, damaged])
