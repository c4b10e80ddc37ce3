"""The fields of the log's actions by Delta's protocol: which are required, and their types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_named(value: Any) -> bool:
    return isinstance(value, dict) and all(text is None or isinstance(text, str) for text in value.values())


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_vector(value: Any) -> bool:
    return isinstance(value, dict) and _fault(value, _VECTOR, _NONE) is None


_Fields = Mapping[str, Callable[[Any], bool]]
_NONE: Final[_Fields] = {}
_VECTOR: Final[_Fields] = {
    "storageType": _is_text,
    "pathOrInlineDv": _is_text,
    "sizeInBytes": _is_count,
    "cardinality": _is_count,
}
_REQUIRED: Final[Mapping[str, _Fields]] = {
    "add": {"path": _is_text, "size": _is_count, "dataChange": _is_flag},
    "remove": {"path": _is_text, "dataChange": _is_flag},
    "metaData": {
        "id": _is_text,
        "schemaString": _is_text,
        "partitionColumns": _is_texts,
        "configuration": _is_named,
    },
    "protocol": {"minReaderVersion": _is_count, "minWriterVersion": _is_count},
    "txn": {"appId": _is_text, "version": _is_count},
    "domainMetadata": {"domain": _is_text},
}
_FILE: Final[_Fields] = {
    "partitionValues": _is_named,
    "tags": _is_named,
    "deletionVector": _is_vector,
    "stats": _is_text,
    "modificationTime": _is_count,
}
_OPTIONAL: Final[Mapping[str, _Fields]] = {
    "add": _FILE,
    "remove": _FILE,
    "protocol": {"readerFeatures": _is_texts, "writerFeatures": _is_texts},
    "metaData": {"format": _is_object},
    "domainMetadata": {"configuration": _is_text, "removed": _is_flag},
}


def action_fault(action: Mapping[str, Any]) -> str | None:
    """Return which field an action lacks, or has with a wrong type; None for a valid action."""
    for kind, body in action.items():
        if kind not in _REQUIRED:  # a commitInfo may hold anything
            continue
        if not isinstance(body, dict):
            return f"its '{kind}' is no object"
        if fault := _fault(body, _REQUIRED[kind], _OPTIONAL.get(kind, _NONE)):
            return f"its '{kind}' {fault}"
    return None


def _fault(body: Mapping[str, Any], required: _Fields, optional: _Fields) -> str | None:
    for name, fits in required.items():
        if (value := body.get(name)) is None:
            return f"lacks '{name}'"
        if not fits(value):
            return f"has '{name}' = {value!r}"
    for name, fits in optional.items():
        if (value := body.get(name)) is not None and not fits(value):
            return f"has '{name}' = {value!r}"
    return None
