"""How tables and schemas are created and dropped while concurrent calls do the same."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TypeVar

from trinity.errors import TrinityError, ignoring
from trinity.names import TableName
from trinity.storage import table_taken
from trinity.storage.errors import undoing
from trinity.storage.foreign import not_ours

if TYPE_CHECKING:
    from trinity.target import Target

_T = TypeVar("_T")
_Made = TypeVar("_Made", bound="Target")


def get_or_create(
    name: TableName, found: _T | None, make: Callable[[], _T], find: Callable[[], _T | None], *, if_not_exists: bool
) -> _T:
    """Return a new table; or with ``if_not_exists`` the table that has the name, or gets it meanwhile.

    Args:
        name: full name of the table.
        found: the table that has the name; None if there is none.
        make: creates the table.
        find: looks the table up again.
        if_not_exists: True to return a table that exists instead of an error.

    Raises:
        TrinityError: TABLE_ALREADY_EXISTS; and as ``make``.
    """
    while found is None or not if_not_exists:
        if found is not None:
            raise table_taken(str(name))
        try:
            return make()
        except TrinityError as error:
            if error.code != "TABLE_ALREADY_EXISTS" or not if_not_exists:
                raise
        found = find()  # None if the table was dropped since: then try again
    return found


def create_exclusively(
    block: AbstractContextManager[None], make: Callable[[], _T], undo: Callable[[_T], object], what: str
) -> _T:
    """Create something whose name must not be registered, and undo that where a registration came first.

    ``block`` raises an error if the name is registered; ``what`` names what was created, and begins a sentence.

    Raises:
        TrinityError: as ``block`` and ``make``; COMMIT_STATE_UNKNOWN for what cannot be undone.
    """
    made: list[_T] = []
    try:
        with block:
            made.append(make())
    except TrinityError as error:
        for found in made:
            with undoing(what, error):
                undo(found)
        raise
    return made[0]


def drop(made: Target) -> None:
    """Drop a table, unless a concurrent call has dropped it."""
    with ignoring("TABLE_NOT_FOUND"):
        made.connector.metadata.drop_table(made.handle)


def insert_first_rows(made: _Made, fill: Callable[[_Made], _T]) -> _T:
    """Insert the first rows into a new table. If that fails, drop the table, unless the rows may have been committed.

    The table is pinned to its id: another table that took its name since is neither filled nor dropped.

    Raises:
        TrinityError: as ``fill``.
    """
    try:
        return fill(made)
    except TrinityError as error:
        if error.code != "COMMIT_STATE_UNKNOWN":
            with undoing(f"Table '{made.name}'", error):
                drop(made)
        raise
    except BaseException:
        drop(made)
        raise


def check_owned(find: Callable[[], Target], what: str) -> Target:
    """Return a table, after checking that Trinity made it; ``what`` is what the caller wants to do.

    Raises:
        TrinityError: TABLE_NOT_FOUND; NOT_SUPPORTED for a table that Trinity did not make.
    """
    table = find()
    try:
        own = table.connector.metadata.owns(table.handle)
    except TrinityError:
        if find().location == table.location:  # otherwise another call has just replaced the table
            raise
        return check_owned(find, what)
    if not own:
        raise not_ours(str(table.name), what)
    return table
