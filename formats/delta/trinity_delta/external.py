"""Delta tables that other engines made: their schema, what Trinity reads and writes of them, and their native scan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from trinity.errors import TrinityError
from trinity.spi import (
    NATIVE_FILE,
    NATIVE_ROW,
    STORED_NAME,
    Check,
    Column,
    DataFile,
    DataType,
    NativeScan,
    TableDefinition,
    TableHandle,
    parse_type,
    stored_field,
)
from trinity.storage.file_schema import FIELD_ID, with_partition_values
from trinity.storage.foreign import foreign_definition
from trinity.storage.location import file_uri
from trinity.storage.parquet_sink import REQUIRED
from trinity.storage.spark_files import check_calendar
from trinity.syntax.quoting import quoted
from trinity_delta.actions import file_key, is_restore
from trinity_delta.jvm import DeltaJvm
from trinity_delta.protocol import check_writable, refused
from trinity_delta.schema import (
    COLLATIONS,
    CONSTRAINT,
    DEFAULT,
    ID,
    PHYSICAL,
    TEXT,
    every_field,
    fields_of,
    is_true,
    mapping_mode,
    required_within,
    storage_schema,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

APPEND_ONLY: Final = "delta.appendOnly"

_COMMITTED: Final = "trinityCommit"
"""Field that an add action of a rebuilt version has: the number of the commit that added the file."""

Action = Mapping[str, Any]


# -- reading ----------------------------------------------------------------------------------------------


def external_definition(table: TableHandle, metadata: Mapping[str, Any]) -> TableDefinition:
    """Return the definition of a table that Trinity did not make.

    Raises:
        TrinityError: NOT_SUPPORTED for a column type that Trinity does not have, and for data files that are not
        Parquet.
    """
    if (provider := (metadata.get("format") or {}).get("provider", "parquet")) != "parquet":
        raise refused(table, f"data files of the format '{provider}', and Trinity reads Parquet alone")
    columns = [as_column(table, field, metadata) for field in fields_of(metadata)]
    name = (table.schema, table.table)
    settings, spelled = metadata["configuration"], {column.name.lower(): column.name for column in columns}
    partitions = [spelled[name.lower()] for name in metadata["partitionColumns"]]
    found = foreign_definition(name, columns, partitions, settings, ("delta.",))
    return replace(found, checks=tuple(constraints(metadata)))


def constraints(metadata: Mapping[str, Any]) -> Iterator[Check]:
    """Yield Delta's own CHECK constraints, which NULL violates."""
    settings = metadata["configuration"]
    for key in sorted(k for k in settings if k.startswith(CONSTRAINT)):
        yield Check(key.removeprefix(CONSTRAINT), f"coalesce(({settings[key]}), FALSE)", every=True)


def apply_external(
    files: dict[str, DataFile],
    adds: dict[str, Mapping[str, Any]],
    found: Mapping[str, list[Any]],
    file_of: Callable[[Mapping[str, Any], int], DataFile],
    version: int,
) -> None:
    """Apply a commit to ``files`` and ``adds``. A file that only loses rows keeps its commit number and its place.

    Args:
        files: :func:`~trinity_delta.actions.file_key` -> live file.
        adds: the same key -> its add action.
        found: the commit's actions by kind.
        file_of: returns the file of an add action, under a commit number.
        version: the commit's number.
    """
    added = sorted(found.get("add", []), key=_order_in_commit)
    for path in {file_key(r) for r in found.get("remove", [])} - {file_key(a) for a in added}:
        files.pop(path, None)
        adds.pop(path, None)
    for action in added:
        path = file_key(action)
        file, before = file_of(action, action.get(_COMMITTED, version)), files.get(path)
        files[path], adds[path] = replace(file, commit=before.commit) if before else file, action


def _order_in_commit(added: Mapping[str, Any]) -> tuple[int, str, str]:
    """Return a sort key: the name, as writers number files by partition; before it the time of files of older commits.

    Older commits are those whose files a rebuilt version has together.
    """
    time = added["modificationTime"] if _COMMITTED in added else 0
    return time, added["path"].rsplit("/", 1)[-1], added["path"]


def with_commits_of_files(actions: Sequence[Action], first: int, commits: Iterable[Sequence[Action]]) -> list[Action]:
    """Return the actions of a version rebuilt from a checkpoint, with the commits of its files.

    Args:
        actions: the actions of the version.
        first: the number of the oldest commit in the log; older files count as files of the commit before it.
        commits: the commits from ``first`` up to the version.
    """
    known: dict[str, int] = {}
    ever: dict[str, int] = {}
    for number, commit in enumerate(commits, first):
        gone = {file_key(a["remove"]) for a in commit if "remove" in a}
        paths = {file_key(a["add"]) for a in commit if "add" in a}
        known = {p: n for p, n in known.items() if p not in gone - paths}
        back = is_restore(commit)  # the files that it adds keep the numbers of their first commits
        known |= {path: ever.get(path, first - 1) if back else number for path in paths - gone}
        ever |= known
    return [
        {"add": {**a["add"], _COMMITTED: known.get(file_key(a["add"]), first - 1)}} if "add" in a else a
        for a in actions
    ]


@dataclass(frozen=True, eq=False)
class DeltaScan(NativeScan):
    """A scan by Delta's Spark reader: it applies deletion vectors, column mapping and partition values.

    The first call of ``jvm`` starts Delta in the JVM; ``added`` has the add action of each live file by its path.
    """

    jvm: Callable[[], DeltaJvm]
    table: TableHandle
    metadata: Mapping[str, Any]
    protocol: Mapping[str, Any]
    added: Mapping[str, Mapping[str, Any]]
    files: Sequence[DataFile]

    def rows(self, spark: SparkSession, files: Sequence[DataFile]) -> DataFrame:
        check_calendar(spark, self.table.full_name)
        if mapping_mode(self.metadata) == "id":  # Delta needs these settings for columns that are found by id
            for direction in ("read", "write"):
                spark.conf.set(f"spark.sql.parquet.fieldId.{direction}.enabled", "true")
        added = [self.added[f.path] for f in files]
        found = self.jvm().files(self.table.full_name, self.table.location, self.metadata, self.protocol, added)
        names = [quoted(f["name"]) for f in fields_of(self.metadata)]
        return found.selectExpr(*names, f"_metadata.file_path AS {NATIVE_FILE}", f"_metadata.row_index AS {NATIVE_ROW}")

    def name(self, file: DataFile) -> str:
        return file_uri(file.path)

    @property
    def not_local(self) -> str | None:
        columns = self.metadata["partitionColumns"]
        if all(len(file.partition) == len(columns) for file in self.files):
            return None
        return f"only Delta's own reader tells what some files have in a partition column ({', '.join(columns)})"

    @property
    def as_written(self) -> bool:
        return mapping_mode(self.metadata) == "none" and not any(a.get("deletionVector") for a in self.added.values())


# -- writing ----------------------------------------------------------------------------------------------


def check_rewritable(table: TableHandle, metadata: Mapping[str, Any], protocol: Mapping[str, Any]) -> None:
    """Refuse a table whose files must stay. Raises NOT_SUPPORTED, also for what :func:`check_writable` refuses."""
    check_writable(table, metadata, protocol)
    if is_true(metadata["configuration"], APPEND_ONLY):
        raise refused(table, f"the property '{APPEND_ONLY}', under which no row version may go")


def external_storage(definition: TableDefinition, metadata: Mapping[str, Any]) -> pa.Schema:
    """Return the storage schema of new files, with NOT NULL nested fields marked.

    Column mapping adds physical names and field ids on every level. delta-rs does not read a NULL struct of a file
    whose fields are nullable where the table's are not.
    """
    found = []
    for column, field in _with_fields(definition, metadata):
        stored = stored_field(column, _arrow_type(field["type"], metadata))
        found.append(stored.with_metadata({**(stored.metadata or {}), **_field_id(field, metadata)}))
    return pa.schema(found)


def reading_storage(definition: TableDefinition, metadata: Mapping[str, Any]) -> pa.Schema:
    """Return the storage schema for reading files: fields have the names and ids of column mapping, on every level.

    Values of partition columns come from the log, even if files have these columns.
    """
    mode, storage = mapping_mode(metadata), storage_schema(definition)
    if mode != "none":
        storage = pa.schema(
            [_as_read(field, column.name, mode) for column, field in _with_fields(definition, metadata)]
        )
    return with_partition_values(storage, definition.partition_columns)


def _with_fields(
    definition: TableDefinition, metadata: Mapping[str, Any]
) -> Iterable[tuple[Column, Mapping[str, Any]]]:
    return zip(definition.columns, fields_of(metadata), strict=True)


def _as_read(field: Mapping[str, Any], name: str, mode: str) -> pa.Field:
    about = {STORED_NAME: field["metadata"][PHYSICAL].encode()}
    if mode == "id" and ID in field["metadata"]:
        about[FIELD_ID] = str(field["metadata"][ID]).encode()
    return pa.field(name, _type_as_read(field["type"], mode), metadata=about)


def _type_as_read(kind: Any, mode: str) -> pa.DataType:
    if isinstance(kind, str):
        return parse_type(kind).to_arrow()
    if kind["type"] == "array":
        return pa.list_(pa.field("element", _type_as_read(kind["elementType"], mode)))
    if kind["type"] == "map":
        return pa.map_(_type_as_read(kind["keyType"], mode), pa.field("value", _type_as_read(kind["valueType"], mode)))
    return pa.struct([_as_read(field, field["name"], mode) for field in kind["fields"]])


def _field_id(field: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[bytes, bytes]:
    number = field["metadata"].get(ID) if mapping_mode(metadata) != "none" else None
    return {} if number is None else {FIELD_ID: str(number).encode()}


def _arrow(field: Mapping[str, Any], metadata: Mapping[str, Any]) -> pa.Field:
    about = {**_field_id(field, metadata), **_required(nullable=field["nullable"])}
    return pa.field(_physical_name(field, metadata), _arrow_type(field["type"], metadata), metadata=about)


def _required(*, nullable: bool) -> dict[bytes, bytes]:
    return {} if nullable else dict(REQUIRED)


def _arrow_type(kind: Any, metadata: Mapping[str, Any]) -> pa.DataType:
    if isinstance(kind, str):
        return parse_type(kind).to_arrow()
    if kind["type"] == "array":
        about = _required(nullable=kind["containsNull"])
        return pa.list_(pa.field("element", _arrow_type(kind["elementType"], metadata), metadata=about))
    if kind["type"] == "map":
        about = _required(nullable=kind["valueContainsNull"])
        value = pa.field("value", _arrow_type(kind["valueType"], metadata), metadata=about)
        return pa.map_(_arrow_type(kind["keyType"], metadata), value)
    return pa.struct([_arrow(field, metadata) for field in kind["fields"]])


# -- the schema -------------------------------------------------------------------------------------------


def _physical_name(field: Mapping[str, Any], metadata: Mapping[str, Any]) -> str:
    return str(field["name"] if mapping_mode(metadata) == "none" else field["metadata"][PHYSICAL])


def as_column(table: TableHandle, field: Mapping[str, Any], metadata: Mapping[str, Any]) -> Column:
    """Return a field as a column. Raises NOT_SUPPORTED for a type that Trinity does not have, and for a collation."""
    name, about, stored = field["name"], field["metadata"], _physical_name(field, metadata)
    try:
        kind = parse_type(about[TEXT]) if TEXT in about else _type(field["type"])
    except TrinityError as error:
        what = f"the column '{name}', whose type Trinity does not have: {error.message}"
        raise refused(table, what) from error
    for inner in every_field([field]):
        if COLLATIONS in inner["metadata"]:
            paths = ", ".join(inner["metadata"][COLLATIONS])
            raise refused(table, f"the column '{name}' with a collation ({paths}), by which Trinity does not compare")
    required = tuple(required_within(field["type"]))
    column = Column(name, str(kind), field["nullable"], about.get(DEFAULT), about.get("comment"), required=required)
    return column if stored == name else replace(column, stored=stored)


def _type(kind: Any) -> DataType:
    if isinstance(kind, str):
        return parse_type(kind)
    if kind["type"] == "array":
        return DataType("array", children=(_type(kind["elementType"]),))
    if kind["type"] == "map":
        return DataType("map", children=(_type(kind["keyType"]), _type(kind["valueType"])))
    fields = kind["fields"]
    return DataType("struct", (), tuple(_type(f["type"]) for f in fields), tuple(f["name"] for f in fields))
