"""Checkpoints as files: one part, several parts, or Delta's version 2, whose sidecars hold the actions of files."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from trinity.loggers import logger
from trinity.storage import ObjectStore
from trinity_delta.actions import LOG, Action, parsed_text
from trinity_delta.shapes import action_fault

_log = logger("trinity.delta")
_NAME: Final = re.compile(
    r"(?P<version>\d{20})\.checkpoint(?:\.(?P<part>\d{10})\.(?P<parts>\d{10})|\.(?P<id>[0-9a-fA-F-]{36}))?"
    r"\.(?P<ending>parquet|json)"
)
_SIDECARS: Final = f"{LOG}/_sidecars"
_NAMED_BY: Final = {
    "txn": "appId",
    "add": "path",
    "metaData": "id",
    "protocol": "minReaderVersion",
    "domainMetadata": "domain",
}
"""Kind of action -> a field that each such action has. Removed files are left out."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint: its actions without those of removed files, and its Parquet files, which have these too."""

    actions: list[Action]
    parts: tuple[pq.ParquetFile, ...]


def checkpoint_name(version: int) -> str:
    """Return the object name of a version's classic checkpoint."""
    return f"{LOG}/{version:020d}.checkpoint.parquet"


def checkpoints_of(names: Iterable[str]) -> dict[int, list[list[str]]]:
    """Return the complete checkpoints of a log: version -> the file names of each, the classic one first."""
    found: dict[int, dict[tuple[str, str], list[str]]] = {}
    for name in sorted(names):
        if (match := _NAME.fullmatch(name)) and (match["ending"] == "parquet" or match["id"]):
            kind = (match["parts"] or "", match["id"] or "")
            found.setdefault(int(match["version"]), {}).setdefault(kind, []).append(name)
    whole = {
        version: [files for (parts, _), files in sorted(kinds.items()) if len(files) == int(parts or 1)]
        for version, kinds in found.items()
    }
    return {version: kinds for version, kinds in whole.items() if kinds}


def read_checkpoint(store: ObjectStore, names: Iterable[str]) -> Checkpoint | None:
    """Return a checkpoint; None where it is missing, damaged or empty: commits are read instead.

    Actions of removed files are left out, as they may be most of a checkpoint.
    """
    paths = [f"{LOG}/{name}" for name in names]
    try:
        found = [_read(store, path) for path in paths]
        actions = [action for part in found for action in part.actions]
        sidecars = [action["sidecar"]["path"] for action in actions if "sidecar" in action]
        found += [_read(store, f"{_SIDECARS}/{unquote(path).rsplit('/', 1)[-1]}") for path in sidecars]
    except (OSError, ValueError, KeyError, TypeError) as error:
        _log.warning("Checkpoint '%s' is passed over: %s", store.path(paths[0]), error)
        return None
    actions = [action for part in found for action in part.actions if not action.keys() & _OF_ITSELF]
    return Checkpoint(actions, tuple(file for part in found for file in part.parts)) if actions else None


_OF_ITSELF: Final = {"checkpointMetadata", "sidecar"}
"""Actions of a checkpoint about itself."""


def _read(store: ObjectStore, path: str) -> Checkpoint:
    """Return the content of a file of a checkpoint. Raises ValueError, OSError, KeyError, TypeError if damaged."""
    data = store.get(path)
    if path.endswith(".json"):
        return Checkpoint(list(_whole(json.loads(line) for line in data.splitlines() if line.strip())), ())
    file = pq.ParquetFile(pa.BufferReader(data), coerce_int96_timestamp_unit="us")
    kinds = [kind for kind in file.schema_arrow.names if kind != "remove"]
    if not kinds:
        return Checkpoint([], (file,))
    table = _within_years(file.read_row_groups(_groups(file), kinds))
    filled = [pc.is_valid(column) for column in table.columns]
    rows = table.filter(reduce(pc.or_, filled)).to_pylist(maps_as_pydicts="strict")
    return Checkpoint(list(_whole(rows)), (file,))


def _within_years(table: pa.Table) -> pa.Table:
    """Return a checkpoint without typed statistics in years that Python does not have: they become unknown."""
    at = table.schema.get_field_index("add")
    if at < 0 or not any(name.endswith("_parsed") for name in (f.name for f in table.schema.field(at).type)):
        return table
    return table.set_column(at, "add", _known(table.column(at).combine_chunks()))


def _known(values: pa.Array) -> pa.Array:
    kind = values.type
    if pa.types.is_struct(kind) and kind.num_fields:
        parts = [_known(values.field(number)) for number in range(kind.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=values.is_null())
    if pa.types.is_date32(kind):
        plain, first, last = values, _FIRST.date(), _LAST.date()
    elif pa.types.is_timestamp(kind) and kind.unit != "ns":
        plain, first, last = values.cast(pa.timestamp(kind.unit)), _FIRST, _LAST
    else:
        return values
    within = pc.and_(pc.greater_equal(plain, pa.scalar(first, plain.type)), pc.less(plain, pa.scalar(last, plain.type)))
    return pc.if_else(within, values, pa.scalar(None, kind))


_FIRST: Final = dt.datetime(1, 1, 1)
_LAST: Final = dt.datetime(9999, 12, 31)
"""Exact in every unit of time. Bounds within this last day become unknown as well."""


def _whole(rows: Iterable[Mapping[str, Any]]) -> Iterator[Action]:
    """Yield the actions of rows. Raises ValueError for a malformed one."""
    for row in rows:
        action = {kind: _present(body) for kind, body in row.items() if body is not None}
        if fault := action_fault(action):
            raise ValueError(fault)
        if action:
            yield action


def _groups(file: pq.ParquetFile) -> list[int]:
    """Return the row groups that hold more than removed files."""
    numbers = range(file.num_row_groups)
    if not {*file.schema_arrow.names} <= {*_NAMED_BY, "remove"}:
        return [*numbers]
    leaves = {f"{kind}.{name}" for kind, name in _NAMED_BY.items()}
    return [number for number in numbers if _holds(file.metadata.row_group(number), leaves)]


def _holds(group: pq.RowGroupMetaData, leaves: Container[str]) -> bool:
    """Return whether a row group may have a value in one of the named columns."""
    for column in map(group.column, range(group.num_columns)):
        if column.path_in_schema in leaves:
            found = column.statistics
            if found is None or not found.has_null_count or found.null_count < column.num_values:
                return True
    return False


def _present(body: Mapping[str, Any]) -> Action:
    """Return an action without its empty fields: a checkpoint has a column for every field that there may be.

    Statistics that another engine wrote as values are returned as text.
    """
    found = {key: value for key, value in body.items() if value is not None and not key.endswith("_parsed")}
    if (parsed := body.get("stats_parsed")) is not None:
        found.setdefault("stats", parsed_text(parsed))
    if (vector := found.get("deletionVector")) is not None:
        found["deletionVector"] = {key: value for key, value in vector.items() if value is not None}
    return found
