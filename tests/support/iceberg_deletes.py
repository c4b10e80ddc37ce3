"""Delete files as streaming engines write them, added to a table by PyIceberg, which cannot write any itself."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    write_manifest_list,
)
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import AddSnapshotUpdate, AssertTableUUID, SetSnapshotRefUpdate
from pyiceberg.typedef import Record

from trinity_iceberg.deletes import DeletesWriter

_numbers = itertools.count(1)
_IDS = (2147483546, 2147483545)


def delete_by_equality(table: Table, rows: pa.Table, partition: Record | None = None) -> None:
    """Delete the rows that equal one of these rows in all columns of the latter."""
    ids = [table.schema().find_field(name).field_id for name in rows.column_names]
    entry: dict[str, Any] = {"content": DataFileContent.EQUALITY_DELETES, "equality_ids": ids}
    _commit(table, _numbered(rows, ids), entry, partition)


def delete_by_position(table: Table, places: dict[str, list[int]]) -> None:
    """Delete rows by their positions: data file, as the table names it, -> positions."""
    names = np.repeat(list(places), [len(found) for found in places.values()]).tolist()
    rows = pa.table({"file_path": names, "pos": pa.array([n for found in places.values() for n in found], pa.int64())})
    entry: dict[str, Any] = {"content": DataFileContent.POSITION_DELETES, "equality_ids": None}
    _commit(table, _numbered(rows, _IDS), entry, None)


def _numbered(rows: pa.Table, ids: Sequence[int]) -> pa.Table:
    fields = [f.with_metadata({"PARQUET:field_id": str(n)}) for f, n in zip(rows.schema, ids, strict=True)]
    return rows.cast(pa.schema(fields))


def _commit(table: Table, rows: pa.Table, entry: dict[str, Any], partition: Record | None) -> None:
    path = f"{table.location()}/data/deletes-{next(_numbers)}.parquet"
    with table.io.new_output(path).create() as out:
        pq.write_table(rows, out)
    file = DataFile.from_args(
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=partition or Record(),
        record_count=len(rows),
        file_size_in_bytes=len(table.io.new_input(path)),
        key_metadata=None,
        split_offsets=None,
        sort_order_id=None,
        **entry,
    )
    spec = table.spec() if partition else next(s for s in table.specs().values() if s.is_unpartitioned())
    file.spec_id = spec.spec_id
    parent = table.current_snapshot()
    assert parent is not None
    number, sequence = uuid.uuid4().int >> 66, table.metadata.next_sequence_number()
    output = table.io.new_output(f"{table.location()}/metadata/{uuid.uuid4()}-m0.avro")
    with DeletesWriter(spec, table.schema(), output, number, "deflate") as writer:
        writer.add_entry(ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=number, data_file=file))
    manifests: list[ManifestFile] = [*parent.manifests(table.io), writer.to_manifest_file()]
    listed = f"{table.location()}/metadata/snap-{number}.avro"
    with write_manifest_list(2, table.io.new_output(listed), number, parent.snapshot_id, sequence, "deflate") as lists:
        lists.add_manifests(manifests)
    made = Snapshot.model_validate(
        {
            "snapshot-id": number,
            "parent-snapshot-id": parent.snapshot_id,
            "sequence-number": sequence,
            "manifest-list": listed,
            "summary": Summary(Operation.DELETE),
            "schema-id": table.schema().schema_id,
        }
    )
    main = {"ref-name": "main", "type": "branch", "snapshot-id": number}
    reference = SetSnapshotRefUpdate.model_validate(main)
    table.catalog.commit_table(
        table, (AssertTableUUID(uuid=table.metadata.table_uuid),), (AddSnapshotUpdate(snapshot=made), reference)
    )
    table.refresh()
