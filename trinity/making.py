"""Tables that several make, or drop, at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from trinity.errors import TrinityError
from trinity.names import TableName
from trinity.storage import not_ours, table_taken

if TYPE_CHECKING:
    from trinity.engine.target import Target

__all__ = ["made_alone", "made_or_found", "owned"]

_T = TypeVar("_T")
_Made = TypeVar("_Made", bound="Target")


def made_or_found(
    name: TableName, found: _T | None, make: Callable[[], _T], find: Callable[[], _T | None], *, if_not_exists: bool
) -> _T:
    """Return a new table; or the one that has the name, or gets it meanwhile, if that is wanted.

    Args:
        name: the table's.
        found: the one that has it.
        make: makes the table. Raises TABLE_ALREADY_EXISTS.
        find: gives the one that has the name by now.
        if_not_exists: whether another's will do.

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
        found = find()  # None where it was dropped since
    return found


def made_alone(made: _Made, registered: Callable[[], object]) -> _Made:
    """Return a new table; it is dropped where another one has registered a table of its name meanwhile.

    Args:
        made: the table.
        registered: gives what the name is registered as, None for nothing.

    Raises:
        TrinityError: TABLE_ALREADY_EXISTS.
    """
    if registered() is not None:
        made.connector.metadata.drop_table(made.handle)
        raise table_taken(str(made.name))
    return made


def owned(find: Callable[[], Target], what: str) -> Target:
    """Return a table that Trinity has made, to do something with it that it does to no other.

    Args:
        find: gives the table of the name. Raises TABLE_NOT_FOUND.
        what: what is to be done.

    Raises:
        TrinityError: TABLE_NOT_FOUND; NOT_SUPPORTED for a table of others.
    """
    table = find()
    try:
        own = table.connector.metadata.owns(table.handle)
    except TrinityError:
        if find().location == table.location:  # or another one drops it at this moment
            raise
        return owned(find, what)
    if not own:
        raise not_ours(str(table.name), what)
    return table
