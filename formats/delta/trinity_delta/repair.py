"""A log whose newest commits are damaged: whose table it is, and how they go out of the way."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from trinity.errors import TrinityError
from trinity.storage import make_folder, sync_folders
from trinity_delta.schema import DEFINITION

__all__ = ["damaged", "made_by_trinity", "set_aside"]

_LOG: Final = "_delta_log"
_ASIDE: Final = "_trinity/damaged"
"""Below the table's folder: where no reader looks."""


def damaged(table: str, commit: Path, what: str) -> TrinityError:
    """What a read says of a commit file."""
    return TrinityError(
        "BAD_DATA",
        f"Commit file '{commit}' of Delta table '{table}' is {what}; restore it from a copy, or go back to the newest "
        "version that can be read by session.repair().",
    )


def made_by_trinity(location: str) -> bool:
    """Whether any commit that can be read says so."""
    return any(DEFINITION in action.get("metaData", {}).get("configuration", {}) for action in _actions(location))


def _actions(location: str) -> Iterator[dict[str, Any]]:
    for commit in sorted(Path(location, _LOG).glob("*.json")):
        for line in commit.read_bytes().splitlines():
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict):
                yield found


def set_aside(location: str, readable: int, newest: int) -> None:
    """Moves what the log holds of versions above a readable one to where no reader looks.

    From the newest on, each version's commit file last: after a crash the log has no gap, and this goes on.
    """
    log, aside = Path(location, _LOG), Path(location, _ASIDE, uuid.uuid4().hex)
    make_folder(aside)
    (log / "_last_checkpoint").unlink(missing_ok=True)  # a hint, which may name one of those
    for version in range(newest, readable, -1):
        commit = f"{version:020d}.json"
        found = [name for name in os.listdir(log) if name.lstrip(".").startswith(f"{version:020d}.")]
        for name in sorted(found, key=lambda name: name == commit):
            (log / name).rename(aside / name)
    sync_folders([log, aside])
