"""Trinity's own commits: each puts the commit file of its number if nobody else has (L7). They need no JVM.

In an object store all commits are Trinity's own: those of Delta's classes are not safe there among several drivers. A
commit is followed by its version checksum, totals of the version that readers compare with what they have read; if one
is due, by a checkpoint; and by the clean-up of the log, which keeps its files as long as Delta does.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import cache
from importlib.metadata import version as version_of
from itertools import takewhile
from types import MappingProxyType
from typing import Any, Final, Protocol

from trinity.clock import now_ms
from trinity.errors import TrinityError
from trinity.spi import DataFile, TableHandle
from trinity.storage import AlreadyExists, CommitRaced, ObjectStore, after_commit, next_timestamp_ms
from trinity.storage.commits import checkpoint_step
from trinity_delta.actions import ENGINE, LOG, RESTORE, Action, commit_name, with_domains
from trinity_delta.checkpoint import write_checkpoint
from trinity_delta.log import checkpoint_hint, names_and_times
from trinity_delta.protocol import (
    CONDITIONAL_PUT,
    SUPPORTED,
    checked_settings,
    checkpoint_interval,
    cleans_up,
    log_retention_ms,
    protocol_of,
    retention_ms,
)
from trinity_delta.row_tracking import FEATURE, with_row_columns, with_row_ids
from trinity_delta.schema import DEFINITION, MODE, TABLE, is_true, numbered, renamed_columns
from trinity_delta.state import State, apply

_ROWS_CHANGED: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "Write": ("WRITE", {"mode": "Append"}),
    "Update": ("UPDATE", {"predicate": "[]"}),
    "Optimize": ("OPTIMIZE", {"predicate": "[]", "zOrderBy": "[]", "clusterBy": "[]", "auto": False}),
    "Truncate": ("TRUNCATE", {}),
    "Replace": ("CREATE OR REPLACE TABLE", {}),
}
"""Operation -> its name and parameters in Delta's own commits."""
_FEATURES: Final = ("readerFeatures", "writerFeatures")
_MOST_COMMITS: Final = 100
"""The most commits that a reader finds after a checkpoint, whatever the table holds."""
_MINIMA: Final = ("delta.minReaderVersion", "delta.minWriterVersion")


class OwnLog:
    """The log to which Trinity itself commits; see :class:`~trinity_delta.logs.DeltaLog`."""

    preferred: Mapping[str, str] = MappingProxyType({})

    def checked_configuration(self, given: Mapping[str, str]) -> dict[str, str]:
        return checked_settings(given)

    def create(self, name: str, location: str, metadata: Mapping[str, Any]) -> None:
        settled = _normal_metadata(metadata)
        store = ObjectStore(location)
        further = (*_enabled_features(metadata["configuration"]), *(() if store.on_disk else (CONDITIONAL_PUT,)))
        parameters = {
            "partitionBy": json.dumps(settled["partitionColumns"]),
            "clusterBy": "[]",
            "description": None,
            "isManaged": "false",
            "properties": _shown_settings(settled["configuration"]),
        }
        protocol = protocol_of(settled["schemaString"], settled["configuration"], further=further)
        info = _commit_info("CREATE TABLE", parameters, next_timestamp_ms(0), blind=True)
        store.make_folder(LOG)
        _put_commit(store, 0, [{"commitInfo": info}, {"protocol": protocol}, {"metaData": settled}])
        after_commit("Version 0 has no checksum", lambda: _write_checksum(store, 0, info, settled, protocol, ()))


class VersionCache(Protocol):
    """The memory that a process has of the tables that it writes."""

    def keep(self, table: TableHandle, made: State, size: int) -> None:
        """Remember a version that this process has committed, and the size of its commit file in bytes."""

    def checkpoint_hint(self, table: TableHandle) -> Mapping[str, int] | None:
        """Return the remembered hint at the newest checkpoint, as the log's own has it; None before the first read."""

    def keep_checkpoint(self, table: TableHandle, hint: Mapping[str, int]) -> None:
        """Remember the newest checkpoint."""


class OwnTransaction:
    """A transaction that Trinity commits by itself; see :class:`~trinity_delta.logs.Transaction`.

    A commit takes the number after the version that it was checked against, so after a concurrent commit it is checked
    again. It repeats the domain metadata in ``domains``, except for domains that it sets itself.
    """

    def __init__(self, table: TableHandle, state: State, cache: VersionCache, domains: Sequence[Action] = ()) -> None:
        self._table, self._state, self._cache, self._domains = table, state, cache, domains
        self._metadata: Mapping[str, Any] = state.metadata
        self._further: set[str] = set()

    def read_txn(self, application: str) -> None:
        """Declare nothing: every concurrent commit conflicts."""

    def read_whole_table(self) -> None:
        """Declare nothing: every concurrent commit conflicts."""

    def alter(self, change: Mapping[str, Any]) -> None:
        self.update(change)
        self._commit([], *_alter_operation(self._state.metadata, self._metadata))

    def update(self, change: Mapping[str, Any]) -> None:
        wanted = {**self._metadata, **change}
        if self._state.mapped and wanted["configuration"].get(MODE, "none") == "none":
            raise TrinityError(
                "INVALID_TABLE_PROPERTY",
                f"Table '{self._table.full_name}' has columns that data files call otherwise, so '{MODE}' cannot be "
                "'none' any more. Leave it out.",
            )
        self._further |= _enabled_features(wanted["configuration"])
        self._metadata = _normal_metadata(wanted)

    def vacuum(self, mark: Mapping[str, Any], retained_ms: int) -> None:
        kept = retention_ms(self._metadata["configuration"])
        parameters = {
            "retentionCheckEnabled": False,
            "defaultRetentionMillis": kept,
            "specifiedRetentionMillis": retained_ms,
        }
        self._commit([mark], "VACUUM START", parameters)

    def commit(
        self,
        actions: Sequence[Mapping[str, Any]],
        *,
        operation: str,
        tags: Mapping[str, str] = MappingProxyType({}),
    ) -> int:
        return self._commit(actions, *_ROWS_CHANGED[operation], tags)

    def restore(self, actions: Sequence[Mapping[str, Any]], version: int) -> int:
        return self._commit(actions, RESTORE, {"version": version, "timestamp": None})

    def _commit(
        self,
        actions: Sequence[Mapping[str, Any]],
        operation: str,
        parameters: Mapping[str, Any],
        tags: Mapping[str, str] = MappingProxyType({}),
    ) -> int:
        number, at = self._state.version + 1, next_timestamp_ms(self._state.timestamp_ms)
        info = _commit_info(operation, parameters, at, tags, read=self._state.version)
        if FEATURE in (self._state.protocol.get("writerFeatures") or ()):
            actions = with_row_ids(actions, self._state.row_ids, number)
        wanted = [{"commitInfo": info}, *self._metadata_actions(), *with_domains(actions, self._domains)]
        made, store = apply(self._table, self._state, number, wanted), ObjectStore(self._table.location)
        size = _put_commit(store, number, wanted)
        if operation != RESTORE:  # after a RESTORE the state has facts of the restored version, which have to be read
            after_commit(f"Version {number} will be read back", lambda: self._cache.keep(self._table, made, size))
        if not made.definition.external:  # a checksum needs the numbers of deleted rows, unknown in others' files
            after_commit(
                f"Version {number} has no checksum",
                lambda: _write_checksum(store, number, info, made.metadata, made.protocol, made.files.values()),
            )
        after_commit(f"Version {number} has no checkpoint", lambda: self._checkpoint(store, made))
        return number

    def _metadata_actions(self) -> list[Action]:
        """Return the ``protocol`` and the ``metaData`` actions, where they have changed."""
        if self._metadata is self._state.metadata:
            return []
        present = self._state.protocol
        protocol = protocol_of(self._metadata["schemaString"], self._metadata["configuration"], present, self._further)
        same = all(set(protocol.get(key, ())) == set(present.get(key) or ()) for key in _FEATURES)
        return [*([] if same else [{"protocol": protocol}]), {"metaData": self._metadata}]

    def _checkpoint(self, store: ObjectStore, made: State) -> None:
        """Write the checkpoint of a version that is due for one, and delete what the log no longer needs."""
        settings, table = made.metadata["configuration"], self._table
        interval, hint = min(checkpoint_interval(settings), _MOST_COMMITS), self._cache.checkpoint_hint(table)
        if hint is None or _is_due(made, interval, hint):
            hint = checkpoint_hint(store)  # another process may have written one since
            self._cache.keep_checkpoint(table, hint)
        if not _is_due(made, interval, hint):
            return
        (log, modified_ms), now = names_and_times(store), now_ms()
        since = now - retention_ms(settings)
        write_checkpoint(store, table.full_name, made.version, since, log, made.appended_by_others)
        self._cache.keep_checkpoint(table, {**hint, "version": made.version})
        if not made.definition.external:  # other engines decide how long their versions stay
            _clean_up(store, settings, log, modified_ms, now)


def catch_up(table: TableHandle, state: State) -> None:
    """Write a checkpoint when too many commits follow the last one.

    Delta's own writer makes one when it commits a multiple of its interval. If a writer that makes none commits that
    version, there is none.
    """
    store = ObjectStore(table.location)
    if state.version - checkpoint_hint(store).get("version", 0) >= _MOST_COMMITS:
        since = now_ms() - retention_ms(state.metadata["configuration"])
        names = store.names(LOG)
        write_checkpoint(store, table.full_name, state.version, since, names, state.appended_by_others)


def _is_due(made: State, interval: int, hint: Mapping[str, int]) -> bool:
    """Return whether a version is due for a checkpoint: at each step, or if others wrote none at earlier steps."""
    step = max(_step(interval, rows) for rows in (len(made.files), hint.get("size", 0)))
    since = made.version - hint.get("version", 0)
    return made.version % step == 0 or since >= min(2 * step, _MOST_COMMITS)


def _step(interval: int, rows: int) -> int:
    """Return the number of versions from one checkpoint to the next, for a checkpoint of ``rows`` rows."""
    step = checkpoint_step(interval, rows)
    while step > _MOST_COMMITS:
        step //= 2
    return step


def _enabled_features(settings: Mapping[str, str]) -> set[str]:
    """Return the features that settings enable by their names."""
    return {key.removeprefix(SUPPORTED) for key in settings if key.startswith(SUPPORTED)}


def _normal_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ``metaData`` as Delta keeps it: without settings of the protocol, and with numbered columns."""
    given = metadata["configuration"].items()
    settings = {key: text for key, text in given if key not in _MINIMA and not key.startswith(SUPPORTED)}
    schema, settings = numbered(metadata["schemaString"], with_row_columns(settings))
    return {**metadata, "schemaString": schema, "configuration": settings}


def _alter_operation(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the operation for a change of a table's metadata, and its parameters."""
    old, new = before["schemaString"], after["schemaString"]
    if renamed := renamed_columns(old, new):
        return "RENAME COLUMN", {"oldColumnPath": renamed[0][0], "newColumnPath": renamed[0][1]}
    if json.loads(old) != json.loads(new):
        return "UPDATE SCHEMA", {"oldSchema": old, "newSchema": new}
    changed = dict(after["configuration"].items() - before["configuration"].items())
    return "SET TBLPROPERTIES", {"properties": _shown_settings(changed)}


def _commit_info(
    operation: str,
    parameters: Mapping[str, Any],
    timestamp_ms: int,
    tags: Mapping[str, str] = MappingProxyType({}),
    *,
    read: int | None = None,
    blind: bool = False,
) -> dict[str, Any]:
    return {
        "inCommitTimestamp": timestamp_ms,
        "timestamp": timestamp_ms,
        "operation": operation,
        "operationParameters": dict(parameters),
        **({} if read is None else {"readVersion": read}),
        "isolationLevel": "Serializable",
        "isBlindAppend": blind,
        "operationMetrics": {},
        **({"tags": dict(tags)} if tags else {}),
        "engineInfo": _engine(),
        "txnId": str(uuid.uuid4()),
    }


@cache
def _engine() -> str:
    """Return the writer's name in commits. It is cached, since finding it reads a file."""
    return f"{ENGINE}{version_of('trinity-merge')}"


def _put_commit(store: ObjectStore, number: int, actions: Sequence[Mapping[str, Any]]) -> int:
    """Put a commit file, and return its bytes. Raises CommitRaced where another writer took the number."""
    data = "\n".join(json.dumps(action, separators=(",", ":"), ensure_ascii=False) for action in actions).encode()
    try:
        store.put_if_absent(commit_name(number), data)
    except AlreadyExists as taken:
        raise CommitRaced(f"version {number} was taken") from taken
    return len(data)


def _shown_settings(settings: Mapping[str, str]) -> str:
    """Return settings as a commit shows them; the definition is in the ``metaData`` beside it."""
    kept = {key: text for key, text in settings.items() if key not in (DEFINITION, TABLE)}
    return json.dumps(kept, separators=(",", ":"))


_TIMED: Final = "delta.enableInCommitTimestamps"
_VECTORS: Final = "deletionVectors"


def _write_checksum(
    store: ObjectStore,
    version: int,
    info: Mapping[str, Any],
    metadata: Mapping[str, Any],
    protocol: Mapping[str, Any],
    files: Collection[DataFile],
) -> None:
    """Write the checksum of a version. It is not synced: a crash of the machine may lose it."""
    found: dict[str, Any] = {
        "txnId": info["txnId"],
        "tableSizeBytes": sum(file.size for file in files),
        "numFiles": len(files),
        "numMetadata": 1,
        "numProtocol": 1,
        "metadata": metadata,
        "protocol": protocol,
    }
    if is_true(metadata["configuration"], _TIMED):
        found["inCommitTimestampOpt"] = info["inCommitTimestamp"]
    if _VECTORS in (protocol.get("readerFeatures") or ()):
        vectors = [file.deletes.rows for file in files if file.deletes]
        found |= {"numDeletedRecordsOpt": sum(vectors), "numDeletionVectorsOpt": len(vectors)}
    data = json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode()
    store.put(f"{LOG}/{version:020d}.crc", data, sync=False)


_FILE: Final = re.compile(r"(\d{20})\.(json|crc|checkpoint\..+)")
_DAY_MS: Final = timedelta(days=1) // timedelta(milliseconds=1)


def _clean_up(
    store: ObjectStore,
    settings: Mapping[str, str],
    names: Iterable[str],
    modified_ms: Callable[[str], int],
    now_ms: int,
) -> None:
    """Delete log files of versions that are too old, from the lowest number on.

    Versions not older than ``delta.logRetentionDuration`` at the last midnight (UTC) stay, and so does the newest
    checkpoint before them, from which they are read. ``modified_ms`` is called from the oldest commit on, and no
    further than needed.
    """
    if not cleans_up(settings):
        return
    limit = now_ms - log_retention_ms(settings)
    limit -= limit % _DAY_MS
    found = sorted((int(match[1]), match[2], name) for name in names if (match := _FILE.fullmatch(name)))
    commits = ((number, name) for number, kind, name in found if kind == "json")
    newest = max((n for n, _ in takewhile(lambda commit: modified_ms(commit[1]) <= limit, commits)), default=-1)
    first = max((n for n, kind, _ in found if kind == "checkpoint.parquet" and n <= newest), default=0)
    store.delete(f"{LOG}/{name}" for n, _, name in found if n < first)
