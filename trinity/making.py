"""Creates and drops of tables and schemas that run at the same time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from trinity.errors import TrinityError
from trinity.names import TableName
from trinity.spi import ConnectorMetadata
from trinity.storage import not_ours, schema_in_use, table_taken, taking_back

if TYPE_CHECKING:
    from trinity.engine.target import Target

__all__ = ["check_owned", "drop_empty", "insert_first_rows", "made_alone", "made_or_found"]

_T = TypeVar("_T")
_Made = TypeVar("_Made", bound="Target")


def made_or_found(
    name: TableName, found: _T | None, make: Callable[[], _T], find: Callable[[], _T | None], *, if_not_exists: bool
) -> _T:
    """Return a new table; or with ``if_not_exists`` the table that has the name, or gets it meanwhile.

    Args:
        name: the table's name.
        found: the table that has it; None if there is none.
        make: makes the table. Raises TABLE_ALREADY_EXISTS.
        find: returns the table that has the name now, or None.
        if_not_exists: whether to return an existing table.

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


def made_alone(made: _Made, registered: Callable[[], bool]) -> _Made:
    """Return a new table, unless someone registered a table of its name meanwhile; then drop it.

    Args:
        made: the table.
        registered: returns whether a table is registered under the name. None may be registered afterwards.

    Raises:
        TrinityError: TABLE_ALREADY_EXISTS; COMMIT_STATE_UNKNOWN where the new table cannot be dropped; and as
            ``registered``.
    """
    try:
        if registered():
            raise table_taken(str(made.name))
    except TrinityError as error:
        _take_back(made, error)
        raise
    return made


def insert_first_rows(made: _Made, fill: Callable[[_Made], _T]) -> _T:
    """Put the first rows into a new table. Where that fails the table is dropped, unless they may be in it.

    Args:
        made: the table, pinned: another one that has got its name since is neither filled nor dropped.
        fill: writes the rows.

    Raises:
        TrinityError: as ``fill``.
    """
    try:
        return fill(made)
    except TrinityError as error:
        if error.code != "COMMIT_STATE_UNKNOWN":
            _take_back(made, error)
        raise
    except BaseException:
        _drop(made)
        raise


def _take_back(made: Target, why: TrinityError) -> None:
    with taking_back(f"Table '{made.name}'", why):
        _drop(made)


def _drop(made: Target) -> None:
    """Drop a table, unless a concurrent call has dropped it."""
    try:
        made.connector.metadata.drop_table(made.handle)
    except TrinityError as error:
        if error.code != "TABLE_NOT_FOUND":
            raise


def drop_empty(
    metadata: ConnectorMetadata, place: TableName, registered: Callable[[], list[str]], settle: Callable[[], list[str]]
) -> None:
    """Drop a schema in which no table is registered, and make it again if someone registered one meanwhile.

    Args:
        metadata: the catalog's.
        place: a name in the schema.
        registered: returns the names that are registered in it.
        settle: returns the same once the schema is gone. None may be registered afterwards.

    Raises:
        TrinityError: SCHEMA_NOT_EMPTY; COMMIT_STATE_UNKNOWN where the schema cannot be made again; and as
            ``metadata.drop_schema``.
    """
    if tables := registered():
        raise schema_in_use(place.catalog, place.schema, tables)
    metadata.drop_schema(place.schema)
    if tables := settle():
        error = schema_in_use(place.catalog, place.schema, tables)
        with taking_back(f"The removal of schema '{place.catalog}.{place.schema}'", error):
            _make_again(metadata, place.schema)
        raise error


def _make_again(metadata: ConnectorMetadata, schema: str) -> None:
    """Make a schema, unless a concurrent call has made it."""
    try:
        metadata.create_schema(schema)
    except TrinityError as error:
        if error.code != "SCHEMA_ALREADY_EXISTS":
            raise


def check_owned(find: Callable[[], Target], what: str) -> Target:
    """Return a table, after checking that Trinity made it.

    Args:
        find: returns the table of the name. Raises TABLE_NOT_FOUND.
        what: what the caller wants to do, for the message.

    Raises:
        TrinityError: TABLE_NOT_FOUND; NOT_SUPPORTED for a table that Trinity did not make.
    """
    table = find()
    try:
        own = table.connector.metadata.owns(table.handle)
    except TrinityError:
        if find().location == table.location:  # else someone drops it at this moment, and makes another
            raise
        return check_owned(find, what)
    if not own:
        raise not_ours(str(table.name), what)
    return table
