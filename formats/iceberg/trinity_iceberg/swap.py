"""The catalog's compare-and-swap of a table's metadata, and the meaning of the catalog's answers.

A catalog may answer with an error, or not at all, although it has committed. So on any error the table is loaded again
and checked for the commit. Once the commit is made only success is reported.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    NoSuchPropertyException,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.schema import Schema
from pyiceberg.table import CreateTableTransaction, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AssertCurrentSchemaId,
    AssertRefSnapshotId,
    AssertTableUUID,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)
from pyiceberg.utils.properties import property_as_bool
from sqlalchemy.exc import IntegrityError, OperationalError

from trinity.errors import TrinityError, first_line, system_code
from trinity.spi import CommitOperation
from trinity.storage import CommitRaced, after_commit, asking_again, commit_point, commit_unknown, table_taken
from trinity_iceberg.carried import OPERATION
from trinity_iceberg.names import identifier_of, load_table
from trinity_iceberg.trouble import catalog_trouble, is_refused, may_be_under_way, of_another_kind, trouble


def commit_updates(
    table: Table,
    updates: tuple[TableUpdate, ...],
    requirements: tuple[TableRequirement, ...],
    stands: Callable[[TableMetadata], bool],
) -> None:
    """Change a table's metadata, provided that no other snapshot has become current since it was loaded.

    ``stands`` tells from the table's metadata whether this commit was made.

    Raises:
        CommitRaced: another commit was first, or the table was made anew.
        TrinityError: TABLE_NOT_FOUND when it was dropped meanwhile; FILESYSTEM_ERROR; COMMIT_STATE_UNKNOWN when it is
            not known whether the commit was made.
    """
    name = ".".join(table.name())
    own = (
        AssertTableUUID(uuid=table.metadata.table_uuid),
        AssertRefSnapshotId.model_validate({"ref": MAIN_BRANCH, "snapshot-id": table.metadata.current_snapshot_id}),
    )
    before = table.metadata

    def attempt() -> TableMetadata:
        with writing(table), _errors(table.catalog.name, name):
            try:
                done = commit_point(name, lambda: table.catalog.commit_table(table, (*own, *requirements), updates))
            except (ValueError, KeyError, BadRequestError) as error:  # may mean that another commit removed something
                if load_table(table.catalog, table.name()).metadata_location == table.metadata_location:
                    raise
                raise CommitRaced(str(error)) from error
            return done.metadata

    after = _commit_until_known(table.catalog, table.name(), attempt, stands)
    what = f"Metadata files of '{name}' that are no longer needed were left"
    after_commit(what, lambda: _forget_metadata(table, before.metadata_log, after.metadata_log))


def set_ref(name: str, kind: SnapshotRefType, snapshot: Snapshot) -> SetSnapshotRefUpdate:
    """Return the update by which a branch or a tag names a snapshot."""
    given = {"ref-name": name, "type": kind, "snapshot-id": snapshot.snapshot_id}
    return SetSnapshotRefUpdate.model_validate(given)


def same_schema(metadata: TableMetadata) -> tuple[TableRequirement, ...]:
    """Return the condition that the table still has its schema."""
    return (AssertCurrentSchemaId.model_validate({"current-schema-id": metadata.current_schema_id}),)


def staged(catalog: Catalog, name: tuple[str, str, str], schema: Schema, **rest: Any) -> CreateTableTransaction:
    """Return the transaction that makes a new table; a REST catalog gets a request for it now.

    Raises:
        TrinityError: TABLE_ALREADY_EXISTS, PERMISSION_DENIED, FILESYSTEM_ERROR.
    """
    full = ".".join(name)
    try:
        with _errors(name[0], full):
            return catalog.create_table_transaction(identifier_of(*name[1:]), schema, **rest)
    except CommitRaced as error:
        raise _not_created(name[0], full, error) from error


def put_table(catalog: Catalog, transaction: CreateTableTransaction, name: tuple[str, str, str]) -> TableMetadata:
    """Make a table in one commit, and return its metadata.

    Raises:
        TrinityError: TABLE_ALREADY_EXISTS, FILESYSTEM_ERROR, PERMISSION_DENIED, COMMIT_STATE_UNKNOWN.
    """
    full = ".".join(name)
    own = transaction.table_metadata.table_uuid

    def attempt() -> TableMetadata:
        with _errors(name[0], full):
            return transaction.commit_transaction().metadata

    try:
        made = {OPERATION: CommitOperation.CREATE.value}
        with transaction.update_snapshot(snapshot_properties=made).fast_append():
            pass
        return _commit_until_known(catalog, identifier_of(*name[1:]), attempt, lambda now: now.table_uuid == own)
    except CommitRaced as error:
        raise _not_created(name[0], full, error) from error
    except OSError as error:
        raise TrinityError(system_code(error), f"Table '{full}' cannot be made: {error}.") from error


def _not_created(catalog: str, table: str, error: CommitRaced) -> TrinityError:
    """Return the error of a table that was not created: another one has the name, or SQLite's file stays locked."""
    cause = error.__cause__
    return catalog_trouble(catalog, cause) if isinstance(cause, OperationalError) else table_taken(table)


def _commit_until_known(
    catalog: Catalog,
    name: tuple[str, ...],
    attempt: Callable[[], TableMetadata],
    stands: Callable[[TableMetadata], bool],
) -> TableMetadata:
    """Make a commit, and return the table's metadata once the commit is known to stand.

    An attempt that may still be under way is repeated unchanged: of two that require the same previous state, only
    one succeeds.

    Raises:
        CommitRaced: another commit was first.
        TrinityError: the catalog's error, if the commit was not made; COMMIT_STATE_UNKNOWN when that is not known.
        OSError: the attempt's error.
    """
    doubtful = under_way = False
    for _ in asking_again():
        try:
            return attempt()
        except (CommitRaced, TrinityError, OSError) as error:
            failure = error
        refused = isinstance(failure, TrinityError) and is_refused(failure)
        if refused and not doubtful:
            raise failure
        doubtful, under_way = True, under_way or (not refused and may_be_under_way(failure))
        unread: Exception | None = None
        try:
            if stands(now := load_table(catalog, name).metadata):
                return now
        except NoSuchTableError:
            pass
        except Exception as error:
            unread = error
        if unread is None and (isinstance(failure, CommitRaced) or not under_way):
            raise failure
    why = f" It cannot be asked: {first_line(unread)}." if unread else ""
    raise commit_unknown(f"The commit to table '{'.'.join(name)}'", f"{first_line(failure)}.{why}") from failure


@contextlib.contextmanager
def _errors(catalog: str, name: str) -> Iterator[None]:
    """Map the errors by which a catalog answers a commit: a lost race to CommitRaced, others to a TrinityError."""
    try:
        yield
    except (CommitFailedException, TableAlreadyExistsError, IntegrityError) as error:
        raise CommitRaced(str(error)) from error
    except (NoSuchPropertyException, ValueError) as error:
        if not of_another_kind(error):
            raise
        raise CommitRaced(str(error)) from error  # Glue has tables that are not Iceberg's
    except trouble() as error:
        if isinstance(error, OperationalError) and "locked" in str(error):
            raise CommitRaced(str(error)) from error
        raise catalog_trouble(catalog, error) from error
    except NoSuchTableError as error:
        raise TrinityError("TABLE_NOT_FOUND", f"Table '{name}' was dropped meanwhile.") from error


@contextlib.contextmanager
def writing(table: Table) -> Iterator[None]:
    """Map the operating system's errors in writing metadata to errors of Trinity that name the table's location."""
    try:
        yield
    except PermissionError as error:
        raise TrinityError("PERMISSION_DENIED", f"No permission to write to '{table.location()}'.") from error
    except OSError as error:
        raise TrinityError(
            "FILESYSTEM_ERROR", f"Metadata of '{table.location()}' cannot be written: {error}."
        ) from error


def _forget_metadata(table: Table, before: Sequence[object], after: Sequence[object]) -> None:
    """Delete the metadata files that left the log, if the table's properties ask for it."""
    if not property_as_bool(table.properties, "write.metadata.delete-after-commit.enabled", False):
        return
    paths = [{getattr(entry, "metadata_file", "") for entry in log} for log in (before, after)]
    for path in paths[0] - paths[1]:
        with contextlib.suppress(OSError):
            table.io.delete(path)
