"""Trinity's records in a table: facts that are carried from commit to commit, and the definition of each version.

Facts are in the summary of each snapshot, and in a table property. The definitions are in properties.

A version is read with the summaries of its own snapshot and of earlier ones. If another engine lets these snapshots
expire, the table property still has the facts as of the newest commit.
"""

from __future__ import annotations

import hashlib
import json
from collections import ChainMap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, takewhile
from typing import Any, Final

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.table.update import SetPropertiesUpdate, TableUpdate

from trinity.errors import TrinityError
from trinity.spi import RowOrder

DEFINITION: Final = "trinity.definition"
"""Table property: JSON of the definition, as an Iceberg schema cannot hold all of it.

The property ``trinity.definition.<schema id>`` has the definition with an older schema. If the key or the properties
changed later without a new schema, ``trinity.definition.<schema id>.<version>`` has the definition up to that version.
"""


STATE: Final = "trinity.state"
"""Table property: JSON object with the facts that the newest Trinity commit carries, its version, and a mark."""
_MARK: Final = "definition"
"""Entry of :data:`STATE`: a digest of the definition. It shows that Trinity made the table, and reveals a definition
that others have changed or removed.
"""
OPERATION: Final = "trinity.operation"
"""Snapshot summary: Trinity's name for the operation, as ``history()`` shows it."""
TXN: Final = "trinity.txn"
"""Snapshot summary: JSON object application -> highest recorded version (L4); carried forward."""
INDEX: Final = "trinity.index"
"""Snapshot summary: name of the file index below the table's folder; carried forward."""
ORDER: Final = "trinity.row-order"
"""Snapshot summary: the table's :class:`~trinity.spi.RowOrder`; carried forward."""
ADDED: Final = "trinity.added"
"""Table property: JSON list of the versions in which other engines appended, among those that Trinity let expire.

The rows of their files are new in that version. Without the snapshot's summary they might be copies (L3).
"""
_CARRIED: Final = (TXN, INDEX, ORDER)
_BEFORE: Final = "before"
"""Entry of the property :data:`STATE`: JSON of the previous record, as long as some version is read with it."""


def facts(metadata: TableMetadata) -> dict[str, str]:
    """Return the facts that the newest Trinity commit recorded."""
    found: dict[str, str] = json.loads(metadata.properties.get(STATE, "{}"))
    return found


def mark_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the mark of the definition among table properties; empty where there is none."""
    text = properties.get(DEFINITION)
    return {} if text is None else {_MARK: hashlib.sha256(text.encode()).hexdigest()[:16]}


def removed_definition_mark(metadata: TableMetadata) -> dict[str, str]:
    """Return the mark of a definition that another engine removed or changed; empty if none did."""
    mark = {key: value for key, value in facts(metadata).items() if key == _MARK}
    return {} if mark == mark_of(metadata.properties) else mark


def definitions(metadata: TableMetadata) -> dict[str, str]:
    """Return the properties with the definitions of all versions."""
    return {k: v for k, v in metadata.properties.items() if k == DEFINITION or k.startswith(f"{DEFINITION}.")}


def archived_definition(metadata: TableMetadata, definition: str, *, same_schema: bool) -> dict[str, str]:
    """Return the properties that keep the present definition for the versions until now, before it is replaced.

    ``same_schema``: the new definition has the same schema.
    """
    schema = metadata.current_schema_id
    return {f"{DEFINITION}.{schema}{f'.{newest_version(metadata)}' if same_schema else ''}": definition}


def newest_version(metadata: TableMetadata) -> int:
    """Return the newest version; 0 for a table without snapshots."""
    return version_of(metadata.current_snapshot())


def definition_at(metadata: TableMetadata, schema_id: int, version: int) -> Mapping[str, Any] | None:
    """Return the definition of a version; None for an external table."""
    definition: Mapping[str, Any] | None = json.loads(
        metadata.properties.get(_property(metadata, schema_id, version), "null")
    )
    return definition


def stale_definitions(metadata: TableMetadata, gone: Collection[int]) -> list[str]:
    """Return the properties with definitions that only versions of removed snapshots have."""
    current = metadata.current_schema_id
    needed = {
        _property(metadata, current if s.schema_id is None else s.schema_id, s.sequence_number or 0)
        for s in metadata.snapshots
        if s.snapshot_id not in gone
    }
    return sorted(key for key in metadata.properties if key.startswith(f"{DEFINITION}.") and key not in needed)


def appended(metadata: TableMetadata) -> frozenset[int]:
    """Return the versions in which other engines appended, and of which the snapshots have expired."""
    return frozenset(json.loads(metadata.properties.get(ADDED, "[]")))


def recorded_appends(metadata: TableMetadata, gone: Collection[int], oldest: int) -> tuple[TableUpdate, ...]:
    """Return the update that records which of the snapshots that expire are appends of other engines.

    Args:
        metadata: the table's metadata.
        gone: ids of the snapshots.
        oldest: the lowest version that some row still has; records of older ones are dropped.
    """
    if DEFINITION not in metadata.properties:
        return ()
    found = {version_of(s) for s in metadata.snapshots if s.snapshot_id in gone and _is_append_of_others(s)}
    kept = {version for version in appended(metadata) | found if version >= oldest}
    if kept == appended(metadata):
        return ()
    return (SetPropertiesUpdate(updates={ADDED: json.dumps(sorted(kept), separators=(",", ":"))}),)


def _is_append_of_others(snapshot: Snapshot) -> bool:
    """Return whether another engine added rows in a snapshot, and copied none."""
    own = OPERATION in summary_of(snapshot)
    return not own and snapshot.summary is not None and snapshot.summary.operation is Operation.APPEND


def _property(metadata: TableMetadata, schema_id: int, version: int) -> str:
    """Return the name of the property with the definition of a version.

    No definition is recorded for a schema that another engine made. The next recorded one stands for it; that may lack
    later changes, such as the column for stamps.
    """
    keys = [key for key in metadata.properties if key.startswith(f"{DEFINITION}.")]
    suffixes = {key: key.removeprefix(f"{DEFINITION}.").split(".") for key in keys}
    known = {tuple(map(int, suffix)): key for key, suffix in suffixes.items()}
    same = [suffix for suffix in known if len(suffix) == 2 and suffix[0] == schema_id and suffix[1] >= version]
    later = [suffix for suffix in known if len(suffix) == 1 and suffix[0] >= schema_id != metadata.current_schema_id]
    return known[min(same or later)] if same or later else DEFINITION


def version_of(snapshot: Snapshot | None) -> int:
    """Return the version of a snapshot: its sequence number; 0 for a table without snapshots."""
    return (snapshot.sequence_number or 0) if snapshot else 0


def lineage(metadata: TableMetadata) -> list[Snapshot]:
    """Return the unexpired snapshots that led to the current one, oldest first."""
    return list(_newest_first(metadata))[::-1]


def _newest_first(metadata: TableMetadata) -> Iterator[Snapshot]:
    """Yield the unexpired snapshots that led to the current one, newest first; the lookup is lazy."""
    at, snapshots = metadata.current_snapshot_id, metadata.snapshots
    for snapshot in reversed(snapshots):  # a snapshot comes after those before it
        if at is None:
            return
        if snapshot.snapshot_id == at:
            yield snapshot
            at = snapshot.parent_snapshot_id
    by_id = {s.snapshot_id: s for s in snapshots} if at is not None else {}
    while at is not None and at in by_id:  # the rest of the lineage, if another engine has reordered the snapshots
        yield by_id[at]
        at = by_id[at].parent_snapshot_id


def carried_facts(metadata: TableMetadata) -> dict[str, str]:
    """Return the facts that the next commit must carry forward, from the newest Trinity commit.

    Raises:
        TrinityError: BAD_DATA when the snapshots with these facts have expired, and no property has them.
    """
    return _carried_at(metadata, _newest_first(metadata))


def index_of(metadata: TableMetadata, snapshot: Snapshot) -> str | None:
    """Return the name of a version's file index. Raises BAD_DATA as :func:`carried_facts` does."""
    known = _up_to(metadata, snapshot)
    first = next(known, snapshot)
    return _carried_at(metadata, chain([first], known)).get(INDEX)


def order_at(metadata: TableMetadata, snapshot: Snapshot | None) -> tuple[str | None, list[Snapshot]]:
    """Return the order of rows that a version carries, and the snapshots of other engines since it was recorded."""
    others = list(takewhile(lambda s: OPERATION not in summary_of(s), _up_to(metadata, snapshot)))
    return _carried_at(metadata, _up_to(metadata, snapshot)).get(ORDER), others[::-1]


def _up_to(metadata: TableMetadata, snapshot: Snapshot | None) -> Iterator[Snapshot]:
    """Return the lineage of a version, newest first."""
    return (s for s in _newest_first(metadata) if version_of(s) <= version_of(snapshot))


def indexes(metadata: TableMetadata, without: Collection[int] = ()) -> set[str]:
    """Return the names of the file indexes that the table's versions need, without the snapshots given."""
    found = {_carried_by(s).get(INDEX) for s in metadata.snapshots if s.snapshot_id not in without}
    found |= {record.get(INDEX) for record in _records(metadata)}
    return {name for name in found if name}


def created(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a new table, with those of its definition."""
    return {**properties, **_record(1, mark_of(properties))}


def on_record(
    metadata: TableMetadata, version: int, found: Mapping[str, str], updates: Sequence[TableUpdate]
) -> tuple[TableUpdate, ...]:
    """Return the update that puts the facts of a commit into the table's properties.

    There is none for an external table without facts. ``updates`` are the commit's other updates, which may set another
    definition.
    """
    changed = [update.updates for update in updates if isinstance(update, SetPropertiesUpdate)]
    record = {
        **mark_of(dict(ChainMap(*changed[::-1], metadata.properties))),
        **{k: found[k] for k in _CARRIED if k in found},
    }
    if record and (before := _still_needed(metadata)):
        record[_BEFORE] = json.dumps(before)
    return (SetPropertiesUpdate(updates=_record(version, record)),) if record else ()


def _records(metadata: TableMetadata) -> list[dict[str, str]]:
    """Return the record of the newest Trinity commit, and the record before it that it kept, as far as they exist."""
    newest = facts(metadata)
    return [record for record in (newest, json.loads(newest.pop(_BEFORE, "{}"))) if record]


def _still_needed(metadata: TableMetadata) -> dict[str, str]:
    """Return the record that reads of the oldest snapshots need if other engines made these; else an empty one.

    The summaries of other engines have no facts, and Trinity's last snapshot before them is expired.
    """
    oldest = next(iter(lineage(metadata)), None)
    if oldest is None or OPERATION in summary_of(oldest):
        return {}
    return next((r for r in _records(metadata) if int(r["version"]) < version_of(oldest)), {})


def _record(version: int, found: Mapping[str, str]) -> dict[str, str]:
    return {STATE: json.dumps({"version": str(version), **found})}


def _carried_at(metadata: TableMetadata, snapshots: Iterator[Snapshot]) -> dict[str, str]:
    """Return the facts that a version carries. ``snapshots`` are its lineage, newest first."""
    newest = oldest = None
    for snapshot in snapshots:
        if OPERATION in summary_of(snapshot):
            return _carried_by(snapshot)
        newest, oldest = newest or snapshot, snapshot
    for recorded in _records(metadata):
        # a later commit's record holds nothing about an older version
        if oldest is None or int(recorded["version"]) < version_of(oldest):
            return {k: recorded[k] for k in _CARRIED if k in recorded}
    if DEFINITION not in metadata.properties:
        return {}
    raise TrinityError(
        "BAD_DATA",
        f"The snapshots that name the tombstones and transactions of version {version_of(newest)} "
        f"of the table at '{metadata.location}' were expired by another engine. Read a newer version, and "
        "let streams and tables that had come to this one begin anew; if this is the newest, restore the table's "
        "metadata from a backup.",
    )


def _carried_by(snapshot: Snapshot) -> dict[str, str]:
    own = summary_of(snapshot)
    return {k: own[k] for k in _CARRIED if k in own} if OPERATION in own else {}


def summary_of(snapshot: Snapshot) -> Mapping[str, str]:
    """Return the entries of a snapshot's summary."""
    return snapshot.summary.additional_properties if snapshot.summary is not None else {}


def order_of(metadata: TableMetadata, snapshot: Snapshot | None = None) -> RowOrder:
    """Return the order of rows as known at a snapshot, by default the newest."""
    snapshot = snapshot or metadata.current_snapshot()
    recorded, others = order_at(metadata, snapshot) if DEFINITION in metadata.properties else (None, [])
    return order_after(RowOrder.from_json(recorded), others, version_of(snapshot)) if recorded else RowOrder()


def folded_order(metadata: TableMetadata, version: int) -> RowOrder | None:
    """Return the order of rows to remember once a version is folded; None where none is remembered."""
    return order_of(metadata).folded(version) if ORDER in carried_facts(metadata) else None


def order_after(order: RowOrder, others: list[Snapshot], version: int) -> RowOrder:
    """Return the order of rows at a version, by the commits of other engines since it was recorded, oldest first.

    If one of these has expired, it may have added rows.
    """
    for snapshot in others:
        number = snapshot.sequence_number or 0
        if number != order.through + 1:
            break
        order = replace(order, through=number, strangers=number if _brings_rows(snapshot) else order.strangers)
    return order if order.through >= version else replace(order, through=version, strangers=version)


_COUNTED: Final = ("added-records", "deleted-records", "added-position-deletes")


def _brings_rows(snapshot: Snapshot) -> bool:
    """Return whether a commit may have added rows that did not exist before, and did not only copy rows."""
    if snapshot.summary is None or snapshot.summary.operation is Operation.APPEND:
        return True
    own = snapshot.summary.additional_properties
    added, deleted, marked = (int(own.get(key, 0)) for key in _COUNTED)
    return snapshot.summary.operation is Operation.OVERWRITE and added > deleted + marked
