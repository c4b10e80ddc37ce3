"""Metadata files: their content; for a table without a catalog also their names, and the search for the current one.

Without a catalog the files are numbered, and a number has several spellings: ``v3.metadata.json``,
``v3.gz.metadata.json``, ``v3.metadata.json.gz``. All of them are the same commit, so only one may exist.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic import ValidationError as PydanticError
from pyiceberg.exceptions import ValidationError
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.types import IcebergType

from trinity.errors import TrinityError, first_line
from trinity.storage import Location, ObjectStore
from trinity.storage.errors import system_trouble

METADATA: Final = "metadata"
HINT: Final = f"{METADATA}/version-hint.text"
"""The object with the number from which other engines look for the current file."""
CODEC: Final = "write.metadata.compression-codec"
"""Table property: how metadata files are compressed, as their names show."""
_ENDINGS: Final = (".metadata.json", ".gz.metadata.json", ".metadata.json.gz")
"""Spellings of a number, in the order in which Iceberg's own readers look for them."""
_CODECS: Final = {"none": ".metadata.json", "gzip": ".gz.metadata.json"}
_NUMBERED: Final = re.compile(r"v(\d+)(\.metadata\.json\.gz|(?:\.\w+)?\.metadata\.json)", re.ASCII)
_CATALOGUED: Final = re.compile(r"(\d+)-[0-9a-fA-F-]+(\.gz)?\.metadata\.json(\.gz)?", re.ASCII)
"""Name of a metadata file of a table in a catalog. The catalog knows which file is current."""
_GZIP: Final = b"\x1f\x8b"
_VERSIONS: Final = (1, 2, 3)
_ALWAYS: Final = ("format-version", "location")
"""Fields that every format version has."""


@dataclass(frozen=True)
class Numbered:
    """A name of a metadata file of a table without a catalog: a number of at least ``digits`` digits and an ending."""

    number: int
    digits: int
    ending: str

    @classmethod
    def of(cls, name: str) -> Numbered | None:
        """Return the parts of a name; None for a name of another kind."""
        match = _NUMBERED.fullmatch(name)
        return cls(int(match[1]), len(match[1]), match[2]) if match else None

    def next(self, properties: Mapping[str, str]) -> Numbered:
        """Return the name of the next commit's file, by the table's properties.

        Raises:
            TrinityError: NOT_SUPPORTED for a codec that Iceberg does not have.
        """
        codec = properties.get(CODEC, "none")
        if codec.lower() not in _CODECS:
            raise TrinityError(
                "NOT_SUPPORTED", f"'{CODEC}' = '{codec}': Iceberg has 'none' and 'gzip'; set one of them."
            )
        return Numbered(self.number + 1, self.digits, _CODECS[codec.lower()])

    def __str__(self) -> str:
        return f"v{self.number:0{self.digits}d}{self.ending}"


# -- which file is the present one --------------------------------------------------------------------------


def present_file(store: ObjectStore) -> str | None:
    """Return the absolute path of the newest metadata file of the table in a folder, None when there is no table.

    Raises:
        TrinityError: BAD_DATA when other engines would find another file to be the newest; NOT_SUPPORTED.
    """
    names = store.names(METADATA)
    numbered, catalogued = _newest_numbered(store, names), _newest_catalogued(store, names)
    if numbered and catalogued:  # the table was moved into a catalog, or out of one
        return max(numbered, catalogued, key=_age)
    return numbered or catalogued


def _newest_numbered(store: ObjectStore, names: Sequence[str]) -> str | None:
    found: dict[int, list[Numbered]] = {}
    for name in map(Numbered.of, names):
        if name is not None:
            found.setdefault(name.number, []).append(name)
    if not found:
        return None
    newest, hint = max(found), _hint(store)
    if hint is not None and hint > newest:
        if (now := store.names(METADATA)) != names:  # another process has committed meanwhile
            return _newest_numbered(store, now)
        raise _hint_mismatch(store, f"says {hint}, of which there is no metadata file", newest)
    if hint in found and (gap := next((n for n in range(hint, newest) if n not in found), None)):
        raise _hint_mismatch(store, f"says {hint}, after which number {gap} is missing", newest)
    spelled = {name.ending: name for name in found[newest]}
    known = [spelled[ending] for ending in _ENDINGS if ending in spelled]
    if not known:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Metadata file '{store.path(f'{METADATA}/{found[newest][0]}')}' is compressed in a way that Trinity does "
            f"not know; it knows {', '.join(_ENDINGS)}.",
        )
    return store.path(f"{METADATA}/{known[0]}")


def _hint_mismatch(store: ObjectStore, what: str, newest: int) -> TrinityError:
    return TrinityError(
        "BAD_DATA",
        f"'{store.path(HINT)}' {what}; the newest metadata file there has number {newest}. Restore what is missing, or "
        f"if {newest} is the table as it should be write {newest} into it.",
    )


def metadata_file_names(store: ObjectStore) -> list[str]:
    """Return the names of the metadata files of tables in a catalog."""
    return [name for name in store.names(METADATA) if _CATALOGUED.fullmatch(name)]


def _newest_catalogued(store: ObjectStore, names: Iterable[str]) -> str | None:
    found = [(int(match[1]), f"{METADATA}/{match[0]}") for match in map(_CATALOGUED.fullmatch, names) if match]
    return store.path(max(found, key=lambda f: (f[0], _modified_ns(store, f[1])))[1]) if found else None


def _modified_ns(store: ObjectStore, name: str) -> int:
    found = store.stat(name)
    return found.modified_ns if found else 0


def _age(path: str) -> tuple[int, int]:
    metadata = read_metadata(path)
    return getattr(metadata, "last_sequence_number", 0), metadata.last_updated_ms  # version 1 has no sequence numbers


def _hint(store: ObjectStore) -> int | None:
    """Return the number in the hint; None where it is missing or malformed."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        return int(store.get(HINT))
    return None


def take_back(store: ObjectStore, put: Numbered) -> bool:
    """Remove a metadata file that was just put, if another writer put the same number in another spelling.

    Returns:
        whether it was removed.
    """
    same = {str(n) for n in map(Numbered.of, store.names(METADATA)) if n is not None and n.number == put.number}
    if same <= {str(put)}:
        return False
    store.delete([f"{METADATA}/{put}"])
    return True


# -- what a file says ---------------------------------------------------------------------------------------


def read_metadata(path: str) -> TableMetadata:
    """Return the content of a metadata file, compressed or not.

    Raises:
        TrinityError: BAD_DATA for a missing or damaged file; NOT_SUPPORTED for an intact file that PyIceberg cannot
            parse; the store's errors.
    """
    location = Location.of(path)
    try:
        text = _text(ObjectStore(location.parent).get(location.name))
        found = json.loads(text)
    except FileNotFoundError as error:
        raise damaged(path, "is missing") from error
    except (EOFError, OSError, ValueError, zlib.error) as error:  # from gzip, UTF-8 and JSON
        if (trouble := system_trouble(error, path)) is not None:
            raise trouble from error
        raise damaged(path, f"is damaged ({error})") from error
    if not isinstance(found, dict) or (missing := [name for name in _ALWAYS if name not in found]):
        raise damaged(path, f"is damaged (it lacks {', '.join(missing) if isinstance(found, dict) else 'an object'})")
    try:
        return TableMetadataUtil.parse_raw(text)
    except (ValidationError, ValueError, KeyError, TypeError) as error:
        raise _not_understood(path, found, error) from error


def damaged(path: str, what: str) -> TrinityError:
    """Return the error of a missing or damaged metadata file."""
    return TrinityError(
        "BAD_DATA",
        f"Metadata file '{path}' {what}; restore it from a backup, or go back to what can be read by session.repair().",
    )


def _not_understood(path: str, found: Mapping[str, Any], error: Exception) -> TrinityError:
    version = found["format-version"]
    unknown = next((what for schema in found.get("schemas", ()) for what in _unknown_types(schema, "")), None)
    if version not in _VERSIONS:
        what = f"format version {version}, and Trinity knows {', '.join(map(str, _VERSIONS))}"
    else:
        what = unknown or f"what Trinity does not understand ({_first_line(error)})"
    return TrinityError(
        "NOT_SUPPORTED",
        f"Metadata file '{path}' has {what}. It is not damaged, and repair does not help: read the table with the "
        "engine that wrote it, or undo there what Trinity does not know.",
    )


def _first_line(error: Exception) -> str:
    """Return a parser's message in one line, with the field that it is about."""
    cause = error.__cause__ if isinstance(error.__cause__, PydanticError) else error
    if not isinstance(cause, PydanticError):
        return first_line(error)
    first = cause.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def _unknown_types(schema: Any, above: str) -> Iterator[str]:
    """Yield the columns of unknown types in a schema, which is JSON of the metadata; ``above`` is its column's path."""
    if isinstance(schema, str):
        try:
            TypeAdapter(IcebergType).validate_python(schema)
        except ValueError:
            yield f"column '{above}' of type '{schema}'"
    elif isinstance(schema, dict):
        for field in schema.get("fields", ()):
            name = str(field.get("name"))
            yield from _unknown_types(field.get("type"), f"{above}.{name}" if above else name)
        for part in ("element", "key", "value"):
            if part in schema:
                yield from _unknown_types(schema[part], f"{above}.{part}")


def _text(data: bytes) -> str:
    return (gzip.decompress(data) if data.startswith(_GZIP) else data).decode()


def to_bytes(metadata: TableMetadata, name: Numbered) -> bytes:
    """Return the bytes of a metadata file of that name."""
    data = metadata.model_dump_json(exclude_none=True).encode()
    return gzip.compress(data) if ".gz" in name.ending else data


def is_metadata_file(name: str) -> bool:
    """Return whether a name is that of a metadata file, compressed or not."""
    return name.endswith((".metadata.json", ".metadata.json.gz"))
