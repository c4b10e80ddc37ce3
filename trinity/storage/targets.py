"""Makes the targets of sinks, and the results of commits of their files."""

from __future__ import annotations

import uuid
from collections.abc import Collection

import pyarrow as pa

from trinity.merge.options import syncs_files
from trinity.merge.statistics import statistics_columns
from trinity.spi import CommitResult, DataFile, TableDefinition, Tier, WriteTarget
from trinity.storage.position_deletes import DeletesFragment

__all__ = ["commit_result", "write_target"]


def write_target(
    folder: str,
    definition: TableDefinition,
    storage: pa.Schema,
    *,
    statistics: tuple[str, ...] | None = None,
    statement: str | None = None,
) -> WriteTarget:
    """Return the target of one statement.

    Args:
        folder: folder for new files, absolute.
        definition: the table.
        storage: physical Arrow schema of the files.
        statistics: physical columns whose bounds go into fragments; by default those that merging needs.
        statement: prefix of the names of its files; by default a new one.
    """
    return WriteTarget(
        folder=folder,
        storage=storage,
        statistics=statistics_columns(definition) if statistics is None else statistics,
        statement=statement or uuid.uuid4().hex,
        partition_by=definition.partition_by,
        sync=syncs_files(definition.properties),
    )


def commit_result(version: int, files: Collection[DataFile], deletes: Collection[DeletesFragment] = ()) -> CommitResult:
    """Return the result of a commit of some files. Rows of a sidecar do not count: they are not rows of the table."""
    rows = sum(f.live_rows for f in files if f.tier is not Tier.SIDECAR)
    size = sum(f.size for f in files) + sum(f.size for f in deletes)
    delete_files = {path for f in deletes for path in f.deletes.paths}  # one may be about several data files
    return CommitResult(version, rows, len(files) + len(delete_files), size)
