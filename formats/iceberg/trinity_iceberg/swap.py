"""The catalog's compare-and-swap: one table's metadata for another, and what the catalog answers to it.

A catalog may answer with an error, or not at all, although it has committed. So on any error the table is loaded
again and looked at; after the commit only success is told.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchPropertyException,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.schema import Schema
from pyiceberg.table import CreateTableTransaction, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.update import AssertRefSnapshotId, AssertTableUUID, TableRequirement, TableUpdate
from pyiceberg.utils.properties import property_as_bool
from sqlalchemy.exc import IntegrityError, OperationalError

from trinity.errors import TrinityError
from trinity.storage import CommitRaced, after_commit, table_taken
from trinity_iceberg.carried import OPERATION
from trinity_iceberg.names import identifier_of
from trinity_iceberg.trouble import TROUBLE, catalog_trouble, load_table, of_another_kind

__all__ = ["commit_updates", "put_table", "staged", "writing"]


def commit_updates(
    table: Table,
    updates: tuple[TableUpdate, ...],
    requirements: tuple[TableRequirement, ...],
    stands: Callable[[TableMetadata], bool],
) -> None:
    """Changes a table's metadata, provided that no other snapshot has become current since it was loaded.

    Args:
        table: as it was loaded.
        updates: what changes.
        requirements: what must hold, beside that.
        stands: tells by the table's metadata whether this commit was made.

    Raises:
        CommitRaced: another commit was first.
        TrinityError: TABLE_NOT_FOUND when it was dropped or made anew meanwhile, FILESYSTEM_ERROR.
    """
    name = ".".join(table.name())
    own = (
        AssertTableUUID(uuid=table.metadata.table_uuid),
        AssertRefSnapshotId.model_validate({"ref": MAIN_BRANCH, "snapshot-id": table.metadata.current_snapshot_id}),
    )
    before = table.metadata
    try:
        with writing(table), _errors(table.catalog.name, name):
            after = table.catalog.commit_table(table, (*own, *requirements), updates).metadata
    except (CommitRaced, TrinityError) as error:
        now = _now(table.catalog, table.name(), error)
        if now is None or not stands(now):
            raise
        after = now
    what = f"Metadata files of '{name}' that are no longer needed were left"
    after_commit(what, lambda: _forget_metadata(table, before.metadata_log, after.metadata_log))


def staged(catalog: Catalog, name: tuple[str, str, str], schema: Schema, **rest: Any) -> CreateTableTransaction:
    """The description of a new table; a REST catalog is told of it before.

    Args:
        catalog: where.
        name: the full name.
        schema: its columns.
        rest: as of PyIceberg's ``create_table_transaction``.

    Raises:
        TrinityError: TABLE_ALREADY_EXISTS, PERMISSION_DENIED, FILESYSTEM_ERROR.
    """
    full = ".".join(name)
    try:
        with _errors(name[0], full):
            return catalog.create_table_transaction(identifier_of(*name[1:]), schema, **rest)
    except CommitRaced as error:
        raise table_taken(full) from error


def put_table(catalog: Catalog, transaction: CreateTableTransaction, name: tuple[str, str, str]) -> None:
    """Makes a table in one commit.

    Args:
        catalog: where.
        transaction: what describes it.
        name: the full name.

    Raises:
        TrinityError: TABLE_ALREADY_EXISTS, FILESYSTEM_ERROR.
    """
    full = ".".join(name)
    own = transaction.table_metadata.table_uuid
    try:
        with _errors(name[0], full), transaction, _first_snapshot(transaction):
            pass
    except (CommitRaced, TrinityError, OSError) as error:
        now = _now(catalog, identifier_of(*name[1:]), error)
        if now is not None and now.table_uuid == own:
            return
        if isinstance(error, TrinityError):
            raise
        if isinstance(error, CommitRaced):
            raise table_taken(full) from error
        raise TrinityError("FILESYSTEM_ERROR", f"Table '{full}' cannot be made: {error}.") from error


def _first_snapshot(transaction: CreateTableTransaction) -> contextlib.AbstractContextManager[object]:
    return transaction.update_snapshot(snapshot_properties={OPERATION: "create"}).fast_append()


def _now(catalog: Catalog, name: tuple[str, ...], failure: Exception) -> TableMetadata | None:
    """The table after a commit that failed, or seemed to; None when there is none.

    Raises:
        TrinityError: FILESYSTEM_ERROR when it cannot be said whether the commit was made.
    """
    try:
        return load_table(catalog, name).metadata
    except NoSuchTableError:
        return None
    except Exception as error:
        if isinstance(failure, TrinityError) and failure.code == "PERMISSION_DENIED":
            raise failure from error  # it has said that it was not
        raise TrinityError(
            "FILESYSTEM_ERROR",
            f"The catalog did not say whether the commit to '{'.'.join(name)}' was made ({failure}), and cannot be "
            f"asked ({error}): look at the table's history, or repeat the statement with the same txn.",
        ) from failure


@contextlib.contextmanager
def _errors(catalog: str, name: str) -> Iterator[None]:
    """Maps what a catalog answers to a commit."""
    try:
        yield
    except (CommitFailedException, TableAlreadyExistsError, IntegrityError) as error:
        raise CommitRaced(str(error)) from error
    except (NoSuchPropertyException, ValueError) as error:
        if not of_another_kind(error):
            raise
        raise CommitRaced(str(error)) from error  # Glue has tables that are none of Iceberg's
    except TROUBLE as error:
        if isinstance(error, OperationalError) and "locked" in str(error):
            raise CommitRaced(str(error)) from error
        raise catalog_trouble(catalog, error) from error
    except NoSuchTableError as error:
        raise TrinityError("TABLE_NOT_FOUND", f"Table '{name}' was dropped meanwhile.") from error


@contextlib.contextmanager
def writing(table: Table) -> Iterator[None]:
    """Maps the operating system's errors."""
    try:
        yield
    except PermissionError as error:
        raise TrinityError("PERMISSION_DENIED", f"No permission to write to '{table.location()}'.") from error
    except OSError as error:
        raise TrinityError(
            "FILESYSTEM_ERROR", f"Metadata of '{table.location()}' cannot be written: {error}."
        ) from error


def _forget_metadata(table: Table, before: Sequence[object], after: Sequence[object]) -> None:
    """Deletes the metadata files that fell out of the log, as the table's properties ask for."""
    if not property_as_bool(table.properties, "write.metadata.delete-after-commit.enabled", False):
        return
    paths = [{getattr(entry, "metadata_file", "") for entry in log} for log in (before, after)]
    for path in paths[0] - paths[1]:
        with contextlib.suppress(OSError):
            table.io.delete(path)
