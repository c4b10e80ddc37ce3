"""Delta's schema of a table, written and read: types, fields, and the table configuration that keeps the rest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count
from typing import Any, Final

import pyarrow as pa

from trinity.errors import TrinityError
from trinity.spi import HIDDEN_PREFIX, Column, DataType, TableDefinition, parse_type, stored_field

DEFINITION: Final = "trinity.definition"
"""Table configuration with the JSON of the whole :class:`TableDefinition`, as Delta's schema cannot hold all of it."""

TABLE: Final = "trinity.table"
"""Table configuration with the table's id and a digest of :data:`DEFINITION`: it reveals copies and changes."""

PHYSICAL: Final = "delta.columnMapping.physicalName"
"""Metadata of a field: its name in data files."""
ID: Final = "delta.columnMapping.id"
"""Metadata of a field: its number."""
MODE: Final = "delta.columnMapping.mode"
"""Setting: how columns are found in data files, ``none`` by their names."""
DEFAULT: Final = "CURRENT_DEFAULT"
"""Metadata of a field: its DEFAULT, as Spark keeps it."""
TEXT: Final = "__CHAR_VARCHAR_TYPE_STRING"
"""Metadata of a field: CHAR(n) or VARCHAR(n), as Spark keeps it."""
COLLATIONS: Final = "__COLLATIONS"
"""Metadata of a field: path of a text within it -> its collation, as Spark keeps it."""
CONSTRAINT: Final = "delta.constraints."
"""Prefix of the table settings that are CHECK constraints."""
_CHANGES: Final = "delta.typeChanges"
_DELTA_NAMES: Final = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}

_OWN: Final = {
    # declared reads are checked against every commit, blind appends included
    "delta.isolationLevel": "Serializable",
    # commit times that grow strictly (L10) and stay when files are copied
    "delta.enableInCommitTimestamps": "true",
}
_FEATURES: Final = {
    # the sidecar's list and the vacuum's mark
    "delta.feature.domainMetadata": "supported",
}
PARTITIONED: Final = {
    # data files have the partition columns, even those that other engines write: reads take the values from the files
    "delta.enableMaterializePartitionColumnsFeature": "true",
}
MAPPED: Final = {
    # files keep the names that columns had when they were made
    MODE: "name",
    "delta.minReaderVersion": "3",
    "delta.minWriterVersion": "7",
}
"""Set by the first change that renames or drops a column."""
WIDENING: Final = "delta.enableTypeWidening"
_WIDENED: Final = {WIDENING: "true"}
"""Set by the first change that widens a type."""
_NO_ZONE: Final = {"delta.feature.timestampNtz": "supported"}
"""Set by the first change that adds a TIMESTAMP_NTZ: Delta needs it, except in a new table."""
VECTORS: Final = "delta.enableDeletionVectors"
"""Setting under which rows are deleted by deletion vectors; the first resolve gives it the value true."""
FEED: Final = "delta.enableChangeDataFeed"
"""Setting under which Delta's readers see what each commit changed."""
_FIXED: Final = {
    **_OWN,
    **PARTITIONED,
    MODE: "none",
    "delta.appendOnly": "false",
}
"""Settings on which the adapter relies: a user cannot give them another value."""


def storage_schema(definition: TableDefinition) -> pa.Schema:
    """Return the physical Arrow schema of a table's files. TIME becomes microseconds; the engine checks NOT NULL."""
    return pa.schema([stored_field(c, stored_as(parse_type(c.type)).to_arrow()) for c in definition.columns])


def schema_string(definition: TableDefinition) -> str:
    """Return Delta's ``schemaString`` of a new table. NOT NULL and key columns are not nullable.

    Raises:
        TrinityError: NOT_SUPPORTED for names and types that Delta does not have.
    """
    key = {k.lower() for k in definition.primary_key}
    fields = [_field(c, nullable=c.nullable and c.name.lower() not in key) for c in definition.columns]
    return json.dumps({"type": "struct", "fields": fields})


NO_NAME: Final = f"{HIDDEN_PREFIX}restored_away"
"""Name of a column that no file has since a restore; only its field id is taken."""


@dataclass(frozen=True)
class Needs:
    """The Delta features that a new definition needs.

    Attributes:
        mapping: whether columns have names that differ from those in files, or were dropped.
        widening: whether a column has another type than in older files.
        no_zone: whether there is a TIMESTAMP_NTZ, and was none before.
    """

    mapping: bool
    widening: bool
    no_zone: bool

    @property
    def settings(self) -> dict[str, str]:
        """The settings that enable the features, except those of column mapping."""
        return {**(_WIDENED if self.widening else {}), **(_NO_ZONE if self.no_zone else {})}


def needs(before: TableDefinition, after: TableDefinition) -> Needs:
    """Return the features that a change of definition needs."""
    types = {c.stored_name: stored_as(parse_type(c.type)) for c in before.columns}
    widening = any(types.get(c.stored_name, t) != t for c in after.columns for t in [stored_as(parse_type(c.type))])
    no_zone = any(map(_has_no_zone, after.columns)) and not any(map(_has_no_zone, before.columns))
    dropped = any(column.name != NO_NAME for column in after.dropped)
    return Needs(bool(after.stored_names) or dropped, widening, no_zone)


def _has_no_zone(column: Column | DataType) -> bool:
    kind = column if isinstance(column, DataType) else parse_type(column.type)
    return kind.name == "timestamp_ntz" or any(map(_has_no_zone, kind.children))


def evolved(schema: str, definition: TableDefinition, *, mapped: bool) -> str:
    """Return the ``schemaString`` of a changed definition. Fields that stay keep their metadata.

    Where columns are mapped, fields have their names in data files.
    """
    present = {name_in_files(f): f for f in json.loads(schema)["fields"]}
    fields = []
    for column in definition.columns:
        # a new column is nullable whatever its definition says, because older rows have no value
        field = present.get(column.stored_name) or _field(column, nullable=True)
        fields.append(_changed(field, column, mapped))
    return json.dumps({"type": "struct", "fields": fields})


def replaced(definition: TableDefinition, *, mapped: bool) -> str:
    """Return the ``schemaString`` of a table that takes the place of another one. Arguments as for :func:`evolved`."""
    return evolved(schema_string(definition), definition, mapped=mapped)


def renamed_columns(before: str, after: str) -> list[tuple[str, str]]:
    """Return old and new names of the columns that were renamed between two ``schemaString``s."""
    names = {name_in_files(f): f["name"] for f in json.loads(before)["fields"]}
    present = [(names.get(name_in_files(f), f["name"]), f["name"]) for f in json.loads(after)["fields"]]
    return [(old, new) for old, new in present if old != new]


def name_in_files(field: Mapping[str, Any]) -> str:
    """Return the name that a field has in data files."""
    return str(field["metadata"].get(PHYSICAL, field["name"]))


def _changed(field: Mapping[str, Any], column: Column, mapped: bool) -> dict[str, Any]:
    new = _field(column, nullable=field["nullable"] or column.nullable)
    metadata = {k: v for k, v in field["metadata"].items() if k not in ("comment", DEFAULT)} | new["metadata"]
    if DEFAULT in field["metadata"] and column.default is not None:
        metadata[DEFAULT] = column.default
    if mapped:
        metadata[PHYSICAL] = column.stored_name
    if parse_type(column.type).nested:  # fields within a column do not change, and Delta has numbered them
        new["type"] = _named_within(field["type"]) if mapped else field["type"]
    elif new["type"] != field["type"]:
        step = {"fromType": field["type"], "toType": new["type"]}
        metadata[_CHANGES] = [*metadata.get(_CHANGES, []), step]
    return {**new, "metadata": metadata}


def _named_within(kind: Any) -> Any:
    """Return a type in which each field's name in data files is on record; by default it is the field's own name.

    Delta would invent names for new fields.
    """
    if not isinstance(kind, dict):
        return kind
    found = {part: _named_within(value) for part, value in kind.items() if part != "fields"}
    for field in kind.get("fields", ()):
        metadata = {PHYSICAL: field["name"], **field["metadata"]}
        found.setdefault("fields", []).append({**field, "type": _named_within(field["type"]), "metadata": metadata})
    return found


def configuration(
    definition: TableDefinition, *, preferred: Mapping[str, str] | None = None, needed: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return Delta's table configuration of a definition: its JSON, and the user's ``delta.`` settings unchanged.

    Args:
        definition: the definition.
        preferred: settings of a new table that a user may override; None for an existing table.
        needed: further settings that the definition needs.

    Raises:
        TrinityError: INVALID_TABLE_PROPERTY for a ``delta.`` setting on which the adapter relies.
    """
    given = {k: v for k, v in definition.properties.items() if k.startswith("delta.")}
    _check(given)
    partitioned = PARTITIONED if definition.partition_by else {}
    features = {**({} if preferred is None else _FEATURES), **(needed or {})}
    names = {k.lower() for k in given}
    wished = {k: v for k, v in (preferred or {}).items() if k.lower() not in names}
    return {**wished, **given, **_OWN, **partitioned, **features, **recorded(definition)}


def recorded(definition: TableDefinition) -> dict[str, str]:
    """Return the table configuration that holds a definition, and marks it as this table's."""
    text = json.dumps(definition.to_dict(), separators=(",", ":"))
    return {DEFINITION: text, TABLE: f"{definition.id} {definition_digest(text)}"}


def is_true(settings: Mapping[str, Any], key: str) -> bool:
    """Return whether a setting is true, in any case; a missing one is not."""
    return str(settings.get(key)).lower() == "true"


def definition_digest(text: str) -> str:
    """Return the digest of the text of a definition."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _check(given: Mapping[str, str]) -> None:
    fixed = {k.lower(): (k, v) for k, v in _FIXED.items()}
    for key, value in given.items():
        name, wanted = fixed.get(key.lower(), (key, value))
        if value.lower() != wanted.lower():
            raise TrinityError(
                "INVALID_TABLE_PROPERTY",
                f"Table property '{key}' cannot be '{value}'; Trinity's Delta tables need "
                f"{name}={wanted}. Leave it out.",
            )


def stored_as(kind: DataType) -> DataType:
    """Return the type that Delta stores: TIME as microseconds of the day, CHAR and VARCHAR as strings.

    Raises:
        TrinityError: NOT_SUPPORTED for TIME within another type, which Spark could not convert back.
    """
    if kind.name == "time":
        return DataType("bigint")
    if kind.has_length:
        return DataType("string")
    if any(child.name == "time" for child in kind.children):
        raise TrinityError("NOT_SUPPORTED", f"Delta has no TIME within {kind}; use timestamp_ntz or bigint there.")
    return replace(kind, children=tuple(map(stored_as, kind.children)))


def _field(column: Column, *, nullable: bool) -> dict[str, Any]:
    _check_names(column.name, DataType("struct", children=(parse_type(column.type),), fields=(column.name,)))
    metadata = {"comment": column.comment} if column.comment else {}
    kind = _delta(stored_as(parse_type(column.type)))
    return {"name": column.name, "type": kind, "nullable": nullable, "metadata": metadata}


def _check_names(column: str, kind: DataType) -> None:
    for name in kind.fields:
        if bad := set(name) & set(" ,;{}()\n\t="):
            raise TrinityError(
                "NOT_SUPPORTED",
                f"Delta does not allow {min(bad)!r} in a name, as in '{name}' of column '{column}'; choose another.",
            )
    for child in kind.children:
        _check_names(column, child)


def _delta(kind: DataType) -> Any:
    """Return a stored type in the JSON of Delta's protocol."""
    parts = [_delta(child) for child in kind.children]
    if kind.name == "array":
        return {"type": "array", "elementType": parts[0], "containsNull": True}
    if kind.name == "map":
        return {"type": "map", "keyType": parts[0], "valueType": parts[1], "valueContainsNull": True}
    if kind.name == "struct":
        named = zip(kind.fields, parts, strict=True)
        return {
            "type": "struct",
            "fields": [{"name": name, "type": part, "nullable": True, "metadata": {}} for name, part in named],
        }
    return _DELTA_NAMES.get(kind.name, str(kind))


_PARTS: Final[Mapping[str, Mapping[str, bool | None]]] = {
    "array": {"elementType": None, "containsNull": True},
    "map": {"keyType": None, "valueType": None, "valueContainsNull": True},
    "struct": {"fields": None},
}
"""Type -> what else its JSON has; a value is Spark's default for a missing entry, None if required."""


def fields_of(metadata: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
    """Return the fields of the ``schemaString``. Raises ValueError for a text that is no schema."""
    return _fields(metadata["schemaString"])


def mapping_mode(metadata: Mapping[str, Any]) -> str:
    """Return the mode of column mapping: ``none``, ``name`` or ``id``, or a word of a newer Delta."""
    return str(metadata["configuration"].get(MODE, "none")).lower()


def every_field(fields: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield the fields, and those within their types at any depth."""
    for field in fields:
        yield field
        yield from every_field(list(_within(field["type"])))


def _within(kind: Any) -> Iterator[Mapping[str, Any]]:
    if not isinstance(kind, str):
        yield from kind.get("fields", ())
        for part in ("elementType", "keyType", "valueType"):
            yield from _within(kind.get(part, ""))


def schema_fault(metadata: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the schema of a ``metaData`` action; None if it can be read."""
    try:
        fields = fields_of(metadata)
    except ValueError as error:
        return f"its schemaString is no schema: {error}"
    names = {field["name"].lower() for field in fields}
    if unknown := [name for name in metadata["partitionColumns"] if name.lower() not in names]:
        return f"partitionColumns names '{unknown[0]}', which is no column of the schemaString"
    if mapping_mode(metadata) != "none":
        for field in every_field(fields):
            if PHYSICAL not in field["metadata"]:
                return f"field '{field['name']}' lacks '{PHYSICAL}', though '{MODE}' is '{mapping_mode(metadata)}'"
    return None


def required_within(kind: Any) -> Iterator[tuple[str, ...]]:
    """Yield the paths of what is NOT NULL within a type, as :attr:`~trinity.spi.Column.required` has them."""
    for name, inner, nullable in () if isinstance(kind, str) else _parts(kind):
        if not nullable:
            yield (name,)
        yield from ((name, *path) for path in required_within(inner))


def _parts(kind: Mapping[str, Any]) -> list[tuple[str, Any, bool]]:
    """Return the direct parts of a nested type: name, type, and whether it may be NULL."""
    if kind["type"] == "array":
        return [("element", kind["elementType"], kind["containsNull"])]
    if kind["type"] == "map":  # no key is NULL anyway
        return [("key", kind["keyType"], True), ("value", kind["valueType"], kind["valueContainsNull"])]
    return [(field["name"], field["type"], field["nullable"]) for field in kind["fields"]]


@lru_cache(maxsize=256)
def _fields(text: str) -> tuple[dict[str, Any], ...]:
    schema = json.loads(text)
    if not isinstance(schema, dict) or schema.get("type") != "struct":
        raise ValueError("it is no struct")
    found: Sequence[dict[str, Any]] = _with_defaults(schema, "the table")["fields"]
    return tuple(found)


def _with_defaults(kind: Any, where: str) -> Any:
    """Return a type's JSON with missing entries filled in. Raises ValueError naming the path of a malformed one."""
    if isinstance(kind, str):
        return kind
    if not isinstance(kind, dict) or not isinstance(name := kind.get("type"), str):
        raise ValueError(f"{where} has no type")
    parts = _PARTS.get(name)
    if parts is None:  # a user-defined type: the column is refused by the name of its type
        return name
    found = {**{part: default for part, default in parts.items() if default is not None}, **kind}
    if missing := [part for part in parts if part not in found]:
        raise ValueError(f"the {name} of {where} lacks '{missing[0]}'")
    if name == "struct":
        return {**found, "fields": _filled_fields(found["fields"], where)}
    return {key: _with_defaults(part, where) if key.endswith("Type") else part for key, part in found.items()}


def _filled_fields(fields: Any, where: str) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for field in fields if isinstance(fields, list) else [None]:
        if not isinstance(field, dict) or not isinstance(name := field.get("name"), str) or "type" not in field:
            raise ValueError(f"a field of {where} lacks its name or its type")
        if name.lower() in found:
            raise ValueError(f"{where} has two fields '{name}'")
        if not isinstance(field.get("metadata", {}), dict):
            raise ValueError(f"the metadata of field '{name}' are no object")
        found[name.lower()] = {
            "nullable": True,
            "metadata": {},
            **field,
            "type": _with_defaults(field["type"], f"'{name}'"),
        }
    return list(found.values())


HIGHEST: Final = "delta.columnMapping.maxColumnId"
"""Setting: the highest number that a field ever had."""


def numbered(schema: str, settings: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return a schema in which each field has a number, and settings with the highest one.

    A field without a name for data files gets its own name. Without column mapping both stay as they are.
    """
    if settings.get(MODE, "none") == "none":
        return schema, dict(settings)
    fresh = count(int(settings.get(HIGHEST, 0)) + 1)
    return json.dumps(_with_numbers(json.loads(schema), fresh)), {**settings, HIGHEST: str(next(fresh) - 1)}


def _with_numbers(kind: Any, fresh: Iterator[int]) -> Any:
    """Return a type with numbered fields: in their order, and each before the fields within it."""
    if not isinstance(kind, Mapping):
        return kind
    found = dict(kind)
    for part in ("elementType", "keyType", "valueType"):
        if part in kind:
            found[part] = _with_numbers(kind[part], fresh)
    if "fields" in kind:
        found["fields"] = [_numbered_field(field, fresh) for field in kind["fields"]]
    return found


def _numbered_field(field: Mapping[str, Any], fresh: Iterator[int]) -> dict[str, Any]:
    metadata = dict(field["metadata"])
    if ID not in metadata:
        metadata[ID] = next(fresh)
    metadata.setdefault(PHYSICAL, field["name"])
    return {**field, "metadata": metadata, "type": _with_numbers(field["type"], fresh)}
