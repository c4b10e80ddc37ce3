"""Checkpoints: the state of the log at a version, in one Parquet file of Delta's classic kind."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from trinity.spi import Origin
from trinity.storage import AlreadyExists, ObjectStore
from trinity_delta.actions import LAST_CHECKPOINT, LOG, TAG_COMMIT, TAG_ORIGIN, Action, commit_name, file_key
from trinity_delta.checkpoint_files import checkpoint_name, checkpoints_of, read_checkpoint
from trinity_delta.log import read_commit, read_commits

_HADOOPS: Final = f"{LOG}/._last_checkpoint.crc"
"""The checksum that Hadoop keeps beside Delta's hint: Hadoop would refuse Trinity's hint because of it."""
_TEXTS: Final = pa.map_(pa.string(), pa.string())
_VECTOR: Final = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
_FILE: Final = [
    ("path", pa.string()),
    ("partitionValues", _TEXTS),
    ("size", pa.int64()),
    ("dataChange", pa.bool_()),
    ("tags", _TEXTS),
    ("deletionVector", _VECTOR),
    ("baseRowId", pa.int64()),
    ("defaultRowCommitVersion", pa.int64()),
]
_SCHEMA: Final = pa.schema(
    {
        "txn": pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]),
        "add": pa.struct(
            [*_FILE, ("modificationTime", pa.int64()), ("stats", pa.string()), ("clusteringProvider", pa.string())]
        ),
        "remove": pa.struct([*_FILE, ("deletionTimestamp", pa.int64()), ("extendedFileMetadata", pa.bool_())]),
        "metaData": pa.struct(
            [
                ("id", pa.string()),
                ("name", pa.string()),
                ("description", pa.string()),
                ("format", pa.struct([("provider", pa.string()), ("options", _TEXTS)])),
                ("schemaString", pa.string()),
                ("partitionColumns", pa.list_(pa.string())),
                ("configuration", _TEXTS),
                ("createdTime", pa.int64()),
            ]
        ),
        "protocol": pa.struct(
            [
                ("minReaderVersion", pa.int32()),
                ("minWriterVersion", pa.int32()),
                ("readerFeatures", pa.list_(pa.string())),
                ("writerFeatures", pa.list_(pa.string())),
            ]
        ),
        "domainMetadata": pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]),
    }
)
_File = tuple[str, Any, Any]


@dataclass
class Replayed:
    """The state of a log at a version: the newest of the actions that replace one another.

    Attributes:
        parts: the Parquet files of the checkpoint that it was read from; ``removed`` lacks those that they list.
        single: kind -> action, for kinds of which a table has one.
        removed: removed files, except those whose name and deletion vector a live file has.
    """

    parts: tuple[pq.ParquetFile, ...] = ()
    single: dict[str, Action] = field(default_factory=dict)
    txns: dict[str, Action] = field(default_factory=dict)
    domains: dict[str, Action] = field(default_factory=dict)
    files: dict[_File, Action] = field(default_factory=dict)
    removed: dict[_File, Action] = field(default_factory=dict)

    def add(self, actions: Iterable[Action]) -> None:
        """Add the actions of a commit, or of a checkpoint."""
        listed = list(actions)
        # removes first: a file gets a new deletion vector by a remove and an add
        for action in listed:
            if (gone := action.get("remove")) is not None:
                self.files.pop(_key(gone), None)
                self.removed[_key(gone)] = action
        for action in listed:
            self._take(action)

    def _take(self, action: Action) -> None:
        if (added := action.get("add")) is not None:
            self.removed.pop(_key(added), None)
            self.files[_key(added)] = action
        elif (txn := action.get("txn")) is not None:
            self.txns[txn["appId"]] = action
        elif (domain := action.get("domainMetadata")) is not None:
            self.domains.pop(domain["domain"], None)
            if not domain.get("removed"):
                self.domains[domain["domain"]] = action
        for kind in action.keys() & {"metaData", "protocol", "commitInfo"}:
            self.single[kind] = action

    def knows(self, file: Mapping[str, Any]) -> bool:
        """Return whether a file, with its deletion vector, is live or was removed."""
        return _key(file) in self.files or _key(file) in self.removed

    def actions(self) -> list[Action]:
        """Return all actions but those of removed files."""
        return [*self.single.values(), *self.txns.values(), *self.domains.values(), *self.files.values()]


def _key(file: Mapping[str, Any]) -> _File:
    vector = file.get("deletionVector") or {}
    return file_key(file), vector.get("pathOrInlineDv"), vector.get("offset")


def replayed(store: ObjectStore, table: str, version: int, names: Iterable[str]) -> Replayed:
    """Return the sum of the log up to a version: the newest checkpoint up to it, and the commits since.

    Raises:
        TrinityError: BAD_DATA naming the commit file that is damaged.
    """
    found, since = Replayed(), -1
    known = checkpoints_of(names)
    for number in sorted((n for n in known if n <= version), reverse=True):
        readable = (read_checkpoint(store, files) for files in known[number])
        if (read := next(filter(None, readable), None)) is not None:
            found.parts = read.parts
            found.add(read.actions)
            since = number
            break
    if since == version:
        found.add(_commit_of_version(store, table, version, known[version][0]))
    for commit in read_commits(store, table, range(since + 1, version + 1)):
        found.add(commit)
    return found


def _commit_of_version(store: ObjectStore, table: str, version: int, names: Sequence[str]) -> list[Action]:
    """Return the commit of a checkpoint's version, which tells its time; if its file is gone, the checkpoint's time."""
    if store.stat(commit_name(version)):
        return read_commit(store, table, version)
    made = store.stat(f"{LOG}/{names[0]}")
    return [{"commitInfo": {"timestamp": made.modified_ns // 10**6 if made else 0}}]


def at_checkpoint(store: ObjectStore, table: str, version: int) -> Replayed | None:
    """Return the sum of the log at a version with a classic checkpoint.

    None if there is no such checkpoint, or if it has kinds of actions that Trinity does not write.
    """
    name = checkpoint_name(version)
    if not store.exists(name) or (read := read_checkpoint(store, [name.removeprefix(f"{LOG}/")])) is None:
        return None
    if not all(action.keys() <= {*_SCHEMA.names, "commitInfo"} for action in read.actions):
        return None
    found = Replayed(read.parts)
    found.add(read.actions)
    found.add(read_commit(store, table, version))  # a checkpoint lacks the time of its version
    return found


def write_checkpoint(
    store: ObjectStore,
    table: str,
    version: int,
    removed_since_ms: int,
    names: Iterable[str],
    appended_by_others: Mapping[str, int],
) -> None:
    """Write the checkpoint of a version, and the hint at it.

    Removed files have a row group of their own, which no reader of the version needs. A file of rows that another
    engine added gets tags with its origin and commit: once the log has lost that commit, the rows might be copies (L3).

    Args:
        store: the table's folder.
        table: the table's name, for messages.
        version: the version.
        removed_since_ms: files that were removed before this time, in milliseconds since the epoch, are left out.
        names: the names of the log's objects.
        appended_by_others: as :attr:`~trinity_delta.state.State.appended_by_others`.
    """
    found = replayed(store, table, version, names)
    for key, action in found.files.items():
        if (number := appended_by_others.get(action["add"]["path"])) is not None:
            known = {TAG_ORIGIN: Origin.ADDED.value, TAG_COMMIT: str(number)}
            found.files[key] = {"add": {**action["add"], "tags": {**(action["add"].get("tags") or {}), **known}}}
    removed = _removed_files(found, removed_since_ms)
    rows = [_row(action) for action in found.actions() if "commitInfo" not in action]
    kept = pa.table({kind: [row.get(kind) for row in rows] for kind in _SCHEMA.names}, _SCHEMA)
    with pq.ParquetWriter(out := pa.BufferOutputStream(), _SCHEMA) as writer:
        writer.write_table(kept)
        if len(removed):
            empty = {kind: pa.nulls(len(removed), _SCHEMA.field(kind).type) for kind in _SCHEMA.names}
            writer.write_table(pa.table({**empty, "remove": removed}, _SCHEMA))
    data = out.getvalue().to_pybytes()
    try:
        store.put_if_absent(checkpoint_name(version), data, commits=False)
    except AlreadyExists:  # it has the same content
        return
    size = len(rows) + len(removed)
    hint = {"version": version, "size": size, "sizeInBytes": len(data), "numOfAddFiles": len(found.files)}
    if store.on_disk:
        store.delete([_HADOOPS])
    store.put(LAST_CHECKPOINT, json.dumps(hint).encode())


def _removed_files(found: Replayed, since_ms: int) -> pa.StructArray:
    """Return the removed files for a checkpoint: those of the last checkpoint, and those removed since.

    The former may be many. They stay in Arrow, and only those whose path occurs again become Python objects.
    """
    kind = _SCHEMA.field("remove").type
    fresh = [_row(action)["remove"] for action in found.removed.values()]
    older = _older_removed(found.parts)
    known = pa.array([key[0] for key in (*found.files, *found.removed)], pa.string())
    named = pc.is_in(older.field("path"), known)  # removed again, or live again, perhaps with another deletion vector
    again = [file for file in older.filter(named).to_pylist() if not found.knows(file)]
    listed = pa.concat_arrays([older.filter(pc.invert(named)), pa.array([*again, *fresh], kind)])
    return listed.filter(pc.greater_equal(pc.fill_null(listed.field("deletionTimestamp"), 0), since_ms))


def _older_removed(parts: Iterable[pq.ParquetFile]) -> pa.StructArray:
    """Return the removed files that the parts of a checkpoint list. Parts that Trinity wrote need no conversion."""
    kind = _SCHEMA.field("remove").type
    return pa.concat_arrays([pa.array([], kind), *(_removed_in(file, kind) for file in parts)])


def _removed_in(file: pq.ParquetFile, kind: pa.DataType) -> pa.StructArray:
    if "remove" not in file.schema_arrow.names:
        return pa.array([], kind)
    found = file.read(["remove"]).column(0).combine_chunks().drop_null()
    if found.type == kind:
        return found
    return pa.array(found.to_pylist(maps_as_pydicts="strict"), kind)


def _row(action: Action) -> Action:
    """Return an action as a checkpoint has it: ``dataChange`` of a file is false."""
    [(kind, body)] = action.items()
    return {kind: {**body, "dataChange": False}} if kind in ("add", "remove") else action
