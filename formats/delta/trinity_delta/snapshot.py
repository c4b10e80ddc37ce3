"""Versions: the state of a table, from Delta's log.

A version that is not remembered is made from the nearest remembered one and the commit files between them, or from a
nearer checkpoint. Where the files are too many, or cleaned up, it is rebuilt from a checkpoint of any kind.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from trinity.errors import TrinityError
from trinity.limits import Limit
from trinity.loggers import logger
from trinity.spi import CommitOperation, HistoryEntry, LostCommit, Origin, SplitSource, TableHandle
from trinity.storage import Cache, FileChange, Location, ObjectStore, Stat, no_table, version_at
from trinity.storage.readable import newest_readable
from trinity_delta.actions import (
    LOG,
    TAG_OPERATION,
    TAG_TIER,
    VACUUM_DOMAIN,
    by_kind,
    commit_id,
    commit_name,
    committed_ms,
    is_of_trinity,
    rows_of,
)
from trinity_delta.adopt import is_own
from trinity_delta.checkpoint import Replayed, at_checkpoint, replayed
from trinity_delta.checkpoint_files import checkpoints_of
from trinity_delta.external import DeltaScan, reading_storage, with_commits_of_files
from trinity_delta.log import (
    earliest,
    earliest_commit,
    has_commits,
    listed,
    newest_commit,
    read_commit,
    read_commits,
)
from trinity_delta.logs import Logs
from trinity_delta.restored import Since, domain_version_at, sets_domains, since_trinity, with_domains_of
from trinity_delta.schema import storage_schema
from trinity_delta.state import Forgotten, State, apply, file_change, order_since

_CACHED: Final = 64
"""How many versions of a table are remembered."""
_ENTRIES: Final = 10_000
"""How many history entries of a table are remembered."""


@dataclass
class TableMemory:
    """The memory that a process has of a table.

    Attributes:
        newest: the newest version.
        first: in an object store, the oldest version that could be read when the whole log was last listed.
        stamp: identifies the commit file of ``newest``, as another table may have the same name.
        states: the versions used last.
        entries: the entries of ``history()`` used last.
        own_commits: versions committed by this process and not listed since -> bytes of their commit files.
        checkpoint: the hint at the newest checkpoint; None where nobody has looked.
    """

    newest: int
    stamp: Stat
    first: int = 0
    states: Cache[int, State] = field(default_factory=lambda: Cache(_CACHED))
    entries: Cache[int, HistoryEntry] = field(default_factory=lambda: Cache(_ENTRIES))
    own_commits: dict[int, int] = field(default_factory=dict)
    checkpoint: Mapping[str, int] | None = None

    def forget_from(self, version: int) -> None:
        """Forget a version and all later ones: another engine has overwritten it."""
        self.states.drop(lambda number: number >= version)
        self.entries.drop(lambda number: number >= version)

    def lost(self, found: Mapping[int, Stat]) -> list[int]:
        """Return the versions that this process committed, and that the log lacks or has from another writer."""
        return [
            version for version, size in self.own_commits.items() if version not in found or found[version].size != size
        ]


_log = logger("trinity.delta")
MOST_REPLAYED: Final = Limit(1000)
"""After more commits than this, a version is rebuilt from the newest checkpoint."""
_MOST_FETCHED: Final = 8
"""The number of commits in an object store, where each is a request, instead of :data:`MOST_REPLAYED`."""


def is_table(folder: Location) -> bool:
    """Return whether a folder has at least one Delta commit."""
    return has_commits(ObjectStore(folder))


def _under_name(table: TableHandle, state: State) -> State:
    """Return the state under the name that was asked for: an external table may have several."""
    definition = state.definition
    if not definition.external or (definition.schema, definition.name) == (table.schema, table.table):
        return state
    return replace(state, definition=replace(definition, schema=table.schema, name=table.table))


class Snapshots:
    """A loader of versions, which keeps the last ones used: a version never changes."""

    def __init__(self, logs: Logs) -> None:
        self._logs = logs
        self._known: dict[str, TableMemory] = {}
        self._mutex = threading.RLock()

    def load(self, table: TableHandle) -> State:
        """Return the state of the handle's version, or of the newest.

        Raises:
            TrinityError: TABLE_NOT_FOUND, INVALID_ARGUMENTS (no such version, or vacuumed), BAD_DATA; NOT_SUPPORTED for
                a version that another engine made unreadable.
        """
        state = self.state(table)
        state.check_readable(table)
        return state

    def state(self, table: TableHandle) -> State:
        """Return the state as :meth:`load` does, but also of a version that other engines made unreadable."""
        store = ObjectStore(table.location)
        with self._mutex:
            memory = self._refresh(store, table)

            def read(version: int) -> State:
                return self._state(table, memory, version)

            def oldest(newest: State) -> int:
                return self._oldest(store, table.full_name, newest)

            try:
                return _under_name(table, version_at(table, memory.newest, read, oldest))
            except TrinityError as error:  # another process may have cleaned up the log since it was listed
                if error.code != "BAD_DATA" or store.on_disk or listed(store).first in (None, memory.first):
                    raise
                self._known.pop(store.root)
            return self.state(table)

    def split_source(self, table: TableHandle) -> SplitSource:
        """Return the version as a read needs it."""
        state = self.load(table)
        if table.version is not None and ObjectStore(table.location).on_disk:  # in a bucket each file is a request
            self._check_present(table, state)
        names = state.definition.stored_names
        files, native, storage = tuple(f.renamed(names) for f in state.files.values()), None, None
        if state.definition.external:
            added = {state.files[path].path: a for path, a in state.added.items()}
            files = tuple(sorted(files, key=lambda f: f.commit or 0))
            native = DeltaScan(self._logs.jvm, table, state.metadata, state.protocol, added, files)
            storage = reading_storage(state.definition, state.metadata)
        return SplitSource(
            state.version,
            state.timestamp_ms,
            state.definition,
            storage or storage_schema(state.definition),
            files,
            tuple(f.renamed(names) for f in state.sidecar),
            native,
            state.order,
            state.commit,
        )

    def history(self, table: TableHandle) -> list[HistoryEntry]:
        """Return the entries of the readable versions, oldest first."""
        table, store = replace(table, version=None), ObjectStore(table.location)
        newest = self.state(table)
        kept = earliest_commit(store, table.full_name) if store.on_disk else listed(store).first or 0
        first = max(newest.oldest, kept)
        with self._mutex:
            memory, found = self._known.get(store.root) or self._refresh(store, table), list[HistoryEntry]()

        def read(version: int) -> HistoryEntry:
            return _history_entry(version, read_commit(store, table.full_name, version))

        for version in range(first, newest.version + 1):
            entry = memory.entries.get(version, partial(read, version))
            least = found[-1].timestamp_ms + 1 if found else 1  # times increase strictly (L10)
            found.append(entry if entry.timestamp_ms >= least else replace(entry, timestamp_ms=least))
        return found

    def readable(self, table: TableHandle) -> Iterable[State]:
        """Yield the states of the versions that Trinity's vacuum has kept, oldest first."""
        newest, store = self.state(replace(table, version=None)), ObjectStore(table.location)
        newest.check_remembered(table)  # else vacuum would delete its sidecar files
        if not store.on_disk:  # another process may have cleaned up the log since
            self._known[store.root].first = listed(store).first or 0
        first = self._oldest(store, table.full_name, newest)
        for version in range(first, newest.version + 1):
            yield self.state(replace(table, version=version))

    def _check_present(self, table: TableHandle, state: State) -> None:
        """Refuse an old version whose files another engine's VACUUM removed. Raises INVALID_ARGUMENTS (L10)."""
        store = ObjectStore(table.location)
        # this comes first, since the newest version, which is loaded below, may be damaged
        if (gone := _missing(store, state)) is None:
            return
        newest = self.state(replace(table, version=None)).version
        if state.version == newest:
            return
        later = (self.state(replace(table, version=v)) for v in range(state.version + 1, newest))
        oldest = next((s.version for s in later if s.refusal is None and _missing(store, s) is None), newest)
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"Version {state.version} of table '{table.full_name}' was vacuumed: its file '{gone}' is gone. The oldest "
            f"readable one is {oldest}, the newest {newest}.",
        )

    def changes(self, pinned: TableHandle, newest: State) -> list[FileChange] | None:
        """Return the commits since a version, without compactions; None if one of their commit files is gone."""
        store, versions = ObjectStore(pinned.location), range((pinned.version or 0) + 1, newest.version + 1)
        if not versions:
            return []
        if store.on_disk:
            gone = any(store.stat(commit_name(version)) is None for version in versions)
        else:
            gone = versions[0] < (listed(store).first or 0)
        if gone:
            return None
        return [file_change(pinned, newest.definition, v, read_commit(store, pinned.full_name, v)) for v in versions]

    def newest_readable(self, table: TableHandle) -> tuple[State, tuple[LostCommit, ...]]:
        """Return the newest version that can be read, and the commits after it. Raises BAD_DATA when none can."""
        store = ObjectStore(table.location)

        def is_damaged(version: int) -> bool:
            try:
                read_commit(store, table.full_name, version)
            except TrinityError:
                return True
            return False

        with self._mutex:
            memory = self._refresh(store, table)
            return newest_readable(table, memory.newest, lambda n: self._state(table, memory, n), is_damaged)

    def forget(self, table: TableHandle) -> None:
        """Forget what is remembered of a table."""
        with self._mutex:
            self._known.pop(ObjectStore(table.location).root, None)

    def keep(self, table: TableHandle, made: State, size: int) -> None:
        """Remember a version that this process has committed, so that it is not read back."""
        with self._mutex:
            if (memory := self._known.get(ObjectStore(table.location).root)) is not None:
                memory.states.put(made.version, made)
                memory.own_commits[made.version] = size

    def checkpoint_hint(self, table: TableHandle) -> Mapping[str, int] | None:
        """Return the known hint at the newest checkpoint; None before the first read."""
        memory = self._known.get(ObjectStore(table.location).root)
        return None if memory is None else memory.checkpoint

    def keep_checkpoint(self, table: TableHandle, hint: Mapping[str, int]) -> None:
        """Remember the newest checkpoint."""
        with self._mutex:
            if (memory := self._known.get(ObjectStore(table.location).root)) is not None:
                memory.checkpoint = hint

    def since_checkpoint(self, table: TableHandle) -> int:
        """Return the number of commits after the newest checkpoint of the log."""
        store, newest = ObjectStore(table.location), self.state(replace(table, version=None)).version
        return newest - max((n for n in checkpoints_of(store.names(LOG)) if n <= newest), default=-1)

    def is_behind(self, table: TableHandle, state: State) -> bool:
        """Return whether this process knows a version after a state."""
        memory = self._known.get(ObjectStore(table.location).root)
        return memory is not None and memory.states.peek(state.version + 1) is not None

    def _oldest(self, store: ObjectStore, table: str, newest: State) -> int:
        """Return the oldest readable version."""
        return max(newest.oldest, earliest(store, table) if store.on_disk else self._known[store.root].first)

    def _refresh(self, store: ObjectStore, table: TableHandle) -> TableMemory:
        """Return the memory of the table, with its newest version: counted on from the known one, else listed."""
        memory = self._known.get(store.root)
        if not store.on_disk:
            return self._listed_memory(store, table, memory)
        if memory is None or store.stat(commit_name(memory.newest)) != memory.stamp:
            newest = newest_commit(store, table.full_name)
            memory = TableMemory(newest, store.stat(commit_name(newest)) or Stat(0, 0, ""))
            self._known[store.root] = memory
        while stamp := store.stat(commit_name(memory.newest + 1)):
            memory.newest, memory.stamp = memory.newest + 1, stamp
            if stamp.size != memory.own_commits.pop(memory.newest, stamp.size):  # another engine overwrote that commit
                memory.forget_from(memory.newest)
        return memory

    def _listed_memory(self, store: ObjectStore, table: TableHandle, memory: TableMemory | None) -> TableMemory:
        """Return the memory of a table in an object store; a new one once the newest known commit has changed.

        A dropped table has neither a first commit nor a checkpoint, whatever others may still put there.
        """
        found = listed(store, memory.newest).commits if memory else {}
        lost = memory.lost(found) if memory else []
        if replaced := [version for version in lost if version in found]:
            _log.warning(
                "Version %d of table '%s', which was committed here, is another writer's by now. Unless the table was "
                "repaired, that writer puts commits over those that are there, and the rows of this one are lost.",
                replaced[0],
                table.full_name,
            )
        if memory is None or lost or found.get(memory.newest) != memory.stamp:
            log = listed(store)
            if log.first is None:
                raise no_table(table.full_name)
            found, newest = log.commits, max(log.commits)
            memory = self._known[store.root] = TableMemory(newest, found[newest], log.first)
            memory.checkpoint = {"version": max(log.checkpoints, default=0)}
        memory.newest = max(found)
        memory.stamp = found[memory.newest]
        memory.own_commits.clear()
        return memory

    def _state(self, table: TableHandle, memory: TableMemory, version: int) -> State:
        return memory.states.get(version, lambda: self._replay(table, memory, version))

    def _replay(self, table: TableHandle, memory: TableMemory, version: int) -> State:
        store = ObjectStore(table.location)
        at, state = version, None
        most = MOST_REPLAYED.value if store.on_disk else _MOST_FETCHED
        while at >= 0 and (state := memory.states.peek(at)) is None:
            gone = store.stat(commit_name(at)) is None if store.on_disk else at < memory.first
            if gone or version - at >= most:
                return self._rebuild(table, memory, version)
            if store.on_disk and (summed := self._at_checkpoint(table, at)) is not None:
                return self._from_checkpoint(table, memory, summed, at, version)
            at -= 1
        for number in range(at + 1, version + 1):
            state = self._apply_commit(table, memory, state, number, read_commit(store, table.full_name, number))
        assert state is not None
        return state

    def _apply_commit(
        self,
        table: TableHandle,
        memory: TableMemory,
        state: State | None,
        number: int,
        commit: Sequence[Mapping[str, Any]],
    ) -> State:
        """Return the state after a commit, rebuilt where the commit hands the table to another engine, or back."""
        made = apply(table, state, number, commit)
        if state is not None and state.definition.external != made.definition.external:
            return self._rebuild(table, memory, number)
        return self._with_restored_domains(table, memory, made, commit)

    def _with_restored_domains(
        self, table: TableHandle, memory: TableMemory, made: State, commit: Sequence[Mapping[str, Any]]
    ) -> State:
        """Return the state after a commit; if it is a RESTORE, with Trinity's domain metadata of the restored version.

        The same goes for a commit that removed Trinity's domain metadata: the version before it has them.
        """
        try:
            at = domain_version_at(ObjectStore(table.location), table.full_name, made.version, commit)
            return made if at is None else with_domains_of(made, self._state(table, memory, at), commit)
        except TrinityError as error:  # the log was cleaned up
            if error.code != "BAD_DATA":
                raise
        remembered = made.definition.external or sets_domains(commit)
        return made if remembered else replace(made, forgotten=Forgotten.UNKNOWN, written=False)

    def _at_checkpoint(self, table: TableHandle, version: int) -> Replayed | None:
        """Return the sum of a log at a classic checkpoint; None without one, or where another engine has written."""
        store, name = ObjectStore(table.location), table.full_name
        found = at_checkpoint(store, name, version)
        if found is None or not is_own(found.actions()):
            return None
        if any(TAG_TIER not in (added["add"].get("tags") or {}) for added in found.files.values()):
            return None
        return found if self._since_trinity(table, version) == Since() else None

    def _from_checkpoint(
        self, table: TableHandle, memory: TableMemory, found: Replayed, at: int, version: int
    ) -> State:
        """Return the state from a checkpoint and the commits since.

        Trinity's own commits that follow the checkpoint directly are summed with it; the others are applied one by one.
        """
        store, name = ObjectStore(table.location), table.full_name
        commits = read_commits(store, name, range(at + 1, version + 1))
        ours = list(itertools.takewhile(is_of_trinity, commits))
        for commit in ours:
            found.add(commit)
        at += len(ours)
        state = apply(table, None, at, found.actions())
        for number, commit in enumerate(commits[len(ours) :], at + 1):
            state = self._apply_commit(table, memory, state, number, commit)
        return state

    def _since_trinity(self, table: TableHandle, version: int) -> Since:
        """Return what other engines changed up to a version that is rebuilt, as far as the log shows it."""
        store, name = ObjectStore(table.location), table.full_name
        there = itertools.takewhile(lambda n: store.stat(commit_name(n)), range(version, -1, -1))
        return since_trinity((n, read_commit(store, name, n)) for n in there)

    def _rebuild(self, table: TableHandle, memory: TableMemory, version: int) -> State:
        """Return the state from the newest checkpoint and the commits after it.

        If the table is external, all remaining commits tell the commit numbers of its files.
        """
        store, name = ObjectStore(table.location), table.full_name
        actions = replayed(store, name, version, store.names(LOG)).actions()
        if not is_own(actions):
            first = earliest_commit(store, name)
            commits = read_commits(store, name, range(first, version + 1))
            found = apply(table, None, version, with_commits_of_files(actions, first, commits))
            return replace(found, commit=commit_id(by_kind(commits[-1])) if commits else "")
        # in an object store no other engine commits
        since = self._since_trinity(table, version) if store.on_disk else Since()
        if since.turn is not None and since.turn < version:
            state = self._state(table, memory, since.turn)
            for number in range(since.turn + 1, version + 1):
                state = self._apply_commit(table, memory, state, number, read_commit(store, name, number))
            return state
        found = replace(
            self._with_order(table, apply(table, None, version, actions)), displaced=since.displaced, commit=""
        )
        if store.stat(commit_name(version)) is None:  # a version that has a checkpoint may lack its commit file
            return found
        commit = read_commit(store, name, version)
        found = replace(found, commit=commit_id(by_kind(commit)))
        return found if since.turn is None else self._with_restored_domains(table, memory, found, commit)

    def _with_order(self, table: TableHandle, found: State) -> State:
        """Return a version rebuilt from a checkpoint, with the order of rows from the commits since Trinity's."""
        store, name = ObjectStore(table.location), table.full_name
        if all(f.origin is Origin.OWN for f in found.files.values()):
            return found
        since = range(found.order.through + 1, found.version + 1)
        later = ((n, read_commit(store, name, n) if store.stat(commit_name(n)) else None) for n in since)
        return replace(found, order=order_since(found.order, found.definition, found.version, later))


def _missing(store: ObjectStore, state: State) -> str | None:
    """Return a file of a version that is missing, or None."""
    files = (*state.files.values(), *state.sidecar)
    return next((path for f in files for path in f.needs if not store.exists(path)), None)


_ALTERS: Final = frozenset({"RENAME COLUMN", "SET TBLPROPERTIES", "UPDATE SCHEMA"})
_SAME_ROWS: Final = frozenset({"optimize", "vacuum start", "vacuum end"})
"""Words of ``history()`` for commits of other engines that left the rows as they were."""


def _history_entry(version: int, actions: list[dict[str, Any]]) -> HistoryEntry:
    """Return the entry of ``history()`` for a commit, from its number and its actions. The time is the commit's."""
    found = by_kind(actions)
    info = found.get("commitInfo", [{}])[0]
    added, removed = found.get("add", []), found.get("remove", [])
    known = [rows for action in added if (rows := rows_of(action.get("stats"))) is not None]
    operation = _operation(version, found, str(info.get("operation", "")))
    return HistoryEntry(
        version,
        committed_ms(info),
        operation,
        {
            "added_files": len(added),
            **({} if len(known) < len(added) else {"added_rows": sum(known)}),
            "removed_files": len(removed),
        },
        commit_id(found),
        same_rows=operation in _SAME_ROWS,
    )


def _operation(version: int, found: Mapping[str, list[Any]], operation: str) -> str:
    """Return Trinity's name for what a commit did; Delta's own name for a commit of another engine."""
    if version == 0:
        return CommitOperation.CREATE
    if operation == "WRITE" and "remove" not in found:
        return CommitOperation.APPEND
    added = found.get("add", [])
    if operation == "UPDATE" and all(map(_by_trinity, added)):  # an UPDATE of Delta's own adds files
        return CommitOperation.MERGE
    tags = found.get("commitInfo", [{}])[0].get("tags")
    if isinstance(tags, dict) and (named := tags.get(TAG_OPERATION)) is not None:
        return str(named)
    if operation == "OPTIMIZE" and ("domainMetadata" in found or any(map(_by_trinity, added))):
        return CommitOperation.COMPACT
    if operation in _ALTERS:
        return CommitOperation.ALTER
    if any(d["domain"] == VACUUM_DOMAIN for d in found.get("domainMetadata", [])):
        return CommitOperation.VACUUM
    return operation.lower()


def _by_trinity(added: Mapping[str, Any]) -> bool:
    return TAG_TIER in (added.get("tags") or {})
