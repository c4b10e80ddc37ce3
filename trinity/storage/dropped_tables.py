"""Dropped tables in a bucket: left by a killed DROP, or by a CREATE that was killed before it named the table.

A table is removed here only if it certainly has no name: the names of its catalog show that it was dropped, or it has
only the metadata that a CREATE puts. Neither holds for tables that another catalog put into the same folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from trinity.errors import TrinityError
from trinity.spi import TableHandle
from trinity.storage.entries import Entry
from trinity.storage.folder_names import OWN_FOLDER
from trinity.storage.location import Location
from trinity.storage.object_names import NameLog
from trinity.storage.store import ObjectStore

_REMOVAL_MARK: Final = "_trinity-going"
"""An object in a table's folder that marks its removal: put before the names are read, and removed last."""

_History = Sequence[Mapping[str, Any] | None]


def sweep_dropped(root: Location, schema: str, names: NameLog, older_than_ms: int, metadata: str) -> list[Entry]:
    """Remove the dropped tables of a schema.

    The sweep first puts a mark into the table's folder, and then reads the names. A writer that names a table at the
    same time first puts the name, and then looks for the mark (:func:`check_unswept`). So at least one sees the other.

    Args:
        root: the catalog's location.
        schema: the schema's folder.
        names: the names of tables, with their locations.
        older_than_ms: milliseconds since the epoch; tables with anything younger stay.
        metadata: the folder, below a table's, in which a CREATE puts its objects.

    Returns:
        the removed objects.
    """
    found = [OWN_FOLDER.fullmatch(folder) for folder in sorted(set(ObjectStore(root.join(schema)).names()))]
    known = {f"{schema}/{own[0]}": own["name"] for own in found if own}
    histories = names.history(schema) if known else {}
    gone: list[Entry] = []
    for relative, name in known.items():
        history = histories.get(name, ())
        if _has_name(history, relative):
            continue
        store = ObjectStore(root.join(relative))
        there = store.list()
        if _is_old(there, older_than_ms) and (_had_name(history, relative) or _has_no_data(there, metadata)):
            store.put(_REMOVAL_MARK, b"")
            if not _has_name(names.history(schema, name).get(name, ()), relative):
                store.delete(entry.path for entry in there if entry.path != _REMOVAL_MARK)
                gone += there
            store.delete([_REMOVAL_MARK])
    return gone


def check_unswept(table: TableHandle) -> None:
    """Check that no sweep removes a table that was just named. Raises TRANSACTION_CONFLICT."""
    there = [entry.path for entry in ObjectStore(table.location).list()]
    if not there or _REMOVAL_MARK in there:
        raise TrinityError(
            "TRANSACTION_CONFLICT",
            f"Table '{table.full_name}' was not named within the time that a vacuum spares; create it again.",
        )


def _has_name(history: _History, relative: str) -> bool:
    """Return whether the name now belongs to the table at a location."""
    return _had_name(history[-1:], relative)


def _had_name(history: _History, relative: str) -> bool:
    """Return whether the name ever belonged to the table at a location."""
    return any(facts is not None and facts["location"] == relative for facts in history)


def _is_old(there: Sequence[Entry], older_than_ms: int) -> bool:
    return bool(there) and all(entry.modified_ms <= older_than_ms for entry in there)


def _has_no_data(there: Sequence[Entry], metadata: str) -> bool:
    """Return whether a table has no data files."""
    return all(entry.path.startswith((f"{metadata}/", _REMOVAL_MARK)) for entry in there)
