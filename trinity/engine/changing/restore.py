"""RESTORE: makes an earlier version the newest one again, in a commit of its own (L11)."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

from trinity.definition.evolve import restored
from trinity.engine.compacting.after_commit import after_commit
from trinity.engine.target import Target
from trinity.engine.travel import version_at
from trinity.errors import TrinityError
from trinity.spi import CommitResult
from trinity.storage import not_ours

__all__ = ["restore"]


def restore(table: Target, version: int | None, timestamp: str | dt.datetime | None) -> CommitResult:
    """Make a version the newest one again; the result's rows, files and bytes are those of the version.

    Args:
        table: the table.
        version: the version.
        timestamp: a time, for the newest version that was committed by then.

    Raises:
        TrinityError: INVALID_ARGUMENTS unless one of both is given, and for a version that cannot be read;
            NOT_SUPPORTED for an external table, and for columns whose types have changed since.
    """
    if (version is None) is (timestamp is None):
        raise TrinityError(
            "INVALID_ARGUMENTS", f"restore() of '{table.name}' needs a version or a timestamp; history() shows them."
        )
    definition = table.definition
    if definition.external:
        raise not_ours(str(table.name), "RESTORE")
    if timestamp is not None:
        version = version_at(table, timestamp)
    done = table.connector.metadata.restore(replace(table.handle, version=version), restored)
    after_commit(table, definition, done)
    return done
