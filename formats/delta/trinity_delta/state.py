"""The state of a table at one version, its order of rows in Delta's terms (L3), and how a commit changes it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final
from urllib.parse import unquote

from trinity.errors import TrinityError
from trinity.spi import Bucket, DataFile, Origin, RowOrder, TableDefinition, TableHandle, Tier
from trinity.storage import FileChange, ObjectStore
from trinity.storage.foreign import changed_compacted_rows, keeps_row_versions
from trinity.storage.location import is_absolute
from trinity_delta.actions import (
    DOMAINS,
    ORDER_DOMAIN,
    SIDECAR_DOMAIN,
    TAG_BUCKET,
    TAG_COMMIT,
    TAG_ORDER,
    TAG_ORIGIN,
    TAG_TIER,
    VACUUM_DOMAIN,
    Action,
    by_kind,
    commit_id,
    commit_name,
    committed_ms,
    domain,
    from_delta,
    from_delta_partition,
    is_restore,
    sidecar_list,
    with_partition_types,
)
from trinity_delta.adopt import CLUSTERING, adopted, clustered_by, is_own, on_record
from trinity_delta.damaged_log import damaged
from trinity_delta.deletes import deletion_vector
from trinity_delta.external import apply_external, external_definition
from trinity_delta.protocol import CONDITIONAL_PUT, DOMAIN_METADATA, check_own_writable, check_readable, check_writable
from trinity_delta.row_tracking import ROW_DOMAIN, highest_row_id
from trinity_delta.schema import MODE, schema_fault

_COPYING: Final = ("UPDATE", "DELETE")
"""Delta's operations that add data, but only rows that existed before."""


class Forgotten(Enum):
    """A reason why Trinity's domain metadata of a table is not in force."""

    REMOVED = (
        "no domain metadata of Trinity's any more, since another engine removed it, as ALTER TABLE ... DROP FEATURE "
        "domainMetadata does: tombstones and the order of rows are out of force. Put them back by "
        "session.repair('{name}')"
    )
    UNKNOWN = (
        "rows of a version whose domain metadata, with tombstones and the order of rows, the log does not hold any "
        "more: another engine restored an old version, or dropped the feature domainMetadata, and the log was "
        "cleaned up. Restore a version there that the log still has (RESTORE TABLE delta.`{location}` TO VERSION AS "
        "OF ...), or make the table anew from the rows that this engine shows"
    )
    COPIED = (
        "files of a copy in the place of its own, as another engine puts them there by CREATE OR REPLACE TABLE ... "
        "SHALLOW CLONE: tombstones and the order of their rows did not come along. Restore a version from before "
        "(RESTORE TABLE delta.`{location}` TO VERSION AS OF ...); rows of the copy are written to it by Trinity"
    )

    def error(self, table: TableHandle) -> TrinityError:
        """Return the error that refuses the table."""
        what = self.value.format(name=table.full_name, location=table.location)
        return TrinityError("NOT_SUPPORTED", f"Delta table '{table.full_name}' has {what}.")


@dataclass(frozen=True)
class State:
    """A table at one version.

    Attributes:
        metadata: the ``metaData`` action.
        definition: the table as Trinity sees it.
        files: path as the log has it -> live file, which has its absolute path.
        sidecar: files with tombstones.
        oldest: the oldest version that vacuum left readable.
        added: path as the log has it -> add action: of all files of an external table, of the base of a Trinity table.
        clustering: columns by which Delta clusters the table, by their names in data files.
        changed: whether other engines changed the definition that Trinity recorded.
        refusal: why the version cannot be read, or None.
        forgotten: why Trinity's domain metadata is not in force; None while it is.
        written: whether the newest domain metadata has the sidecar and order in force; False after a RESTORE.
        order: what is remembered of the order of rows.
        displaced: paths of compacted files from which other engines removed rows.
        row_ids: the highest number that row tracking has given to a row, -1 for none.
    """

    version: int
    timestamp_ms: int
    metadata: Mapping[str, Any]
    definition: TableDefinition
    files: Mapping[str, DataFile] = field(default_factory=dict)
    sidecar: tuple[DataFile, ...] = ()
    txns: Mapping[str, int] = field(default_factory=dict)
    oldest: int = 0
    protocol: Mapping[str, Any] = field(default_factory=dict)
    added: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    clustering: tuple[str, ...] = ()
    changed: bool = False
    refusal: TrinityError | None = None
    forgotten: Forgotten | None = None
    written: bool = True
    order: RowOrder = field(default_factory=RowOrder)
    displaced: frozenset[str] = frozenset()
    row_ids: int = -1
    commit: str = ""

    @property
    def mapped(self) -> bool:
        """Whether Delta's column mapping is on."""
        return str(self.metadata["configuration"].get(MODE, "none")) != "none"

    @property
    def appended_by_others(self) -> Mapping[str, int]:
        """Path as the log has it -> commit number, of files whose rows other engines added to a Trinity table."""
        if self.definition.external:
            return {}
        return {path: file.commit or 0 for path, file in self.files.items() if file.origin is Origin.ADDED}

    def check_readable(self, table: TableHandle) -> None:
        """Refuse a version of a Trinity table that other engines made unreadable. Raises NOT_SUPPORTED naming how."""
        if self.refusal:
            raise self.refusal
        self.check_remembered(table)
        if self.displaced and self.sidecar and keeps_row_versions(self.definition):
            raise changed_compacted_rows(
                table.full_name, f"RESTORE TABLE delta.`{table.location}` TO VERSION AS OF ..."
            )

    def check_remembered(self, table: TableHandle) -> None:
        """Refuse a version for which Trinity's domain metadata is not in force. Raises NOT_SUPPORTED."""
        if self.forgotten:
            raise self.forgotten.error(table)

    def check_there(self, table: TableHandle) -> None:
        """Refuse a Trinity table in an object store that other writers may write to. Raises NOT_SUPPORTED."""
        if self.definition.external:
            return
        if CONDITIONAL_PUT not in self.protocol.get("writerFeatures", ()):
            raise TrinityError(
                "NOT_SUPPORTED",
                f"Table '{table.full_name}': '{table.location}' is a table of Trinity's that was not made there by "
                "Trinity: nothing keeps other writers away. Make it there by CREATE TABLE AS SELECT.",
            )

    def check_writable(self, table: TableHandle) -> None:
        """Refuse a readable version to which rows cannot be added. Raises NOT_SUPPORTED with the reason."""
        check = check_writable if self.definition.external else check_own_writable
        check(table, self.metadata, self.protocol)


def apply(table: TableHandle, state: State | None, version: int, actions: Iterable[Mapping[str, Any]]) -> State:
    """Return the state after a commit.

    Raises:
        TrinityError: NOT_SUPPORTED for an external table with a feature that Trinity does not read; BAD_DATA for a
            version without protocol or metadata, or with a malformed schema or domain metadata.
    """
    found = by_kind(actions)
    what, store = _without_files(table, state, found, version), ObjectStore(table.location)
    files, adds = (_files_under(state, what.definition), dict(state.added)) if state else ({}, {})
    # a RESTORE, like a version that is rebuilt from a checkpoint, adds files of many commits at once (`restored.py`)
    gathered = state is None or is_restore([{"commitInfo": info} for info in found.get("commitInfo", ())])
    if what.definition.external:

        def file_of(added: Mapping[str, Any], at: int) -> DataFile:
            return _with_deleted_rows(store, _file(store, added, what.definition, at), added, None)

        apply_external(files, adds, found, file_of, version)
    else:
        for gone in found.get("remove", []):
            files.pop(gone["path"], None)
            adds.pop(gone["path"], None)
        for added in found.get("add", []):
            origin = origin_of(added, alone=not gathered and "remove" not in found)
            file = _file(store, added, what.definition, version, origin, rebuilt=gathered)
            before = state.files.get(added["path"]) if state and not gathered else None
            files[added["path"]] = _with_deleted_rows(store, file, added, before)
            if file.tier is Tier.BASE:
                adds[added["path"]] = added
    try:
        domains = _domains(store, state, found.get("domainMetadata", []))
        order = order_after(state.order if state else RowOrder(), found, what.definition, version)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        path = store.path(commit_name(version))
        raise damaged(table.full_name, path, f"malformed: the content of its 'domainMetadata' ({error})") from error
    displaced = _displaced_files(state, found) if state else frozenset()
    if state and displaced and not keeps_row_versions(state.definition):  # then the sidecar has none of their rows
        displaced = frozenset()
    return replace(
        what,
        version=version,
        timestamp_ms=_timestamp(state, found.get("commitInfo", [{}])[0]),
        files=files,
        txns={**(state.txns if state else {}), **{t["appId"]: t["version"] for t in found.get("txn", [])}},
        added=adds,
        order=order,
        displaced=displaced,
        commit=commit_id(found),
        **{**domains, **_in_force(state, what, found, files)},
    )


def _files_under(state: State, definition: TableDefinition) -> dict[str, DataFile]:
    """Return the files of a state, with partition values in the types of a definition, which may have wider ones."""
    if definition is state.definition or _partition_types(definition) == _partition_types(state.definition):
        return dict(state.files)
    return {path: with_partition_types(file, definition) for path, file in state.files.items()}


def _partition_types(definition: TableDefinition) -> list[str]:
    return [definition.column(name).type for name in definition.partition_columns]


def allows_domains(definition: TableDefinition, protocol: Mapping[str, Any]) -> bool:
    """Return whether a table's protocol allows Trinity's domain metadata; an external table needs none."""
    return definition.external or DOMAIN_METADATA in (protocol.get("writerFeatures") or ())


def _in_force(
    state: State | None, what: State, found: Mapping[str, Sequence[Any]], files: Iterable[str]
) -> dict[str, Any]:
    """Return ``forgotten`` and ``written`` after a commit; also an empty sidecar for a table of another engine."""
    ours = [domain for domain in found.get("domainMetadata", ()) if domain["domain"] in DOMAINS]
    if what.definition.external:  # the domain metadata is of a table that another engine has replaced
        return {"sidecar": (), "forgotten": None, "written": True}
    if not allows_domains(what.definition, what.protocol):
        known = state is not None and state.forgotten is not Forgotten.UNKNOWN
        return {"forgotten": Forgotten.REMOVED if known else Forgotten.UNKNOWN, "written": False}
    if any(domain.get("removed") for domain in ours):
        return {"forgotten": Forgotten.REMOVED, "written": False}
    before = None if state is None else state.forgotten
    copied = before is Forgotten.COPIED and any(map(is_absolute, files))
    if copied or any(is_absolute(added["path"]) for added in found.get("add", ())):
        return {"forgotten": before or Forgotten.COPIED, "written": False}
    if state is None or before is Forgotten.COPIED or any(domain["domain"] != VACUUM_DOMAIN for domain in ours):
        return {"forgotten": None, "written": True}
    return {"forgotten": before, "written": state.written}


def _displaced_files(state: State, found: Mapping[str, Sequence[Any]]) -> frozenset[str]:
    """Return the compacted files that other engines have removed, or deleted rows of; none after a new sidecar."""
    if any(
        domain["domain"] == SIDECAR_DOMAIN and not domain.get("removed") for domain in found.get("domainMetadata", ())
    ):
        return frozenset()
    back = {added["path"] for added in found.get("add", ()) if not added.get("deletionVector")}
    if state.displaced:  # files removed from now on hold other rows
        return state.displaced - back
    taken = {removed["path"] for removed in found.get("remove", ()) if removed["dataChange"]} - back
    return frozenset(path for path in taken & state.files.keys() if _is_compacted(state.files[path]))


def _is_compacted(file: DataFile) -> bool:
    """Return whether a file has folded rows; another engine's rewrite may have put them there."""
    return file.tier is Tier.BASE or file.origin is Origin.REWRITTEN


def _without_files(table: TableHandle, state: State | None, found: Mapping[str, Sequence[Any]], version: int) -> State:
    """Return metadata, protocol and definition after a commit, as a state without files.

    The definition of a Trinity table is the recorded one, with the changes of other engines.
    """
    if state and not found.keys() & {"metaData", "protocol"}:
        return state
    metadata = found["metaData"][-1] if "metaData" in found else state.metadata if state else {}
    protocol = found["protocol"][-1] if "protocol" in found else state.protocol if state else {}
    lacking = [kind for kind, body in (("metaData", metadata), ("protocol", protocol)) if not body]
    fault = f"neither it nor one before has '{lacking[0]}'" if lacking else schema_fault(metadata)
    if fault:
        raise damaged(table.full_name, ObjectStore(table.location).path(commit_name(version)), f"malformed: {fault}")
    known, refusal = None, None
    definition = state.definition if state else None
    if not is_own([{"metaData": metadata}]):
        check_readable(table, protocol)
        definition = external_definition(table, metadata)
    else:
        try:  # an unreadable version must not hide those before and after it
            definition = known = on_record(table, metadata)
            check_readable(table, protocol)
            definition = adopted(table, known, metadata)
        except TrinityError as error:
            refusal = error
        if definition is None:
            definition = replace(external_definition(table, metadata), external=False)
    changed = known is not None and definition != known
    definition = replace(definition, id=metadata["id"])
    return State(0, 0, metadata, definition, protocol=protocol, changed=changed, refusal=refusal)


def file_change(
    table: TableHandle, definition: TableDefinition, version: int, actions: Iterable[Mapping[str, Any]]
) -> FileChange:
    """Return the files that a commit added and removed, without those that change no data, as a compaction's."""
    added = [a["add"] for a in actions if "add" in a and a["add"]["dataChange"]]
    removed = any(a["remove"]["dataChange"] for a in actions if "remove" in a)
    store = ObjectStore(table.location)
    return FileChange(version, [_file(store, a, definition, version, rebuilt=False) for a in added], removed)


def _file(
    store: ObjectStore,
    added: Mapping[str, Any],
    definition: TableDefinition,
    version: int,
    origin: Origin = Origin.OWN,
    *,
    rebuilt: bool = False,
) -> DataFile:
    tags = added.get("tags") or {}
    rows, stats = from_delta(added.get("stats"), definition)
    number = tags.get(TAG_COMMIT) or (tags.get(TAG_ORDER) if rebuilt else None)
    bucket = tags.get(TAG_BUCKET)
    return DataFile(
        path=store.resolve(unquote(added["path"])),
        size=added["size"],
        rows=rows or 0,
        rows_known=rows is not None,
        tier=Tier(tags.get(TAG_TIER, Tier.LOG.value)),
        commit=version if number is None else int(number),
        bucket=_bucket(bucket) if bucket else None,
        partition=from_delta_partition(added.get("partitionValues") or {}, definition),
        stats=stats,
        origin=origin,
    )


def _with_deleted_rows(
    store: ObjectStore, file: DataFile, added: Mapping[str, Any], before: DataFile | None
) -> DataFile:
    """Return a file with its deleted rows. A file that only lost rows keeps its commit number and its origin."""
    if before is not None:
        file = replace(file, commit=before.commit, origin=before.origin)
    vector = added.get("deletionVector")
    return replace(file, deletes=deletion_vector(store, vector)) if vector else file


def _bucket(tag: str) -> Bucket:
    index, count, *types = tag.split("/", 2)
    return Bucket(int(index), int(count), *types)


def _domains(store: ObjectStore, state: State | None, domains: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sidecar, the oldest readable version, the clustering and the highest row id, by field of the state."""
    names = ("sidecar", "oldest", "clustering", "row_ids")
    found: dict[str, Any] = {name: getattr(state, name) for name in names} if state else {}
    for each in domains:
        if each["domain"] in DOMAINS and each.get("removed"):
            continue  # the old content is known, and can be put back
        if each["domain"] == SIDECAR_DOMAIN:
            listed = [DataFile.from_dict(f) for f in json.loads(each["configuration"])]
            found["sidecar"] = tuple(f.moved(store.path(f.path)) for f in listed)
        elif each["domain"] == VACUUM_DOMAIN:
            found["oldest"] = json.loads(each["configuration"])["oldest"]
        elif each["domain"] == CLUSTERING:
            found["clustering"] = clustered_by(each)
        elif each["domain"] == ROW_DOMAIN and not each.get("removed"):
            found["row_ids"] = highest_row_id(each)
    return found


def _timestamp(state: State | None, info: Mapping[str, Any]) -> int:
    return max(committed_ms(info), state.timestamp_ms + 1 if state else 0)


def origin_of(added: Mapping[str, Any], *, alone: bool) -> Origin:
    """Return the origin of a file.

    Args:
        added: its add action.
        alone: whether the commit that added it is known, and removed no file.
    """
    tags = added.get("tags") or {}
    if TAG_TIER in tags:
        return Origin.OWN
    if (known := tags.get(TAG_ORIGIN)) is not None:
        return Origin(known)
    return Origin.ADDED if alone else Origin.REWRITTEN


def order_after(order: RowOrder, found: Mapping[str, list[Any]], definition: TableDefinition, version: int) -> RowOrder:
    """Return the order of rows that is remembered after a commit."""
    for entry in found.get("domainMetadata", ()):
        if entry["domain"] == ORDER_DOMAIN and not entry.get("removed"):
            return RowOrder.from_json(entry["configuration"])
    if not definition.stamped or not any(_brings_rows(a, found) for a in found.get("add", ())):
        return order
    return replace(order, strangers=version)


def _brings_rows(added: Mapping[str, Any], found: Mapping[str, list[Any]]) -> bool:
    """Return whether another engine's file may have rows that did not exist before its commit."""
    info = found.get("commitInfo", [{}])[0]
    inserted = (info.get("operationMetrics") or {}).get("numTargetRowsInserted")
    copied = info.get("operation") in _COPYING or (info.get("operation") == "MERGE" and inserted == "0")
    return TAG_TIER not in (added.get("tags") or {}) and bool(added["dataChange"]) and not copied


def order_since(
    order: RowOrder,
    definition: TableDefinition,
    version: int,
    commits: Iterable[tuple[int, Iterable[Mapping[str, Any]] | None]],
) -> RowOrder:
    """Return the order of rows that is remembered at a version that was rebuilt from a checkpoint.

    Args:
        order: the order that Trinity's newest commit has on record.
        definition: the table's definition.
        version: the version.
        commits: the commits since Trinity's newest one: number and actions, None for one whose file is gone.
    """
    for number, actions in commits:
        if actions is None:  # it may have added rows
            return replace(order, strangers=version)
        order = order_after(order, by_kind(actions), definition, number)
    return order


def order_actions(definition: TableDefinition, order: RowOrder, version: int) -> list[Action]:
    """Return the actions by which a commit remembers the order of rows; none for a table without stamps."""
    if not definition.stamped:
        return []
    return [domain(ORDER_DOMAIN, json.loads(replace(order, through=version).to_json()))]


def domains_in_force(table: TableHandle, state: State) -> list[Action]:
    """Return the domain metadata of a state, for the commit that follows it.

    There is none if the newest domain metadata of the log is in force already.
    """
    if state.written:
        return []
    order = replace(state.order, through=state.version + 1)
    return [
        sidecar_list(state.sidecar, ObjectStore(table.location)),
        domain(ORDER_DOMAIN, json.loads(order.to_json())),
    ]
