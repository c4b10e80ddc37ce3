"""The actions of Delta's log: making those of Trinity's commits, and reading facts from the actions of any commit."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Context, Decimal
from typing import Any, Final
from urllib.parse import quote, unquote

from trinity.clock import now_ms
from trinity.errors import TrinityError
from trinity.spi import ColumnStats, DataFile, DataType, TableDefinition, TransactionId, parse_type
from trinity.storage import Location, ObjectStore, identity_only
from trinity.storage.location import is_absolute
from trinity.storage.parquet_sink import upper_bound
from trinity_delta.deletes import DeletionVector
from trinity_delta.schema import schema_string

LOG: Final = "_delta_log"
LAST_CHECKPOINT: Final = f"{LOG}/_last_checkpoint"
"""The object that names the newest checkpoint: a hint, which may be old."""
SIDECAR_DOMAIN: Final = "trinity.sidecar"
"""Domain metadata: the sidecar's files, with paths relative to the table."""
VACUUM_DOMAIN: Final = "trinity.vacuum"
"""Domain metadata: the oldest readable version."""
ORDER_DOMAIN: Final = "trinity.row-order"
"""Domain metadata: the table's :class:`~trinity.spi.RowOrder`."""
DOMAINS: Final = frozenset({SIDECAR_DOMAIN, VACUUM_DOMAIN, ORDER_DOMAIN})
"""The names of all domain metadata of Trinity's."""
TAG_TIER: Final = "trinity.tier"
TAG_COMMIT: Final = "trinity.commit"
"""Tag of a file from compaction: the highest commit folded (K6). An appended file has its commit's own number.

A file of another engine has the tag in a checkpoint, and where a restore added it again.
"""
TAG_ORDER: Final = "trinity.order"
"""Tag of an appended file: the number of its commit. It is read only for files whose commit is not known otherwise: in
a version that is rebuilt from a checkpoint, and after a RESTORE.
"""
TAG_ORIGIN: Final = "trinity.origin"
"""Tag that Trinity's checkpoints give to a file of another engine: its :class:`~trinity.spi.Origin`."""
TAG_BUCKET: Final = "trinity.bucket"
ENGINE: Final = "Trinity/"
"""The beginning of the writer's name in Trinity's own commits."""
RESTORE: Final = "RESTORE"
"""Operation of a commit that brings back an older version."""
TAG_OPERATION: Final = "trinity.operation"
"""Tag of a commit: Trinity's name for the operation, where Delta has none."""

Action = dict[str, Any]


def by_kind(actions: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the bodies of actions by their kind."""
    found: dict[str, list[Any]] = {}
    for action in actions:
        for kind, body in action.items():
            found.setdefault(kind, []).append(body)
    return found


def commit_id(found: Mapping[str, Sequence[Any]]) -> str:
    """Return the hash of a commit's ``commitInfo``, or without that of all its actions: it identifies the commit."""
    info = found.get("commitInfo") or found
    return hashlib.sha256(json.dumps(info, sort_keys=True).encode()).hexdigest()


_KNOWN: Final = (
    "path", "partitionValues", "size", "deletionVector", "tags", "baseRowId", "defaultRowCommitVersion",
)  # fmt: skip
"""Fields of an add action that a remove action also has."""


def commit_name(version: int) -> str:
    """Return the object name of a version's commit file."""
    return f"{LOG}/{version:020d}.json"


def file_key(file: Mapping[str, Any]) -> str:
    """Return the path of an ``add`` or ``remove`` action in one spelling: writers spell absolute paths differently."""
    path = str(file["path"])
    return str(Location.of(unquote(path))) if is_absolute(path) else path


def committed_ms(info: Mapping[str, Any]) -> int:
    """Return the time of a ``commitInfo``, milliseconds since the epoch; 0 if it has none."""
    at = info.get("inCommitTimestamp") or info.get("timestamp")
    return at if isinstance(at, int) else 0


def add(file: DataFile, store: ObjectStore, definition: TableDefinition, *, order: int | None = None) -> Action:
    """Return the action that adds a file of a sink.

    Args:
        file: the file.
        store: the table's folder.
        definition: the table's definition.
        order: the number of the commit, for appended rows; None for a compaction, which changes no row for a stream
            that reads the table.
    """
    tags = {TAG_TIER: file.tier.value}
    if order is not None:
        tags[TAG_ORDER] = str(order)
    if file.commit is not None:
        tags[TAG_COMMIT] = str(file.commit)
    if file.bucket:
        tags[TAG_BUCKET] = f"{file.bucket.index}/{file.bucket.count}/{file.bucket.types}"
    return {
        "add": {
            "path": quote(store.relative(file.path), safe="/="),
            "partitionValues": _to_delta_partition(file.partition, definition),
            "size": file.size,
            "modificationTime": now_ms(),
            "dataChange": order is not None,
            "stats": _to_delta(file, definition),
            "tags": tags,
        }
    }


def remove(path: str, file: DataFile, definition: TableDefinition, *, changes: bool = False) -> Action:
    """Return the action that removes a file.

    Args:
        path: the file's path in the log.
        file: the file.
        definition: the table's definition.
        changes: whether the commit changes rows; False for a compaction.
    """
    gone: Action = {
        "path": path,
        "deletionTimestamp": now_ms(),
        "dataChange": changes,
        "extendedFileMetadata": True,
        "partitionValues": _to_delta_partition(file.partition, definition),
        "size": file.size,
    }
    if isinstance(file.deletes, DeletionVector):  # Delta identifies a file by its path and its vector
        gone["deletionVector"] = file.deletes.to_action()
    return {"remove": gone}


def remove_added(added: Mapping[str, Any], *, changes: bool) -> Action:
    """Return the action that removes the file of an add action, with its deletion vector."""
    known = {key: added[key] for key in _KNOWN if added.get(key) is not None}
    return {"remove": {**known, "deletionTimestamp": now_ms(), "dataChange": changes, "extendedFileMetadata": True}}


def with_vector(added: Mapping[str, Any], vector: DeletionVector) -> list[Action]:
    """Return the actions that replace a file's deletion vector and nothing else; no row changes (R1)."""
    kept = {key: value for key, value in added.items() if value is not None}
    marked = {"dataChange": False, "stats": loosened(added["stats"]), "deletionVector": vector.to_action()}
    return [remove_added(added, changes=False), {"add": {**kept, **marked}}]


def transaction(txn: TransactionId) -> Action:
    """Return the action that records an application's version (L4)."""
    return {"txn": {"appId": txn[0], "version": txn[1], "lastUpdated": now_ms()}}


def sidecar_list(files: Iterable[DataFile], store: ObjectStore) -> Action:
    """Return the action that lists the sidecar's files from this commit on."""
    listed = [replace(f, path=store.relative(f.path)).to_dict() for f in files]
    return domain(SIDECAR_DOMAIN, listed)


def vacuum_mark(oldest: int) -> Action:
    """Return the action that marks the oldest readable version."""
    return domain(VACUUM_DOMAIN, {"oldest": oldest})


def new_metadata(definition: TableDefinition, settings: Mapping[str, str]) -> dict[str, Any]:
    """Return the ``metaData`` action of a new table, with its configuration."""
    return {
        "id": definition.id,
        "name": definition.name,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema_string(definition),
        "partitionColumns": list(definition.partition_columns),
        "configuration": dict(settings),
        "createdTime": now_ms(),
    }


def domain(name: str, content: Sequence[Any] | Mapping[str, Any]) -> Action:
    """Return an action with domain metadata of Trinity, which holds until the next one of that name."""
    text = json.dumps(content, separators=(",", ":"))
    return {"domainMetadata": {"domain": name, "configuration": text, "removed": False}}


def with_domains(actions: Iterable[Mapping[str, Any]], further: Iterable[Action]) -> list[Action]:
    """Return a commit's actions, and those of the further domain metadata whose domain the commit does not set."""
    found = [dict(action) for action in actions]
    domains = {action["domainMetadata"]["domain"] for action in found if "domainMetadata" in action}
    return [*found, *(action for action in further if action["domainMetadata"]["domain"] not in domains)]


def is_of_trinity(actions: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether Trinity made a commit by itself, not through Delta's classes. False for a restore."""
    infos = [action["commitInfo"] for action in actions if "commitInfo" in action]
    return any(str(info.get("engineInfo", "")).startswith(ENGINE) for info in infos) and not is_restore(actions)


def is_restore(actions: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether a commit brought back the files of an older version."""
    return any(action["commitInfo"].get("operation") == RESTORE for action in actions if "commitInfo" in action)


# -- partition values and statistics of a file: texts by the protocol, and back ------------------------
#
# Other engines prune by these statistics. A bound is written only where it is certain to hold for every reader: no
# floats (Parquet's bounds leave NaN out, Delta's do not), no binaries and booleans (Delta has no bounds for them).


def check_partitions(definition: TableDefinition) -> None:
    """Refuse a partitioning that Delta does not have: transforms, and binary columns. Raises NOT_SUPPORTED."""
    identity_only(definition, "Delta")
    for name in definition.partition_columns:
        if parse_type(definition.column(name).type).name == "binary":
            raise TrinityError(
                "NOT_SUPPORTED",
                f"Table '{definition.full_name}' cannot be partitioned by column '{name}' of type binary: Delta keeps "
                "partition values as text. Use a string column.",
            )


def _to_delta_partition(partition: Mapping[str, Any], definition: TableDefinition) -> dict[str, str | None]:
    """Return the ``partitionValues`` of a file.

    Raises:
        TrinityError: CONSTRAINT_VIOLATION for an empty string, which Delta reads as NULL.
    """
    return {name: _partition_text(name, value, definition) for name, value in partition.items()}


def _partition_text(name: str, value: Any, definition: TableDefinition) -> str | None:
    if value is None:
        return None
    if value == "":
        raise TrinityError(
            "CONSTRAINT_VIOLATION",
            f"'' (an empty string) in partition column '{name}' of table '{definition.full_name}': Delta reads it as "
            "NULL there. Write another value.",
        )
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, float):
        return _JAVA_FLOATS.get(str(value), str(value))
    if isinstance(value, dt.datetime):
        # an instant is written with its zone, or readers would read it in their session's zone
        zone = "Z" if value.tzinfo is not None else ""
        clock = value.astimezone(dt.UTC).replace(tzinfo=None) if zone else value
        return clock.isoformat(sep="T" if zone else " ", timespec="microseconds") + zone
    return value.isoformat() if isinstance(value, dt.date) else str(value)


_JAVA_FLOATS: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
"""Python's text of a float -> that of Java, which every reader knows."""


def from_delta_partition(values: Mapping[str, str | None], definition: TableDefinition) -> dict[str, Any]:
    """Return the partition of a file of any writer, by stored names. Values that are not understood are left out."""
    found, known = {}, {name.lower(): text for name, text in values.items()}
    for column in map(definition.column, definition.partition_columns):
        name = column.stored_name
        if name.lower() not in known:
            continue
        try:
            found[name] = _partition_value(known[name.lower()], parse_type(column.type))
        except (ValueError, ArithmeticError):
            continue
    return found


def with_partition_types(file: DataFile, definition: TableDefinition) -> DataFile:
    """Return a file with its partition values in the types that the columns have now."""
    return replace(file, partition=from_delta_partition(_to_delta_partition(file.partition, definition), definition))


def _partition_value(text: str | None, kind: DataType) -> Any:
    if text is None or (text == "" and not (kind.is_text or kind.name == "binary")):
        return None
    # the protocol says that '' is NULL, Spark reads ''; writers differ in how they escape bytes: leave these values to
    # the reader of the file
    if text == "" or kind.name == "binary":
        raise ValueError(text)
    if kind.name == "boolean":
        return text.lower() == "true"
    if kind.is_integer or kind.name == "time":  # TIME is stored as microseconds
        return int(text)
    if kind.is_floating:
        return float(text)
    if kind.name == "decimal":
        return Decimal(text)
    if kind.name == "date":
        return dt.date.fromisoformat(text)
    if kind.name == "timestamp":
        value = dt.datetime.fromisoformat(text)
        if value.tzinfo is None:  # written in some session's zone: the instant is not known
            raise ValueError(text)
        return value
    return dt.datetime.fromisoformat(text) if kind.name == "timestamp_ntz" else text


_TEXT_LENGTH: Final = 32
"""Longer string bounds are cut, as Delta keeps its statistics short."""
_MILLISECOND: Final = dt.timedelta(milliseconds=1)
_TIGHT: Final = re.compile(r',"tightBounds":(true|false)|"tightBounds":(true|false),?')
_MARK: Final = "\0decimal:"
_MARKED: Final = re.compile(r'"\\u0000decimal:([^"]+)"')


def _to_delta(file: DataFile, definition: TableDefinition) -> str:
    """Return the ``stats`` text of an add action, under the names that columns have in the file."""
    kinds = _kinds(definition)
    known = {name: s for name, s in file.stats.items() if name in kinds}
    low = {name: _bound(s.min, kinds[name], upper=False) for name, s in known.items()}
    high = {name: _bound(s.max, kinds[name], upper=True) for name, s in known.items()}
    stats = {
        "numRecords": file.rows,
        "minValues": {name: v for name, v in low.items() if v is not None},
        "maxValues": {name: v for name, v in high.items() if v is not None},
        "nullCount": {name: s.nulls for name, s in known.items() if s.nulls is not None},
    }
    # ``json`` cannot write all digits of a Decimal as a number: decimals are marked texts, which become numbers here
    return _MARKED.sub(r"\1", json.dumps(stats, separators=(",", ":")))


def loosened(text: str) -> str:
    """Return the ``stats`` text of a file that has lost rows: its bounds hold, but need not be tight."""
    known = _TIGHT.sub("", text)
    return f'{known.removesuffix("}")}{"," if len(known) > len("{}") else ""}"tightBounds":false}}'


def parsed_text(stats: Mapping[str, Any]) -> str:
    """Return the ``stats`` text of statistics that a checkpoint holds as typed values."""
    return _MARKED.sub(r"\1", json.dumps(_without_unknown(stats), default=_plain, separators=(",", ":")))


def _without_unknown(stats: Mapping[str, Any]) -> dict[str, Any]:
    """Return statistics without the unknown ones, which are None."""
    known = {name: _without_unknown(value) if isinstance(value, Mapping) else value for name, value in stats.items()}
    return {name: value for name, value in known.items() if value is not None}


def _plain(value: Any) -> str:
    """Return a bound as text for JSON; a decimal with its mark."""
    if isinstance(value, Decimal):
        return f"{_MARK}{value:f}"
    if isinstance(value, dt.datetime):
        zone = "" if value.tzinfo is None else "Z"
        clock = value.astimezone(dt.UTC).replace(tzinfo=None) if zone else value
        return clock.isoformat(timespec="microseconds") + zone
    return str(value)


def rows_of(text: str | None) -> int | None:
    """Return the number of rows of a ``stats`` text; None if it has none."""
    return _rows(_parsed_json(text))


def _rows(stats: Mapping[str, Any]) -> int | None:
    rows = stats.get("numRecords")
    return rows if isinstance(rows, int) and rows >= 0 else None


def _parsed_json(text: str | None) -> Mapping[str, Any]:
    """Return the statistics of a text; empty if another writer wrote no valid JSON: files are read without any."""
    try:
        found = json.loads(text, parse_float=Decimal) if text else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def from_delta(text: str | None, definition: TableDefinition) -> tuple[int | None, dict[str, ColumnStats]]:
    """Return (rows, statistics by stored name) of an add action; None for an unknown number of rows.

    Statistics that are not understood are left out.
    """
    stats = _parsed_json(text)
    rows, parts = _rows(stats), (stats.get(part) for part in ("minValues", "maxValues", "nullCount"))
    low, high, nulls = (part if isinstance(part, dict) else {} for part in parts)
    found = {}
    for name, kind in _kinds(definition).items():
        if name in low or name in high or name in nulls:
            count = nulls.get(name)
            found[name] = ColumnStats(
                _value(low.get(name), kind, upper=False),
                _value(high.get(name), kind, upper=True),
                # without the number of rows a count of NULLs cannot show that all values are NULL
                count if isinstance(count, int) and rows is not None else None,
            )
    return rows, found


def _kinds(definition: TableDefinition) -> dict[str, DataType]:
    return {c.stored_name: parse_type(c.type) for c in definition.columns}


def _bound(value: Any, kind: DataType, *, upper: bool) -> Any:
    if value is None:
        return None
    if kind.is_integer or kind.name == "time":
        return value if isinstance(value, int) else None
    if kind.name == "decimal":
        return f"{_MARK}{value:f}" if isinstance(value, Decimal) else None
    if kind.is_text and isinstance(value, str):
        if _MARK in value:
            return None
        return upper_bound(value, _TEXT_LENGTH) if upper else value[:_TEXT_LENGTH]
    if kind.name == "date" and isinstance(value, dt.date):
        return value.isoformat()
    if kind.is_timestamp and isinstance(value, dt.datetime):
        return _instant(value, kind, upper)
    return None


def _instant(value: dt.datetime, kind: DataType, upper: bool) -> str:
    """Return a bound in milliseconds, as Delta keeps it: rounded down for a minimum, up for a maximum."""
    unit = "milliseconds"
    if upper and value.microsecond % 1000:
        try:
            value += _MILLISECOND
        except OverflowError:  # in the last one of the year 9999
            unit = "microseconds"
    if kind.name == "timestamp" and value.tzinfo is not None:
        value = value.astimezone(dt.UTC)
    text = value.replace(tzinfo=None).isoformat(timespec=unit)
    return text + ("Z" if kind.name == "timestamp" else "")


def _value(bound: Any, kind: DataType, *, upper: bool) -> Any:
    try:
        return _parsed(bound, kind, upper) if bound is not None else None
    except (ValueError, OverflowError, TypeError, AttributeError):  # a value of another type than the column's
        return None


def _parsed(bound: Any, kind: DataType, upper: bool) -> Any:
    if kind.is_integer:
        return bound if isinstance(bound, int) else None
    if kind.name == "decimal":
        if isinstance(bound, Decimal):
            return _decimal_bound(bound, kind, upper=upper)
        return Decimal(bound) if isinstance(bound, int) else None
    if kind.is_text:
        return str(bound)
    if kind.name == "date":
        return dt.date.fromisoformat(bound)
    if kind.is_timestamp:
        value = dt.datetime.fromisoformat(bound.replace("Z", "+00:00"))
        # other writers cut a maximum to milliseconds
        until_last = dt.datetime.max - value.replace(tzinfo=None)
        return value + min(_MILLISECOND - dt.timedelta(microseconds=1), until_last) if upper else value
    return None


_EXACT_DIGITS: Final = 15
"""Decimals of this many digits are exact as 64-bit floating-point numbers."""
_FLOAT_DIGITS: Final = 17
"""No text of a 64-bit floating-point number has more digits that count."""
_EXACT: Final = Context(prec=100)


def _decimal_bound(bound: Decimal, kind: DataType, *, upper: bool) -> Decimal:
    """Return a bound of decimals. delta-rs writes it as a floating-point number: where it may be one, it is widened."""
    digits = "".join(map(str, bound.as_tuple().digits)).strip("0")
    if not digits or kind.arguments[0] <= _EXACT_DIGITS or len(digits) > _FLOAT_DIGITS:
        return bound
    margin = Decimal(1).scaleb(bound.adjusted() + 2 - _EXACT_DIGITS)  # some tens of units in the last place
    return _EXACT.add(bound, margin) if upper else _EXACT.subtract(bound, margin)
