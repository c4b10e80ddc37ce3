"""The fields of a table's ``schemaString``, as Spark reads them: what may be missing is filled in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from trinity_delta.schema import MODE, PHYSICAL

__all__ = ["every_field", "fields_of", "mapping_mode", "required_within", "schema_fault"]

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
    found: Sequence[dict[str, Any]] = _filled(schema, "the table")["fields"]
    return tuple(found)


def _filled(kind: Any, where: str) -> Any:
    """Return a type's JSON with missing entries filled in. Raises ValueError naming the place of a malformed one."""
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
    return {key: _filled(part, where) if key.endswith("Type") else part for key, part in found.items()}


def _filled_fields(fields: Any, where: str) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for field in fields if isinstance(fields, list) else [None]:
        if not isinstance(field, dict) or not isinstance(name := field.get("name"), str) or "type" not in field:
            raise ValueError(f"a field of {where} lacks its name or its type")
        if name.lower() in found:
            raise ValueError(f"{where} has two fields '{name}'")
        if not isinstance(field.get("metadata", {}), dict):
            raise ValueError(f"the metadata of field '{name}' are no object")
        found[name.lower()] = {"nullable": True, "metadata": {}, **field, "type": _filled(field["type"], f"'{name}'")}
    return list(found.values())
