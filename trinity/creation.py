"""How tables and schemas are created and dropped while concurrent calls do the same."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final, TypeVar

from trinity.errors import TrinityError, ignoring
from trinity.names import TableName
from trinity.storage import table_taken
from trinity.storage.errors import undoing
from trinity.storage.foreign import not_ours

if TYPE_CHECKING:
    from trinity.target import Target

_ATTEMPTS: Final = 20
"""How often CREATE is attempted while others create and drop the table, or the name is that of something else."""

_T = TypeVar("_T")
_Found = TypeVar("_Found", bound="Target")
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
    for _ in range(_ATTEMPTS - 1):
        if found is not None and not if_not_exists:
            raise table_taken(str(name))
        if found is not None:
            return found
        try:
            return make()
        except TrinityError as error:
            if error.code != "TABLE_ALREADY_EXISTS" or not if_not_exists:
                raise
        found = find()  # None if the table was dropped since: then try again
    return make() if found is None else found


class _TakenAway(TrinityError):
    """The error of a table that another session dropped or replaced before it had its first rows."""


def create_or_replace(
    found: _Found | None,
    find: Callable[[], _Found | None],
    make: Callable[[], _T],
    replace: Callable[[_Found], _T],
    *,
    repeatable: bool,
) -> _T:
    """Replace a table, or create it if there is none; the other one if concurrent calls create or drop it meanwhile.

    Args:
        found: the table; None if there is none.
        find: looks the table up again.
        make: creates it.
        replace: replaces it.
        repeatable: False if ``make`` and ``replace`` read rows that can be read once. They are then not called again
            after they may have read them.

    Raises:
        TrinityError: as ``make`` and ``replace``.
    """
    missed = False
    for _ in range(_ATTEMPTS - 1):
        try:
            return make() if found is None else replace(found)
        except TrinityError as error:
            if found is None:
                again = error.code == "TABLE_ALREADY_EXISTS" or (repeatable and isinstance(error, _TakenAway))
            else:
                again = repeatable and error.code == "TABLE_NOT_FOUND"
            if not again:
                raise
            was = found
            try:
                found = find()
            except TrinityError:
                raise error from None
            same = was is not None and found is not None and found.location == was.location
            if same and missed:
                raise  # it is about a table that the query reads, and not about one that was dropped and made again
            missed = same
    return make() if found is None else replace(found)


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

    The table is pinned to its id: another table that took its name since is neither filled nor dropped. Nor is one that
    another session had put in its place, by CREATE OR REPLACE, when the rows were refused.

    Raises:
        TrinityError: TRANSACTION_CONFLICT where another session dropped or replaced the table; as ``fill``.
    """
    try:
        return fill(made)
    except TrinityError as error:
        if error.code != "COMMIT_STATE_UNKNOWN" and _is_taken_away(made):
            raise _TakenAway(
                "TRANSACTION_CONFLICT",
                f"Table '{made.name}' was dropped or replaced by another session before it had its first rows; run the "
                "statement again.",
            ) from error
        if error.code != "COMMIT_STATE_UNKNOWN":
            with undoing(f"Table '{made.name}'", error):
                drop(made)
        raise
    except BaseException:
        if not _is_taken_away(made):
            drop(made)
        raise


def _is_taken_away(made: Target) -> bool:
    """Return whether a table that was just created has been dropped or replaced since."""
    try:
        return bool(made.connector.metadata.get_table_definition(made.handle).replaced)
    except TrinityError as error:
        return error.code in ("TABLE_NOT_FOUND", "TRANSACTION_CONFLICT")


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
