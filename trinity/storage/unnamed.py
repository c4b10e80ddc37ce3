"""Tables in a bucket that have no name: what a CREATE leaves that was killed before it, or a DROP after.

A table is removed here only where that is sure to be so: its catalog's names say that it was dropped, or nothing of it
is there but metadata that a CREATE puts. Tables that another catalog put into the same place have neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from trinity.errors import TrinityError
from trinity.spi import TableHandle
from trinity.storage.folder_names import OWN_FOLDER
from trinity.storage.location import Location
from trinity.storage.object_names import NameLog
from trinity.storage.store import Entry, ObjectStore

__all__ = ["check_unswept", "sweep_unnamed"]

_GOING: Final = "_trinity-going"
"""An object in a table's place while it is removed: put before the names are read, and removed last."""
_MADE: Final = ("_trinity/", "_delta_log/", _GOING)
"""The beginnings of what a CREATE puts."""

_History = Sequence[Mapping[str, Any] | None]


def sweep_unnamed(root: Location, schema: str, names: NameLog, older_than_ms: int) -> list[Entry]:
    """Removes the tables of a schema that have no name.

    Who gives one its name at the same time looks for the sign of this (:func:`check_unswept`), and this looks at the
    names behind its sign: at least one of the two sees the other.

    Args:
        root: the catalog's place.
        schema: the schema's folder.
        names: the names of tables, and where they lie.
        older_than_ms: tables of which something is younger stay; milliseconds since the epoch.

    Returns:
        what was removed.
    """
    found = [OWN_FOLDER.fullmatch(folder) for folder in sorted(set(ObjectStore(root.join(schema)).names()))]
    places = {f"{schema}/{own[0]}": own["name"] for own in found if own}
    histories = names.history(schema) if places else {}
    gone: list[Entry] = []
    for place, name in places.items():
        history = histories.get(name, ())
        if _holds(history, place):
            continue
        store = ObjectStore(root.join(place))
        there = store.list()
        if _is_left(there, older_than_ms) and (_was_there(history, place) or _is_bare(there)):
            store.put(_GOING, b"")
            if not _holds(names.history(schema, name).get(name, ()), place):
                store.delete(entry.path for entry in there if entry.path != _GOING)
                gone += there
            store.delete([_GOING])
    return gone


def check_unswept(table: TableHandle) -> None:
    """Refuses a table that has its name by now, and was taken for one that gets none (TRANSACTION_CONFLICT)."""
    there = [entry.path for entry in ObjectStore(table.location).list()]
    if not there or _GOING in there:
        raise TrinityError(
            "TRANSACTION_CONFLICT",
            f"Table '{table.full_name}' took longer to be made than a vacuum spares what has no name; make it again.",
        )


def _holds(history: _History, place: str) -> bool:
    """True when the name is a place's now."""
    return _was_there(history[-1:], place)


def _was_there(history: _History, place: str) -> bool:
    """True when the name was a place's at some time."""
    return any(facts is not None and facts["location"] == place for facts in history)


def _is_left(there: Sequence[Entry], older_than_ms: int) -> bool:
    return bool(there) and all(entry.modified_ms <= older_than_ms for entry in there)


def _is_bare(there: Sequence[Entry]) -> bool:
    """True for a table without data files."""
    return all(entry.path.startswith(_MADE) for entry in there)
