"""The target of a statement's sinks: where they write, the columns whose bounds they keep, and stamps.

Rows of keyed tables are stamped in formats whose files other engines may rewrite (L3).
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Final

import pyarrow as pa

from trinity.merge.options import syncs_files
from trinity.merge.parse import merge_spec
from trinity.spi import STAMP, TableDefinition, WriteTarget, parse_type

__all__ = ["stamped", "statistics_columns", "write_target"]

_MOST_STATISTICS: Final = 32
"""As many as Delta keeps by default."""
_STAMPS: Final = pa.field(STAMP, pa.int64())


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


def statistics_columns(definition: TableDefinition) -> tuple[str, ...]:
    """Return the columns whose bounds every file keeps: by them reads and row changes skip files.

    For a keyed table these are the key, the ordering and what its fold asks for. For a plain one they are the first
    primitive columns, since a statement finds its rows by any column.
    """
    if definition.keyed:
        return (*merge_spec(definition).statistics, *([STAMP] if definition.stamped else []))
    primitive = [c.name for c in definition.columns if not parse_type(c.type).nested]
    return tuple(primitive[:_MOST_STATISTICS])


def stamped(
    definition: TableDefinition, target: WriteTarget, stamp: int, field: pa.Field = _STAMPS
) -> tuple[TableDefinition, WriteTarget]:
    """Return definition and target for sinks whose files have the stamp column, even if the table does not have it yet.

    Args:
        definition: the table.
        target: where sinks write.
        stamp: the stamp of rows without one.
        field: the stamp column in the storage schema.
    """
    if not definition.keyed or definition.external:
        return definition, target
    storage = target.storage if definition.stamped else target.storage.append(field)
    statistics = tuple(dict.fromkeys((*target.statistics, STAMP)))
    return definition.with_stamps(), replace(target, storage=storage, statistics=statistics, stamp=stamp)
