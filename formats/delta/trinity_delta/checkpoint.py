"""Checkpoints: all that the log says by a version, in one Parquet file of Delta's classic kind."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from trinity.errors import TrinityError
from trinity.storage import AlreadyExists, ObjectStore, logger
from trinity_delta.actions import LAST_CHECKPOINT, LOG, Action, commit_name
from trinity_delta.log import read_commit, read_commits

__all__ = ["Replayed", "at_checkpoint", "replayed", "write_checkpoint"]

_log = logger(__name__)
_HADOOPS: Final = f"{LOG}/._last_checkpoint.crc"
"""The checksum that Hadoop keeps beside a hint of Delta's: it would refuse another hint by it."""
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint\.parquet")
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
_NAMED_BY: Final = {
    "txn": "appId",
    "add": "path",
    "metaData": "id",
    "protocol": "minReaderVersion",
    "domainMetadata": "domain",
}
"""Kind of action -> a field that each one has; without files that were removed."""
_File = tuple[str, Any, Any]


@dataclass
class Replayed:
    """The sum of a log by a version: of what replaces one another the newest.

    Attributes:
        checkpoint: the one that it begins with, whose removed files are left out; None for none.
        single: kind -> action, of which a table has one.
        txns: application -> action.
        domains: name -> action; those that were removed are not kept.
        files: live files.
        removed: files that were removed, of which no live one has the name and the deletion vector.
    """

    checkpoint: pq.ParquetFile | None = None
    single: dict[str, Action] = field(default_factory=dict)
    txns: dict[str, Action] = field(default_factory=dict)
    domains: dict[str, Action] = field(default_factory=dict)
    files: dict[_File, Action] = field(default_factory=dict)
    removed: dict[_File, Action] = field(default_factory=dict)

    def add(self, actions: Iterable[Action]) -> None:
        """Takes in a commit, or a checkpoint."""
        listed = list(actions)
        # first what is taken: a file gets a new deletion vector by a remove and an add
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
        """True for a file, with its deletion vector, that is live or was removed."""
        return _key(file) in self.files or _key(file) in self.removed

    def actions(self) -> list[Action]:
        """All but the files that were removed."""
        return [*self.single.values(), *self.txns.values(), *self.domains.values(), *self.files.values()]


def _key(file: Mapping[str, Any]) -> _File:
    vector = file.get("deletionVector") or {}
    return file["path"], vector.get("pathOrInlineDv"), vector.get("offset")


def replayed(store: ObjectStore, table: str, version: int, names: Iterable[str]) -> Replayed:
    """The sum of the log by a version: from the newest checkpoint up to it, and the commits since.

    Args:
        store: the table's folder.
        table: its name, for messages.
        version: its version.
        names: the names of the log's objects.

    Raises:
        TrinityError: BAD_DATA naming the commit file that is damaged; NOT_SUPPORTED for a log that was cleaned up to a
            checkpoint of another kind.
    """
    found, since, names = Replayed(), -1, list(names)
    numbers = [int(match[1]) for name in names if (match := _CHECKPOINT.fullmatch(name))]
    for number in sorted((n for n in numbers if n <= version), reverse=True):
        if (read := _read(store, number)) is not None:
            found.checkpoint, actions = read
            found.add(actions)
            since = number
            break
    others = not numbers and any(".checkpoint." in name for name in names)
    if others and commit_name(0).rpartition("/")[2] not in names:
        raise _unknown_checkpoints(store, table)
    # of its version a checkpoint does not say when that was committed
    wanted = range(since + 1, version + 1) or range(version, version + 1)
    for commit in read_commits(store, table, wanted):
        found.add(commit)
    return found


def at_checkpoint(store: ObjectStore, table: str, version: int) -> Replayed | None:
    """The sum of the log by a version that has a checkpoint; None where there is none that tells all in one file.

    Args:
        store: the table's folder.
        table: its name, for messages.
        version: its version, whose commit file is there.
    """
    if not store.exists(_name(version)) or (read := _read(store, version)) is None:
        return None
    file, actions = read
    if not _is_told(actions):
        return None
    found = Replayed(file)
    found.add(actions)
    found.add(read_commit(store, table, version))  # a checkpoint does not say when its version was committed
    return found


def _is_told(actions: Collection[Action]) -> bool:
    """True for actions of the kinds that are known, of which those of files say in text what the files hold."""
    kinds = {*_SCHEMA.names, "commitInfo"}
    files = (action["add"] for action in actions if "add" in action)
    return all(action.keys() <= kinds for action in actions) and all(file.get("stats") is not None for file in files)


def _unknown_checkpoints(store: ObjectStore, table: str) -> TrinityError:
    return TrinityError(
        "NOT_SUPPORTED",
        f"Delta table '{table}': the log of '{store.root}' begins with a checkpoint of several parts, or of version 2, "
        "which Trinity reads on local disks alone. Have the engine that writes it make a classic one.",
    )


def write_checkpoint(store: ObjectStore, table: str, version: int, removed_since_ms: int, names: Iterable[str]) -> None:
    """Writes the checkpoint of a version, and the hint at it; none where it could not say all that others have said.

    Files that were removed stand in a row group of their own, which no reader of the version needs.

    Args:
        store: the table's folder.
        table: its name, for messages.
        version: its version.
        removed_since_ms: files that were removed before are not in it, milliseconds since the epoch.
        names: the names of the log's objects.
    """
    found = replayed(store, table, version, names)
    if not _is_told(found.actions()):
        return
    removed = _removed(found, removed_since_ms)
    rows = [_row(action) for action in found.actions() if "commitInfo" not in action]
    kept = pa.table({kind: [row.get(kind) for row in rows] for kind in _SCHEMA.names}, _SCHEMA)
    with pq.ParquetWriter(out := pa.BufferOutputStream(), _SCHEMA) as writer:
        writer.write_table(kept)
        if len(removed):
            empty = {kind: pa.nulls(len(removed), _SCHEMA.field(kind).type) for kind in _SCHEMA.names}
            writer.write_table(pa.table({**empty, "remove": removed}, _SCHEMA))
    data = out.getvalue().to_pybytes()
    try:
        store.put_if_absent(_name(version), data, commits=False)
    except AlreadyExists:  # it says the same
        return
    size = len(rows) + len(removed)
    hint = {"version": version, "size": size, "sizeInBytes": len(data), "numOfAddFiles": len(found.files)}
    if store.on_disk:
        store.delete([_HADOOPS])
    store.put(LAST_CHECKPOINT, json.dumps(hint).encode())


def _removed(found: Replayed, since_ms: int) -> pa.StructArray:
    """The removed files of a checkpoint: those that the one before has, which Python does not look at, and new ones."""
    kind = _SCHEMA.field("remove").type
    fresh = [_row(action)["remove"] for action in found.removed.values()]
    older = _older_removed(found.checkpoint)
    known = pa.array([key[0] for key in (*found.files, *found.removed)], pa.string())
    named = pc.is_in(older.field("path"), known)  # removed again, or live once more, perhaps with other rows deleted
    again = [file for file in older.filter(named).to_pylist() if not found.knows(file)]
    listed = pa.concat_arrays([older.filter(pc.invert(named)), pa.array([*again, *fresh], kind)])
    return listed.filter(pc.greater_equal(pc.fill_null(listed.field("deletionTimestamp"), 0), since_ms))


def _older_removed(file: pq.ParquetFile | None) -> pa.StructArray:
    """The removed files of a checkpoint, if there is one; as it has them where it is of Trinity's."""
    kind = _SCHEMA.field("remove").type
    if file is None or "remove" not in file.schema_arrow.names:
        return pa.array([], kind)
    found = file.read(["remove"]).column(0).combine_chunks().drop_null()
    if found.type == kind:
        return found
    return pa.array([_present(file) for file in found.to_pylist(maps_as_pydicts="strict")], kind)


def _name(version: int) -> str:
    return f"{LOG}/{version:020d}.checkpoint.parquet"


def _row(action: Action) -> Action:
    """An action as a checkpoint has it: of its files none is a change."""
    [(kind, body)] = action.items()
    return {kind: {**body, "dataChange": False}} if kind in ("add", "remove") else action


def _read(store: ObjectStore, version: int) -> tuple[pq.ParquetFile, list[Action]] | None:
    """A checkpoint and its actions; None for one that is gone, damaged or empty: the commits stand in for it.

    Most actions are of files that were removed; these are left out.

    Args:
        store: the table's folder.
        version: its version.
    """
    path = store.path(_name(version))
    try:
        file = pq.ParquetFile(pa.BufferReader(store.get(path)))
        kinds = [kind for kind in file.schema_arrow.names if kind != "remove"]
        table = file.read_row_groups(_groups(file), kinds)
        said = [pc.is_valid(column) for column in table.columns]
        rows = table.filter(reduce(pc.or_, said)).to_pylist(maps_as_pydicts="strict")
    except (OSError, ValueError, KeyError) as error:
        _log.warning("Checkpoint '%s' is passed over: %s", path, error)
        return None
    found = ({kind: _present(body) for kind, body in row.items() if body is not None} for row in rows)
    actions = [action for action in found if action]
    return (file, actions) if actions else None


def _groups(file: pq.ParquetFile) -> list[int]:
    """The row groups of a checkpoint in which files that were removed are not all that there is."""
    numbers = range(file.num_row_groups)
    if not {*file.schema_arrow.names} <= {*_NAMED_BY, "remove"}:
        return [*numbers]
    leaves = {f"{kind}.{name}" for kind, name in _NAMED_BY.items()}
    return [number for number in numbers if _holds(file.metadata.row_group(number), leaves)]


def _holds(group: pq.RowGroupMetaData, leaves: Container[str]) -> bool:
    """True where some of the columns may have values."""
    for column in map(group.column, range(group.num_columns)):
        if column.path_in_schema in leaves:
            found = column.statistics
            if found is None or not found.has_null_count or found.null_count < column.num_values:
                return True
    return False


def _present(body: Mapping[str, Any]) -> Action:
    """An action without the fields that it leaves open; a checkpoint has columns for all that there may be.

    Without those either in which another engine says the same once more, as values and not as text.
    """
    found = {key: value for key, value in body.items() if value is not None and not key.endswith("_parsed")}
    if (vector := found.get("deletionVector")) is not None:
        found["deletionVector"] = {key: value for key, value in vector.items() if value is not None}
    return found
