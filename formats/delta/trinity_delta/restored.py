"""What Trinity keeps in domain metadata, where another engine's commit has put it out of force.

RESTORE brings back the files of an older version and leaves the newest domain metadata unchanged. The sidecar and the
order of rows are then those of the restored version. A commit that removes Trinity's domain metadata, as DROP FEATURE
does, makes the table unreadable until `session.repair` puts it back. After a RESTORE, Trinity's next commit writes what
is in force, so that a later checkpoint agrees with the commits. Trinity's own RESTORE commits the actions of Delta's,
and the domain metadata of the restored version, so that the log may be cleaned up behind them (L11).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trinity.errors import TrinityError
from trinity.spi import Column, DataFile, Origin, TableDefinition, TableHandle, Tier
from trinity.storage import ObjectStore
from trinity_delta.actions import (
    DOMAINS,
    LOG,
    ORDER_DOMAIN,
    SIDECAR_DOMAIN,
    TAG_COMMIT,
    TAG_ORDER,
    TAG_TIER,
    Action,
    is_of_trinity,
    is_restore,
    remove,
)
from trinity_delta.checkpoint import replayed
from trinity_delta.external import APPEND_ONLY
from trinity_delta.log import read_commit
from trinity_delta.schema import HIGHEST, NO_NAME, evolved, is_true, recorded
from trinity_delta.state import Forgotten, State, allows_domains, domains_in_force

Commit = Sequence[Mapping[str, Any]]
"""The actions of a commit."""


@dataclass(frozen=True)
class Since:
    """The changes of other engines since Trinity's newest commit.

    Attributes:
        displaced: paths of compacted files from which they removed rows.
        turn: the newest commit that put Trinity's domain metadata out of force; None if there is none.
    """

    displaced: frozenset[str] = frozenset()
    turn: int | None = None


def since_trinity(commits: Iterable[tuple[int, Commit]]) -> Since:
    """Return what other engines changed since Trinity's newest commit. Commits are (number, actions), newest first."""
    taken = set[str]()
    for number, actions in commits:
        if is_restore(actions) or _removes_domains(actions):
            return Since(frozenset(taken), number)
        if _is_of_trinity(number, actions):
            break
        removed = [a["remove"] for a in actions if "remove" in a and a["remove"]["dataChange"]]
        taken |= {r["path"] for r in removed if (r.get("tags") or {}).get(TAG_TIER) == Tier.BASE.value}
    return Since(frozenset(taken))


def domain_version_at(store: ObjectStore, table: str, number: int, actions: Commit) -> int | None:
    """Return the version whose domain metadata a commit restores; None for a commit that restores none.

    Raises:
        TrinityError: BAD_DATA where the log does not show which version a RESTORE restored.
    """
    if is_restore(actions):
        named = _info(actions).get("operationParameters", {}).get("version")
        return _restored_version(store, table, number, actions) if named is None else int(named)
    return number - 1 if _removes_domains(actions) else None


def with_domains_of(now: State, then: State, actions: Commit) -> State:
    """Return the state ``now`` with the sidecar, row order and commit numbers of files of the restored version."""
    # files in the order of the restored version: among files of one commit of another engine later ones win
    paths = [path for path in dict.fromkeys((*then.files, *now.files)) if path in now.files]
    removed = _removes_domains(actions) or not allows_domains(now.definition, now.protocol)
    return replace(
        now,
        files={path: _as_of_version(now.files[path], then.files.get(path)) for path in paths},
        sidecar=then.sidecar,
        order=then.order,
        displaced=then.displaced,
        forgotten=Forgotten.REMOVED if removed else then.forgotten,
        written=False,
    )


def _as_of_version(file: DataFile, before: DataFile | None) -> DataFile:
    """Return a file with the commit number of the earlier version, if the same rows of it are deleted there."""
    return before if before is not None and before.deletes == file.deletes else file


def _info(actions: Commit) -> Mapping[str, Any]:
    return next((action["commitInfo"] for action in actions if "commitInfo" in action), {})


def _removes_domains(actions: Commit) -> bool:
    domains = (action["domainMetadata"] for action in actions if "domainMetadata" in action)
    return any(d["domain"] in DOMAINS and d.get("removed") for d in domains)


def sets_domains(actions: Commit) -> bool:
    """Return whether a commit itself sets the sidecar and the order of rows, as Trinity's restore does."""
    domains = {action["domainMetadata"]["domain"] for action in actions if "domainMetadata" in action}
    return domains >= {SIDECAR_DOMAIN, ORDER_DOMAIN} and not _removes_domains(actions)


def _is_of_trinity(number: int, actions: Commit) -> bool:
    """Return whether Trinity made a commit, by itself or through Delta's classes.

    A tag proves it only if it names this commit: other engines may add a file of Trinity's again, with its tags.
    """
    if is_of_trinity(actions):
        return True
    if any(a["domainMetadata"]["domain"] in DOMAINS for a in actions if "domainMetadata" in a):
        return True
    return any((a["add"].get("tags") or {}).get(TAG_ORDER) == str(number) for a in actions if "add" in a)


def _restored_version(store: ObjectStore, table: str, number: int, actions: Commit) -> int:
    """Return the newest version before a RESTORE that has the files which it brought back.

    A RESTORE to a time records it as the user wrote it, in an unknown time zone. So this walks back the log with the
    set of files that differ, until none does: the files that a commit added or removed join the set or leave it.
    """
    differ = _differences_after(set(), actions)
    for version in range(number - 1, -1, -1):
        if not differ:
            return version
        differ = _differences_after(differ, read_commit(store, table, version))
    raise TrinityError("BAD_DATA", f"Table '{table}': no version of its log has the files of the RESTORE {number}.")


def _differences_after(differ: set[tuple[Any, ...]], actions: Commit) -> set[tuple[Any, ...]]:
    gone, come = ({_key(a[kind]) for a in actions if kind in a} for kind in ("remove", "add"))
    return differ ^ gone ^ come


def _key(file: Mapping[str, Any]) -> tuple[Any, ...]:
    vector = file.get("deletionVector") or {}
    return file["path"], vector.get("storageType"), vector.get("pathOrInlineDv"), vector.get("offset")


def restoring(table: TableHandle, now: State, then: State) -> list[Action]:
    """Return the actions that bring back files and domain metadata of version ``then``; none if neither differs."""
    gone = [(path, file) for path, file in now.files.items() if not _same(file, then.files.get(path))]
    back = {path: file for path, file in then.files.items() if not _same(file, now.files.get(path))}
    if not (gone or back) and (now.sidecar, now.order) == (then.sidecar, then.order):
        return []
    removed = [remove(path, file, now.definition, changes=True) for path, file in gone]
    domains = domains_in_force(table, replace(then, version=now.version, written=False))
    return [*removed, *(_add_actions(table, then, back) if back else []), *domains]


def _same(file: DataFile, other: DataFile | None) -> bool:
    return other is not None and file.deletes == other.deletes


def _add_actions(table: TableHandle, then: State, back: Mapping[str, DataFile]) -> list[Action]:
    """Return the actions that add files again as they were. A file of another engine gets its commit's number."""
    store = ObjectStore(table.location)
    known = replayed(store, table.full_name, then.version, store.names(LOG)).files.values()
    found = []
    for added in (action["add"] for action in known if action["add"]["path"] in back):
        file, kept = back[added["path"]], {key: value for key, value in added.items() if value is not None}
        if file.origin is not Origin.OWN:
            kept["tags"] = {**(kept.get("tags") or {}), TAG_COMMIT: str(file.commit)}
        found.append({"add": {**kept, "dataChange": True}})
    return found


def restored_metadata(
    table: TableHandle, now: State, then: State, definition: TableDefinition
) -> Mapping[str, Any] | None:
    """Return the fields of the ``metaData`` action that change with a restore; None for no change.

    Raises:
        TrinityError: NOT_SUPPORTED where columns were renamed or dropped for the first time since.
    """
    if now.mapped and not then.mapped:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Columns of table '{table.full_name}' were renamed or dropped since version {then.version}, which Delta "
            "cannot undo. Write the rows of that version instead: table.upsert(table.to_arrow(version=...)).",
        )
    present = now.metadata["configuration"]
    kept = {APPEND_ONLY: present[APPEND_ONLY]} if is_true(present, APPEND_ONLY) else {}
    if then.mapped:  # no column number is given twice, even if other engines restored an older version meanwhile
        kept[HIGHEST] = str(max(int(state.metadata["configuration"].get(HIGHEST, 0)) for state in (now, then)))
    else:  # no live file has the columns that came since: their names are free again, but no id is given twice
        newest = max((c.field_id or 0 for c in definition.dropped), default=0)
        definition = replace(definition, dropped=(Column(NO_NAME, "boolean", field_id=newest),) if newest else ())
    settings = {**then.metadata["configuration"], **kept, **recorded(definition)}
    schema = then.metadata["schemaString"]
    if definition.stamped and not then.definition.stamped:
        schema = evolved(schema, definition, mapped=then.mapped)
    partitions = then.metadata["partitionColumns"]
    wanted = {"schemaString": schema, "partitionColumns": partitions, "configuration": settings}
    return None if all(now.metadata[name] == value for name, value in wanted.items()) else wanted
