"""Delta tables made by hand: logs, data files and checkpoints in the shapes that other engines write."""

from __future__ import annotations

import json
import struct
import uuid
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from trinity_delta.deletes import to_z85

Action = dict[str, Any]
_TYPES: Final = {
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
}
_MAP: Final = pa.map_(pa.string(), pa.string())
_FILE: Final = [
    ("path", pa.string()),
    ("partitionValues", _MAP),
    ("size", pa.int64()),
    ("dataChange", pa.bool_()),
    ("modificationTime", pa.int64()),
    ("stats", pa.string()),
]
CHECKPOINT: Final = pa.schema(
    {
        "protocol": pa.struct(
            [
                ("minReaderVersion", pa.int32()),
                ("minWriterVersion", pa.int32()),
                ("readerFeatures", pa.list_(pa.string())),
                ("writerFeatures", pa.list_(pa.string())),
            ]
        ),
        "metaData": pa.struct(
            [
                ("id", pa.string()),
                ("format", pa.struct([("provider", pa.string()), ("options", _MAP)])),
                ("schemaString", pa.string()),
                ("partitionColumns", pa.list_(pa.string())),
                ("configuration", _MAP),
                ("createdTime", pa.int64()),
            ]
        ),
        "txn": pa.struct([("appId", pa.string()), ("version", pa.int64())]),
        "add": pa.struct(_FILE),
        "remove": pa.struct(
            [("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())],
        ),
        "sidecar": pa.struct([("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())]),
        "checkpointMetadata": pa.struct([("version", pa.int64())]),
    }
)
SIDECARS: Final = ("add", "remove")


def struct_field(name: str, kind: Any, metadata: Action | None = None, *, nullable: bool = True) -> Action:
    """Return a field of a ``schemaString``."""
    return {"name": name, "type": kind, "nullable": nullable, "metadata": metadata or {}}


def schema_string(fields: Sequence[Action]) -> str:
    return json.dumps({"type": "struct", "fields": list(fields)})


def type_of(kind: pa.DataType) -> Any:
    """Return an Arrow type in Delta's JSON."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_struct(kind):
        return {"type": "struct", "fields": [struct_field(f.name, type_of(f.type)) for f in kind]}
    if pa.types.is_map(kind):
        parts = {"keyType": type_of(kind.key_type), "valueType": type_of(kind.item_type)}
        return {"type": "map", **parts, "valueContainsNull": True}
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": type_of(kind.value_type), "containsNull": True}
    return _TYPES[kind]


@dataclass
class Log:
    """A Delta log that is written by hand, commit by commit.

    Attributes:
        folder: the table's folder.
        version: the version of the newest commit.
        known: the present state of the log: kind and name -> action.
    """

    folder: Path
    version: int = -1
    known: dict[tuple[str, str], Action] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        folder: Path,
        schema: pa.Schema | Sequence[Action],
        *,
        partition_by: Sequence[str] = (),
        settings: Mapping[str, str] | None = None,
        readers: Sequence[str] = (),
        writers: Sequence[str] = (),
    ) -> Log:
        """Make a table, whose first commit has its protocol and metadata."""
        fields = [struct_field(f.name, type_of(f.type)) for f in schema] if isinstance(schema, pa.Schema) else schema
        protocol: Action = {"minReaderVersion": 1, "minWriterVersion": 2}
        if readers or writers:
            both = [*readers, *writers]
            protocol = {"minReaderVersion": 3 if readers else 1, "minWriterVersion": 7, "writerFeatures": both}
            protocol |= {"readerFeatures": list(readers)} if readers else {}
        metadata = {
            "id": str(uuid.uuid4()),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema_string(fields),
            "partitionColumns": list(partition_by),
            "configuration": dict(settings or {}),
            "createdTime": 1,
        }
        log = cls(folder)
        log.place.mkdir(parents=True)
        log.commit({"protocol": protocol}, {"metaData": metadata})
        return log

    @property
    def place(self) -> Path:
        return self.folder / "_delta_log"

    def name(self, ending: str, version: int | None = None) -> Path:
        return self.place / f"{self.version if version is None else version:020d}.{ending}"

    def commit(self, *actions: Action, info: Any = None) -> None:
        """Write the next commit."""
        self.version += 1
        usual = {"timestamp": 1_700_000_000_000 + self.version, "operation": "WRITE", "operationParameters": {}}
        lines = [{"commitInfo": usual if info is None else info}, *actions]
        self.name("json").write_text("\n".join(map(json.dumps, lines)))
        for action in actions:
            [(kind, body)] = action.items()
            if kind == "remove":
                self.known.pop(("add", body["path"]), None)
            self.known[kind, body.get("path") or body.get("appId") or ""] = action

    def add(self, rows: pa.Table, path: str, *, as_path: str | None = None, **more: Any) -> Action:
        """Write a data file, and return the action that adds it.

        Args:
            rows: its rows.
            path: its path below the table's folder, without escapes.
            as_path: its path in the log, where that differs.
            more: fields of the action, and options of the Parquet writer under ``parquet``.
        """
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, file, **more.pop("parquet", {}))
        stats = json.dumps({"numRecords": rows.num_rows})
        added = {"path": as_path or path, "partitionValues": {}, "size": file.stat().st_size, "modificationTime": 1}
        body = {**added, "dataChange": True, "stats": stats, **more}
        return {"add": {key: value for key, value in body.items() if value is not None}}

    def append(self, rows: pa.Table, path: str, **more: Any) -> None:
        self.commit(self.add(rows, path, **more))

    def remove(self, path: str) -> Action:
        return {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True}}

    def forget(self, before: int) -> None:
        """Delete the commits before a version, as a log cleanup does."""
        for version in range(before):
            self.name("json", version).unlink(missing_ok=True)

    # -- checkpoints ------------------------------------------------------------------------------------------

    def rows(self) -> list[Action]:
        return [action for action in self.known.values() if "commitInfo" not in action]

    def classic(self, schema: pa.Schema = CHECKPOINT, rows: Iterable[Action] | None = None) -> None:
        write_actions(self.name("checkpoint.parquet"), list(self.rows() if rows is None else rows), schema)

    def in_parts(self, *, written: int = 3) -> None:
        """Write the first parts of a checkpoint of three parts, by default all."""
        rows = self.rows()
        for part in range(1, written + 1):
            path = self.name(f"checkpoint.{part:010d}.{3:010d}.parquet")
            write_actions(path, rows[part - 1 :: 3], CHECKPOINT)

    def second_version(self, ending: str) -> None:
        """Write a checkpoint of version 2, whose files are listed in two sidecars."""
        rows = self.rows()
        files = [row for row in rows if row.keys() <= set(SIDECARS)]
        names = [f"{uuid.uuid4()}.parquet" for _ in range(2)]
        (self.place / "_sidecars").mkdir(exist_ok=True)
        for number, name in enumerate(names):
            write_actions(self.place / "_sidecars" / name, files[number::2], CHECKPOINT, SIDECARS)
        sizes = [(self.place / "_sidecars" / name).stat().st_size for name in names]
        about = [{"path": n, "sizeInBytes": size, "modificationTime": 1} for n, size in zip(names, sizes, strict=True)]
        added = [{"sidecar": sidecar} for sidecar in about]
        top = [{"checkpointMetadata": {"version": self.version}}, *(r for r in rows if r not in files), *added]
        path = self.name(f"checkpoint.{uuid.uuid4()}.{ending}")
        if ending == "json":
            path.write_text("\n".join(map(json.dumps, top)))
        else:
            write_actions(path, top, CHECKPOINT)


def write_actions(path: Path, rows: Sequence[Action], schema: pa.Schema, kinds: Sequence[str] = ()) -> None:
    """Write actions as rows of a checkpoint file."""
    fields = [field for field in schema if not kinds or field.name in kinds]
    columns = [pa.array([_maps(row.get(field.name)) for row in rows], field.type) for field in fields]
    pq.write_table(pa.table(columns, schema=pa.schema(fields)), path)


def _maps(body: Any) -> Any:
    """Return an action with its maps as lists of pairs, as Arrow wants them."""
    if not isinstance(body, dict):
        return body
    named = ("partitionValues", "configuration", "options")
    return {key: list(value.items()) if key in named else _maps(value) for key, value in body.items()}


# -- deletion vectors -----------------------------------------------------------------------------------------


def _bitmap(positions: Sequence[int]) -> bytes:
    """Return a bitmap in Roaring's portable 64-bit form, with one container of few numbers."""
    numbers = b"".join(struct.pack("<H", position) for position in positions)
    container = struct.pack("<IIHHI", 12346, 1, 0, len(positions) - 1, 16) + numbers
    return struct.pack("<IQI", 1681511377, 1, 0) + container


def inline_vector(positions: Sequence[int]) -> Action:
    """Return a deletion vector that is stored in the log itself."""
    data = _bitmap(positions)
    text = to_z85(data + b"\0" * (-len(data) % 4))
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(data), "cardinality": len(positions)}


def vector_file(folder: Path, positions: Sequence[int]) -> Action:
    """Write a deletion vector to a file of its own, and return its descriptor."""
    data, name = _bitmap(positions), uuid.uuid4()
    framed = struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    (folder / f"deletion_vector_{name}.bin").write_bytes(b"\x01" + framed)
    place = {"storageType": "u", "pathOrInlineDv": to_z85(name.bytes), "offset": 1}
    return {**place, "sizeInBytes": len(data), "cardinality": len(positions)}
