"""Trinity's own RESTORE: the actions that make an earlier version the newest one again (L11).

They are those of Delta's RESTORE, and say what Trinity keeps in domain metadata at that version (`restored.py`), so
that the log may be cleaned up behind them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trinity.errors import TrinityError
from trinity.spi import DataFile, Origin, TableDefinition, TableHandle
from trinity.storage import ObjectStore
from trinity_delta.actions import LOG, TAG_COMMIT, Action, remove
from trinity_delta.checkpoint import replayed
from trinity_delta.column_mapping import HIGHEST
from trinity_delta.restored import in_force
from trinity_delta.schema import evolved, recorded
from trinity_delta.state import State

__all__ = ["restored_metadata", "restoring"]


def restoring(table: TableHandle, now: State, then: State) -> list[Action]:
    """Return the actions of files and of domain metadata. There are none where neither differs."""
    gone = [(path, file) for path, file in now.files.items() if not _same(file, then.files.get(path))]
    back = {path: file for path, file in then.files.items() if not _same(file, now.files.get(path))}
    if not (gone or back) and (now.sidecar, now.order) == (then.sidecar, then.order):
        return []
    removed = [remove(path, file, now.definition, changes=True) for path, file in gone]
    domains = in_force(table, replace(then, version=now.version, written=False))
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
    kept = {}
    if then.mapped:  # numbers of columns are given once; others may have gone back to before there were any
        kept = {HIGHEST: str(max(int(state.metadata["configuration"].get(HIGHEST, 0)) for state in (now, then)))}
    else:  # no file that is live has the columns that came since, nor may a statement bring one: their names are free
        definition = replace(definition, dropped=then.definition.dropped)
    settings = {**then.metadata["configuration"], **kept, **recorded(definition)}
    schema = then.metadata["schemaString"]
    if definition.stamped and not then.definition.stamped:
        schema = evolved(schema, definition, mapped=then.mapped)
    partitions = then.metadata["partitionColumns"]
    wanted = {"schemaString": schema, "partitionColumns": partitions, "configuration": settings}
    return None if all(now.metadata[name] == value for name, value in wanted.items()) else wanted
