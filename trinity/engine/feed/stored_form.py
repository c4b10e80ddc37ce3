"""The form in which changes are stored in files: the table's columns, and those that the feed adds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import pyarrow as pa

from trinity.engine.feed.shape import CHANGE_TYPE, VERSION
from trinity.engine.writing.ingest import AppendTask, StoredForm, plan_ingest
from trinity.spi import Column, DataFile, TableDefinition
from trinity.storage import ParquetSinkProvider, write_target
from trinity.storage.parquet_sink import OWN_ENDING
from trinity.target import Target

MARKS: Final = (Column(CHANGE_TYPE, "string"), Column(VERSION, "bigint"))
"""Columns that files of changes have after the table's."""
Written: TypeAlias = Mapping[int, Sequence[DataFile]]
"""Version -> the files with its changes."""


def stored_columns(columns: Iterable[Column]) -> tuple[Column, ...]:
    """Return columns as files of changes have them: name, type and field ids."""
    return tuple(Column(c.name, c.type, field_id=c.field_id, within=c.within) for c in columns)


def stored_schema(written: TableDefinition) -> pa.Schema:
    """Return the schema of files of changes."""
    return pa.schema([(c.name, c.to_arrow().type) for c in written.columns])


def written_columns(columns: Iterable[Column]) -> TableDefinition:
    """Return the columns of files of changes, as the definition of a plain table."""
    return TableDefinition("", "", (*stored_columns(columns), *MARKS))


def writing(target: Target, folder: str, written: TableDefinition, given: pa.Schema) -> AppendTask:
    """Return the task that writes changes, of the schema ``given``, into a folder."""
    into = replace(write_target(folder, written, stored_schema(written), statistics=()), ending=OWN_ENDING)
    plain = replace(written, partition_by=(), properties={})
    conformer = plan_ingest(StoredForm.of(target, plain, into.storage), given)
    return AppendTask(ParquetSinkProvider(), into, conformer)


def by_version(files: Iterable[DataFile]) -> Written:
    """Return the files of a folder of changes by the version whose changes they have."""
    found: dict[int, list[DataFile]] = {}
    for file in files:
        found.setdefault(file.partition[VERSION], []).append(file)
    return found
