"""Schemas: Trinity's columns as Iceberg fields, and Iceberg fields as columns of tables and of Parquet files."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final

import pyarrow as pa
from pyiceberg import types as it
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import (
    AddSchemaUpdate,
    RemovePropertiesUpdate,
    SetCurrentSchemaUpdate,
    SetPropertiesUpdate,
    TableUpdate,
)
from pyiceberg.types import IcebergType, ListType, MapType, StructType
from pyiceberg.utils.datetime import days_to_date, micros_to_time, micros_to_timestamp, micros_to_timestamptz

from trinity.errors import TrinityError
from trinity.spi import (
    HIDDEN_PREFIX,
    STAMP,
    STORED_NAME,
    Column,
    DataType,
    PartitionField,
    TableDefinition,
    parse_type,
    type_text,
)
from trinity.storage.file_schema import FIELD_ID, READ_BY_ID
from trinity.storage.foreign import adopted_definition, adopted_properties, foreign_definition
from trinity.storage.parquet_sink import REQUIRED
from trinity_iceberg.carried import (
    DEFINITION,
    STATE,
    archived_definition,
    definition_at,
    newest_version,
    removed_definition_mark,
)
from trinity_iceberg.names import schema_of

PROPERTY_PREFIXES: Final = ("write.", "read.", "commit.", "history.")
"""Prefixes of the user's properties that are Iceberg's own; these become table properties, too."""

MAX_STATISTICS: Final = 32
"""How many columns besides the key have bounds: those of all columns of a wide table would make huge manifests."""

STAMP_ID: Final = 1_000_000_000
"""Field id of the column for stamps, which files have before the table has it: no other column gets this id."""

_PRIMITIVES: Final[Mapping[str, it.PrimitiveType]] = {
    "boolean": it.BooleanType(),
    "tinyint": it.IntegerType(),
    "smallint": it.IntegerType(),
    "int": it.IntegerType(),
    "bigint": it.LongType(),
    "float": it.FloatType(),
    "double": it.DoubleType(),
    "string": it.StringType(),
    "char": it.StringType(),
    "varchar": it.StringType(),
    "binary": it.BinaryType(),
    "date": it.DateType(),
    "timestamp": it.TimestamptzType(),
    "timestamp_ntz": it.TimestampType(),
    "time": it.TimeType(),
}
_TRANSFORMS: Final = {
    "identity": "identity", "bucket": "bucket", "truncate": "truncate", "year": "years", "month": "months",
    "day": "days", "hour": "hours",
}  # fmt: skip
_STORED: Final = {"tinyint": "int", "smallint": "int", "char": "string", "varchar": "string"}
_TEXTS: Final[Mapping[type[it.IcebergType], str]] = {
    type(kind): name for name, kind in _PRIMITIVES.items() if name not in _STORED
}


# -- Trinity -> Iceberg -----------------------------------------------------------------------------------


def to_iceberg_schema(definition: TableDefinition) -> Schema:
    """Return the Iceberg schema of a new table, with required and identifier fields as far as Iceberg allows them."""
    ids = count(1)
    fields = [_to_iceberg_field(c, ids, required=_is_required(definition, c)) for c in definition.columns]
    return _made(fields, 0, _identifiers(fields, definition))


_TWO_FIELDS: Final = re.compile(r"multiple fields for name (.*): \d+ and \d+", re.DOTALL)
"""PyIceberg's error for a name that stands for two fields. Java does not load such a table either."""


def _made(fields: Sequence[it.NestedField], number: int, identifiers: Sequence[int]) -> Schema:
    try:
        return Schema(*fields, schema_id=number, identifier_field_ids=list(identifiers))
    except ValueError as error:
        if not (found := _TWO_FIELDS.search(str(error))):
            raise
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Column '{found[1]}': Iceberg has no table with one name for a column and for a field within another, "
            "whose name there is its path; choose another name.",
        ) from error


def _is_required(definition: TableDefinition, column: Column) -> bool:
    return not column.nullable or column.name in definition.primary_key


def _identifiers(fields: Sequence[it.NestedField], definition: TableDefinition) -> list[int]:
    """Return the field ids of the key; none if Iceberg does not allow one of them, such as a float, in a key."""
    key = [f for f in fields if f.name in definition.primary_key]
    allowed = all(
        f.required and f.field_type.is_primitive and not isinstance(f.field_type, it.FloatType | it.DoubleType)
        for f in key
    )
    return [f.field_id for f in key] if allowed else []


def _to_iceberg_field(column: Column, ids: Iterator[int], *, required: bool) -> it.NestedField:
    """Return the Iceberg field of a column, with field ids on every level taken from ``ids``."""
    field_id = next(ids)
    return it.NestedField(field_id, column.name, _to_iceberg(parse_type(column.type), ids), required, column.comment)


def _to_iceberg(kind: DataType, ids: Iterator[int]) -> it.IcebergType:
    if kind.name in _PRIMITIVES:
        return _PRIMITIVES[kind.name]
    if kind.name == "decimal":
        return it.DecimalType(*kind.arguments)
    if kind.name == "array":
        element = next(ids)
        return it.ListType(element, _to_iceberg(kind.children[0], ids), element_required=False)
    if kind.name == "map":
        key, value = next(ids), next(ids)
        key_type, value_type = (_to_iceberg(child, ids) for child in kind.children)
        return it.MapType(key, key_type, value, value_type, value_required=False)
    numbers = [next(ids) for _ in kind.fields]
    children = [_to_iceberg(child, ids) for child in kind.children]
    return it.StructType(
        *(it.NestedField(n, f, c, False) for n, f, c in zip(numbers, kind.fields, children, strict=True))
    )


def iceberg_type(stored: pa.DataType) -> it.IcebergType:
    """Return the Iceberg type of a stored column that is not nested."""
    return _to_iceberg(parse_type(type_text(stored)), count(1))


def own_properties(definition: TableDefinition) -> dict[str, str]:
    """Return the Iceberg table properties of a definition: its JSON, and the user's Iceberg settings unchanged."""
    given = {k: v for k, v in definition.properties.items() if k.startswith(PROPERTY_PREFIXES)}
    return {**given, DEFINITION: _text(definition)}


def _text(definition: TableDefinition) -> str:
    return json.dumps(definition.to_dict(), separators=(",", ":"))


def history_updates(metadata: TableMetadata, definition: TableDefinition) -> tuple[TableUpdate, ...]:
    """Return the update by which the recorded definition says what another engine's change of columns means (E3).

    The recorded columns stay: the definitions of older versions are made of them. Without the update that engine could
    undo its change, and nothing would tell any more that compaction had kept row versions meanwhile, or had ceased to.
    """
    recorded = json.loads(metadata.properties[DEFINITION])
    if not definition.history_changed or recorded.get("history_changed"):
        return ()
    noted = replace(TableDefinition.from_dict(recorded), history_changed=True)
    return (SetPropertiesUpdate(updates={DEFINITION: _text(noted)}),)


def with_field_ids(definition: TableDefinition, schema: Schema) -> TableDefinition:
    """Return the definition with Iceberg's field ids for its visible columns."""
    ids = {f.name: f.field_id for f in schema.fields}
    return definition.with_columns(c if c.hidden else replace(c, field_id=ids[c.name]) for c in definition.columns)


def definition_updates(
    metadata: TableMetadata, before: TableDefinition, after: TableDefinition
) -> tuple[TableUpdate, ...]:
    """Return the metadata updates that change the definition; older versions keep their definitions."""
    removed = [k for k in before.properties if k.startswith(PROPERTY_PREFIXES) and k not in after.properties]
    gone = (RemovePropertiesUpdate(removals=removed),) if removed else ()
    if before.columns == after.columns:
        older = archived_definition(metadata, _text(before), same_schema=True)
        return (*gone, SetPropertiesUpdate(updates={**own_properties(after), **older}))
    schema, older = (
        evolved_schema(metadata, before, after),
        archived_definition(metadata, _text(before), same_schema=False),
    )
    if before.replaced != after.replaced:
        older |= archived_definition(metadata, _text(before), same_schema=True)
    properties = SetPropertiesUpdate(updates={**own_properties(with_field_ids(after, schema)), **older})
    if schema.schema_id in (s.schema_id for s in metadata.schemas):
        return SetCurrentSchemaUpdate.model_validate({"schema-id": schema.schema_id}), *gone, properties
    return (
        AddSchemaUpdate(schema=schema),
        SetCurrentSchemaUpdate.model_validate({"schema-id": -1}),
        *gone,
        properties,
    )


def evolved_schema(metadata: TableMetadata, before: TableDefinition, after: TableDefinition) -> Schema:
    """Return the schema of a changed definition. A column that stays keeps its field id, also if it is renamed.

    If another table takes the place of this one (L13), a column keeps the id of a column with the same name and type.
    """
    if before.replaced != after.replaced:
        return _replaced_schema(metadata, before, after)
    hidden = _hidden(metadata)
    known, ids = _known_fields(metadata, before), count(metadata.last_column_id + 1)
    fields = [
        hidden[c.name] if c.hidden else _field(known.get(c.field_id or 0), c, ids, _is_required(after, c))
        for c in after.columns
    ]
    return _schema(metadata, fields, metadata.schema().identifier_field_ids)


def _replaced_schema(metadata: TableMetadata, before: TableDefinition, after: TableDefinition) -> Schema:
    """Return the schema of a table that takes the place of another one, or does so again by a restore.

    A column gets another id if its former partition field has the name of another column now: Iceberg's Java library
    does not load such a table.
    """
    hidden, known, ids = _hidden(metadata), _known_fields(metadata, before), count(metadata.last_column_id + 1)
    again = after.replaced <= newest_version(metadata)  # a restore goes back to an earlier replacement
    names = {c.name.lower() for c in after.visible}
    alike = {
        (c.name, c.type): known[c.field_id]
        for c in before.visible
        if not again and c.field_id in known and not names & (_partition_names(metadata, c.field_id) - {c.name.lower()})
    }
    fields = []
    for column in after.columns:
        present = hidden.get(column.name) or known.get(column.field_id or 0) or alike.get((column.name, column.type))
        required = _is_required(after, column)
        if present is None:
            field = _to_iceberg_field(column, ids, required=required)
        else:
            required = required and (present.required or not again or column.name in after.primary_key)
            field = it.NestedField(present.field_id, column.name, present.field_type, required, column.comment)
        fields.append(field)
    return _schema(metadata, fields, _identifiers(fields, after))


def _partition_names(metadata: TableMetadata, source: int | None) -> set[str]:
    """Return the names, in lower case, of the partition fields that a column is or was the source of."""
    return {f.name.lower() for spec in metadata.partition_specs for f in spec.fields if f.source_id == source}


def _hidden(metadata: TableMetadata) -> dict[str, it.NestedField]:
    """Return the fields of hidden columns that the table has, or has had."""
    fields = (f for schema in (*metadata.schemas, metadata.schema()) for f in schema.fields)
    found = {f.name: f for f in fields if f.name.startswith(HIDDEN_PREFIX)}
    return {STAMP: it.NestedField(STAMP_ID, STAMP, it.LongType(), False), **found}


def _known_fields(metadata: TableMetadata, before: TableDefinition) -> dict[int | None, it.NestedField]:
    """Return the fields of the columns that the table has, or has had, by their ids."""
    present = {f.field_id: f for schema in (*metadata.schemas, metadata.schema()) for f in schema.fields}
    return {c.field_id: present[c.field_id] for c in before.all_columns if c.field_id in present}


def _schema(metadata: TableMetadata, fields: Sequence[it.NestedField], identifiers: Sequence[int]) -> Schema:
    """Return a schema that the table has had, or a new one."""
    number = max(s.schema_id for s in metadata.schemas) + 1
    found = _made(fields, number, identifiers)
    return next((s for s in metadata.schemas if s == found), found)


def _field(present: it.NestedField | None, column: Column, ids: Iterator[int], required: bool) -> it.NestedField:
    if present is None:  # optional whatever the column's definition says, because older rows have no value
        return _to_iceberg_field(column, ids, required=False)
    kind = parse_type(column.type)
    same = str(_stored_as(kind)) == str(_trinity_type(present.field_type))
    field_type = present.field_type if same else _to_iceberg(kind, ids)
    return it.NestedField(present.field_id, column.name, field_type, required and present.required, column.comment)


# -- Iceberg -> Trinity -----------------------------------------------------------------------------------


def _ordered_fields(schema: Schema) -> list[it.NestedField]:
    """Return the fields in table order: hidden ones last, even if another engine has added columns after them."""
    return sorted(schema.fields, key=lambda f: f.name.startswith(HIDDEN_PREFIX))


def definition_of(
    identifier: tuple[str, ...], metadata: TableMetadata, schema: Schema, version: int
) -> TableDefinition:
    """Return the table's definition at a version, which has one of its schemas.

    Columns are those of the Iceberg schema. The key, the properties and other facts that Iceberg cannot hold come from
    the property ``trinity.definition``. Columns that another engine added or changed are as Iceberg has them. If it
    renamed a column, the key and the properties have the new name.

    Raises:
        TrinityError: NOT_SUPPORTED for a table of Trinity's if another engine has removed or changed that property.
    """
    if removed_definition_mark(metadata):
        name, what = ".".join(identifier), "changed" if DEFINITION in metadata.properties else "taken away"
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Another engine has {what} the property '{DEFINITION}' of Iceberg table '{name}', which says what its "
            f"key and its options are. Put back what Trinity wrote there by session.repair('<catalog>.{name}'). To "
            f"hand the table over to that engine take '{STATE}' away, too.",
        )
    name, in_schema = identifier[-1], schema_of(identifier[:-1])
    stored = definition_at(metadata, schema.schema_id, version)
    if stored is None:
        key = [schema.find_field(i).name for i in sorted(schema.identifier_field_ids)]
        full, foreign = (in_schema, name), [_foreign(f) for f in _ordered_fields(schema)]
        partition_by = partition_texts(metadata.spec(), schema)
        made = foreign_definition(full, foreign, partition_by, metadata.properties, PROPERTY_PREFIXES, key)
        return replace(made, id=str(metadata.table_uuid))
    known = TableDefinition.from_dict({**stored, "schema": in_schema, "name": name})
    by_id = {c.field_id: c for c in (*known.visible, *known.dropped)}
    hidden = {c.name: c for c in known.columns if c.hidden}
    present = []
    for field in _ordered_fields(schema):
        was = hidden.get(field.name) or by_id.get(field.field_id)
        in_key = was is not None and was.name in known.primary_key
        present.append((was, _column(field, was, key=in_key)))
    found = adopted_definition(".".join(identifier), known, present)
    dropped = {c.field_id: c for c in (*_columns_of_all_schemas(metadata), *found.dropped)}
    gone = tuple(c for i, c in dropped.items() if i not in {f.field_id for f in schema.fields})
    if version == newest_version(metadata):  # properties that other engines set are not recorded by version
        found = found.with_properties(adopted_properties(found.properties, metadata.properties, PROPERTY_PREFIXES))
    return replace(found, dropped=gone, id=str(metadata.table_uuid))


def _columns_of_all_schemas(metadata: TableMetadata) -> list[Column]:
    """Return the visible columns of all schemas that the table has had."""
    fields = {f.field_id: f for s in metadata.schemas for f in s.fields if not f.name.startswith(HIDDEN_PREFIX)}
    return [Column(f.name, "string", field_id=f.field_id) for f in fields.values()]


def partition_texts(spec: PartitionSpec, schema: Schema) -> tuple[str, ...]:
    """Return the fields of a partition spec as in a definition; empty if a definition cannot express them."""
    found = []
    for field in spec.fields:
        column = next((f.name for f in schema.fields if f.field_id == field.source_id), None)
        name, _, argument = str(field.transform).rstrip("]").partition("[")
        if column is None or name not in _TRANSFORMS:
            return ()
        found.append(str(PartitionField(column, _TRANSFORMS[name], int(argument) if argument else None)))
    return tuple(found)


def _column(field: it.NestedField, known: Column | None, *, key: bool) -> Column:
    """Return a field as a column; a column that Trinity knows keeps its DEFAULT, and a type that Iceberg lacks."""
    now = _foreign(field)
    if known is None:
        return now
    same = str(_stored_as(parse_type(known.type))) == now.type
    kind = known.type if same else now.type
    return replace(now, type=kind, nullable=now.nullable and (known.nullable or key), default=known.default)


def _foreign(field: it.NestedField) -> Column:
    number = None if field.name.startswith(HIDDEN_PREFIX) else field.field_id
    kind, within = str(_trinity_type(field.field_type)), tuple(_ids(field.field_type))
    required = tuple(_required_paths(field.field_type))
    return Column(field.name, kind, not field.required, None, field.doc, number, within=within, required=required)


def _ids(kind: it.IcebergType) -> Iterator[int]:
    """Yield the ids of all fields within a type, each before those within it."""
    for field in _fields_within(kind):
        yield field.field_id
        yield from _ids(field.field_type)


def _required_paths(kind: it.IcebergType) -> Iterator[tuple[str, ...]]:
    """Yield the paths of the NOT NULL fields within a type, without keys of maps, which are never NULL."""
    key = kind.key_id if isinstance(kind, it.MapType) else None
    for field in _fields_within(kind):
        if field.required and field.field_id != key:
            yield (field.name,)
        yield from ((field.name, *path) for path in _required_paths(field.field_type))


def _fields_within(kind: it.IcebergType) -> tuple[it.NestedField, ...]:
    """Return the direct fields of a type: those of a struct, an array's element, a map's key and value."""
    if isinstance(kind, it.ListType):
        return (kind.element_field,)
    if isinstance(kind, it.MapType):
        return kind.key_field, kind.value_field
    return kind.fields if isinstance(kind, it.StructType) else ()


def field_with_default(schema: Schema) -> str | None:
    """Return the path of a field, at any depth, that has a default in files which lack it; None without one."""
    found = [number for number in schema.field_ids if schema.find_field(number).initial_default is not None]
    return schema.find_column_name(min(found)) if found else None


def _stored_as(kind: DataType) -> DataType:
    children = tuple(_stored_as(c) for c in kind.children)
    if kind.name in _STORED:
        return DataType(_STORED[kind.name])
    return DataType(kind.name, kind.arguments, children, kind.fields)


def _trinity_type(kind: it.IcebergType) -> DataType:
    """Return Trinity's type for an Iceberg type. Raises NOT_SUPPORTED if there is none."""
    if isinstance(kind, it.DecimalType):
        return DataType("decimal", (kind.precision, kind.scale))
    if isinstance(kind, it.ListType):
        return DataType("array", children=(_trinity_type(kind.element_type),))
    if isinstance(kind, it.MapType):
        return DataType("map", children=(_trinity_type(kind.key_type), _trinity_type(kind.value_type)))
    if isinstance(kind, it.StructType):
        children = tuple(_trinity_type(f.field_type) for f in kind.fields)
        return DataType("struct", children=children, fields=tuple(f.name for f in kind.fields))
    if type(kind) in _TEXTS:
        return DataType(_TEXTS[type(kind)])
    raise TrinityError("NOT_SUPPORTED", f"Iceberg type '{kind}' has no counterpart in Trinity; leave the column out.")


# -- statistics -------------------------------------------------------------------------------------------


def statistics_columns(definition: TableDefinition, schema: Schema) -> tuple[str, ...]:
    """Return the columns whose bounds are kept: the key and the first primitive columns."""
    primitive = [f.name for f in _ordered_fields(schema) if f.field_type.is_primitive]
    key = [name for name in primitive if name in definition.primary_key]
    return tuple(dict.fromkeys([*key, *primitive[:MAX_STATISTICS]]))


def python_value(kind: it.IcebergType, value: Any) -> Any:
    """Return a value of Iceberg's metadata (dates and times as numbers) in Python's type.

    Raises:
        OverflowError, ValueError: for a year that Python does not have.
    """
    if value is None:
        return None
    if isinstance(kind, it.DateType):
        return days_to_date(value)
    if isinstance(kind, it.TimeType):
        return micros_to_time(value)
    if isinstance(kind, it.TimestampType):
        return micros_to_timestamp(value)
    if isinstance(kind, it.TimestamptzType):
        return micros_to_timestamptz(value)
    return value


def storage_schema(schema: Schema) -> pa.Schema:
    """Return the Arrow schema of the table's Parquet files, with field ids on every level.

    PyIceberg's own conversion has ``large_string`` and ``large_list``; sinks and Spark want the plain types. Required
    fields within a column are marked (:data:`~trinity.storage.parquet_sink.REQUIRED`).
    """
    return pa.schema(
        [pa.field(f.name, _arrow(f.field_type), not f.required, _numbered(f)) for f in _ordered_fields(schema)]
    )


def read_schema(metadata: TableMetadata, schema: Schema) -> pa.Schema:
    """Return the storage schema for reading files of any version: by field id, if any field's name ever changed."""
    storage = storage_schema(schema)
    used = {found for s in metadata.schemas for f in s.fields for found in _named(f)}
    names, numbers = Counter((u.within, u.name) for u in used), Counter(u.number for u in used)
    changed = {u.column for u in used if names[u.within, u.name] > 1 or numbers[u.number] > 1}
    if not changed:
        return storage
    # Spark skips row groups by the names of fields in the file, so a name that two columns have had is replaced
    doubtful = {u.name for u in used if u.within is None and names[u.within, u.name] > 1}
    fields = [
        f.with_metadata({**f.metadata, STORED_NAME: b"_trinity_field_" + f.metadata[FIELD_ID]})
        if f.name.lower() in doubtful or (pa.types.is_nested(f.type) and int(f.metadata[FIELD_ID]) in changed)
        else f
        for f in storage
    ]
    return pa.schema(fields, READ_BY_ID)


@dataclass(frozen=True)
class _Named:
    """A name that a field had in some schema.

    Attributes:
        column: id of the column that the field is, or lies within.
        within: id of the field in which it lies directly; None for a column.
        number: the field's id.
    """

    column: int
    within: int | None
    name: str
    number: int


def _named(field: it.NestedField, within: int | None = None, column: int | None = None) -> Iterator[_Named]:
    top = field.field_id if column is None else column
    yield _Named(top, within, field.name.lower(), field.field_id)
    for child in _fields_within(field.field_type):
        yield from _named(child, field.field_id, top)


def _arrow_field(field: it.NestedField) -> pa.Field:
    required = REQUIRED if field.required else {}
    return pa.field(field.name, _arrow(field.field_type), metadata={**_numbered(field), **required})


def _numbered(field: it.NestedField) -> dict[bytes, bytes]:
    return {FIELD_ID: str(field.field_id).encode()}


def _arrow(kind: it.IcebergType) -> pa.DataType:
    if isinstance(kind, it.ListType):
        return pa.list_(_arrow_field(kind.element_field))
    if isinstance(kind, it.MapType):
        return pa.map_(_arrow_field(kind.key_field).with_nullable(False), _arrow_field(kind.value_field))
    if isinstance(kind, it.StructType):
        return pa.struct([_arrow_field(f) for f in kind.fields])
    return _trinity_type(kind).to_arrow()


def column_paths(schema: Schema) -> dict[str, int]:
    """Return the field ids of the columns that have values of their own, by their paths in a file."""
    return dict(_below("", schema.as_struct(), 0))


def _below(path: str, kind: IcebergType, field_id: int) -> Iterator[tuple[str, int]]:
    match kind:
        case StructType():
            parts = [(field.name, field.field_type, field.field_id) for field in kind.fields]
        case ListType():
            parts = [("list.element", kind.element_type, kind.element_id)]
        case MapType():
            keys = ("key_value.key", kind.key_type, kind.key_id)
            parts = [keys, ("key_value.value", kind.value_type, kind.value_id)]
        case _:
            yield path, field_id
            return
    for name, part, its_id in parts:
        yield from _below(f"{path}.{name}" if path else name, part, its_id)
