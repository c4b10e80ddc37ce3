"""The fields of a table's ``schemaString``, as Spark reads them: what may be left out is filled in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from trinity.spi import Check
from trinity.storage import quoted
from trinity_delta.schema import MODE, PHYSICAL

__all__ = ["every_field", "fields_of", "mapping_mode", "nested_not_null", "schema_fault"]

_PARTS: Final[Mapping[str, Mapping[str, bool | None]]] = {
    "array": {"elementType": None, "containsNull": True},
    "map": {"keyType": None, "valueType": None, "valueContainsNull": True},
    "struct": {"fields": None},
}
"""Type -> what its JSON has beside the name; a value is Spark's default for what is left out."""


def fields_of(metadata: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
    """Return the fields of the ``schemaString``. Raises ValueError for a text that is no schema."""
    return _fields(metadata["schemaString"])


def mapping_mode(metadata: Mapping[str, Any]) -> str:
    """Return the mode of column mapping: ``none``, ``name`` or ``id``, or another word that a newer Delta knows."""
    return str(metadata["configuration"].get(MODE, "none")).lower()


def every_field(fields: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Return the fields, and those within their types at any depth."""
    for field in fields:
        yield field
        yield from every_field(list(_within(field["type"])))


def _within(kind: Any) -> Iterator[Mapping[str, Any]]:
    if not isinstance(kind, str):
        yield from kind.get("fields", ())
        for part in ("elementType", "keyType", "valueType"):
            yield from _within(kind.get(part, ""))


def schema_fault(metadata: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the schema of a ``metaData`` action; None for one that can be read."""
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


def nested_not_null(fields: Sequence[Mapping[str, Any]]) -> Iterator[Check]:
    """Return the conditions under which no value lacks what is NOT NULL within it; NULL around it meets them."""
    for field in fields:
        for path, condition in _demands(field["type"], quoted(field["name"]), 0):
            name = f"{field['name']}{path}"
            yield Check(f"{name} NOT NULL", condition, every=True)


def _demands(kind: Any, value: str, depth: int) -> Iterator[tuple[str, str]]:
    """Return a path and a condition for each demand within a type.

    Args:
        kind: the type.
        value: the Spark expression of a value of it.
        depth: lambdas around the value.
    """
    if isinstance(kind, str):
        return
    if kind["type"] == "struct":
        for field in kind["fields"]:
            inner = f"{value}.{quoted(field['name'])}"
            found = [*([] if field["nullable"] else [("", f"{inner} IS NOT NULL")])]
            for path, condition in (*found, *_demands(field["type"], inner, depth)):
                yield f".{field['name']}{path}", f"({value} IS NULL OR {condition})"
        return
    parts = [("element", value, kind.get("elementType"), kind.get("containsNull"))]
    if kind["type"] == "map":
        parts = [
            ("key", f"map_keys({value})", kind["keyType"], True),  # no key is NULL anyway
            ("value", f"map_values({value})", kind["valueType"], kind["valueContainsNull"]),
        ]
    for part, items, inner, nullable in parts:
        item = f"item_{depth}"
        found = [*([] if nullable else [("", f"{item} IS NOT NULL")])]
        for path, condition in (*found, *_demands(inner, item, depth + 1)):
            yield f".{part}{path}", f"forall({items}, {item} -> {condition})"


@lru_cache(maxsize=256)
def _fields(text: str) -> tuple[dict[str, Any], ...]:
    schema = json.loads(text)
    if not isinstance(schema, dict) or schema.get("type") != "struct":
        raise ValueError("it is no struct")
    found: Sequence[dict[str, Any]] = _filled(schema, "the table")["fields"]
    return tuple(found)


def _filled(kind: Any, where: str) -> Any:
    """Return a type's JSON with what may be left out. Raises ValueError naming the place of what is not understood."""
    if isinstance(kind, str):
        return kind
    if not isinstance(kind, dict) or not isinstance(name := kind.get("type"), str):
        raise ValueError(f"{where} has no type")
    parts = _PARTS.get(name)
    if parts is None:  # of a user's own: the column is refused by the name of its type
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
