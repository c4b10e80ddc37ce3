"""Tables that other engines made: their definitions, and the refusals of what is left to these engines.

And tables of Trinity's that other engines changed: the definitions that they have then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NoReturn

from trinity.errors import TrinityError
from trinity.merge.kept_values import with_history_noted
from trinity.merge.properties import canonical_properties
from trinity.merge.roles import renamed, role_of, without_column
from trinity.merge.spec import merge_spec
from trinity.spi import (
    Column,
    CommitResult,
    ConnectorMetadata,
    TableDefinition,
    TableHandle,
    TransactionId,
    VacuumResult,
)
from trinity.storage.commits import RowChanges

_PREFIX: Final = "trinity."
_KEY: Final = ("primary-key", "primary_key")


def split_key(properties: Mapping[str, str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return (key columns of the property ``primary-key``, the other properties)."""
    texts = [v for k, v in properties.items() if k.lower() in _KEY]
    names = [name.strip() for name in ",".join(texts).split(",") if name.strip()]
    return tuple(names), {k: v for k, v in properties.items() if k.lower() not in _KEY}


def foreign_definition(
    name: tuple[str, str],
    columns: Sequence[Column],
    partition_by: Sequence[str],
    properties: Mapping[str, str],
    own_prefixes: tuple[str, ...] = (),
    identifier: Sequence[str] = (),
) -> TableDefinition:
    """Return the definition of a table that another engine made.

    Args:
        name: (schema, table) by which the session knows it.
        columns: its columns.
        partition_by: its partition fields.
        properties: its properties. ``trinity.primary-key``, or ``primary-key``, names its key. Then other properties of
            keyed tables count too, with or without the prefix ``trinity.``.
        own_prefixes: prefixes of the format's own properties, which are kept as they are.
        identifier: its key if no property names one.

    Raises:
        TrinityError: the errors of a CREATE TABLE with this key and these properties.
    """
    own = {k: v for k, v in properties.items() if k.startswith(own_prefixes or ("\0",))}
    bare = {k.removeprefix(_PREFIX): v for k, v in properties.items() if k not in own}
    key, options = split_key(bare)
    draft = TableDefinition(*name, tuple(columns), key or tuple(identifier), tuple(partition_by), external=True)
    if not draft.keyed:
        return draft.with_properties({**own, **_known_properties({k: v for k, v in options.items() if k == "comment"})})
    keyed = draft.with_key(draft.primary_key).with_properties({**own, **_known_properties(options)})
    merge_spec(keyed)
    return keyed


def _known_properties(options: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that Trinity knows. An external table may have other ones, which are left out."""
    found: dict[str, str] = {}
    for key, value in options.items():
        try:
            found |= canonical_properties({key: value})
        except TrinityError:
            continue
    return found


def adopted_definition(
    table: str, known: TableDefinition, present: Sequence[tuple[Column | None, Column]]
) -> TableDefinition:
    """Return the definition of a table of Trinity's with the columns as other engines changed them (L3).

    Key, partitioning and properties follow renamed columns, and lose dropped ones.

    Args:
        table: full name, for messages.
        known: the definition as Trinity left it.
        present: the format's columns in table order, hidden ones last, each as (column of ``known``, or None if
            another engine added it; column as it is now).

    Raises:
        TrinityError: NOT_SUPPORTED naming a column that merging needs and that is gone, or no longer fits.
    """
    now = {was.name: column for was, column in present if was}
    found = known
    for column in known.columns:
        if column.name not in now or (column.hidden and now[column.name].name != column.name):
            role = "Trinity's own" if column.hidden else role_of(found, column.name)
            if role:
                raise _unfit(table, f"dropped or renamed column '{column.name}', which is {role}")
            found = without_column(found, column)
    for name in known.primary_key:
        if now[name].nullable and not known.column(name).nullable:
            raise _unfit(table, f"took NOT NULL from column '{name}', which is part of the primary key")
    moved = {name: column.name for name, column in now.items() if name != column.name}
    found = renamed(found, moved) if moved else found
    found = found.with_columns(column for _, column in present).numbered()
    if found.keyed and found.columns != known.columns:
        try:
            found = with_history_noted(known, found)
        except TrinityError as error:
            raise _unfit(table, f"changed its columns, which do not fit its options now ({error.message})") from error
    return found


def adopted_properties(
    properties: Mapping[str, str], settings: Mapping[str, str], prefixes: tuple[str, ...]
) -> dict[str, str]:
    """Return a table's properties, in which those of the format have the values that other engines have set.

    Args:
        properties: the properties as Trinity left them.
        settings: the format's settings as they are now.
        prefixes: prefixes of the format's properties.
    """
    present = {key.lower(): value for key, value in settings.items()}
    own = {key for key in properties if key.startswith(prefixes)}
    return {k: present.get(k.lower(), v) for k, v in properties.items() if k not in own or k.lower() in present}


def keeps_row_versions(definition: TableDefinition) -> bool:
    """Return whether a table keeps the row versions of compacted rows (E3)."""
    return definition.keyed and merge_spec(definition).may_have_history


def changed_compacted_rows(table: str, restore: str) -> TrinityError:
    """Return the error for a version of a :func:`keeps_row_versions` table in which others changed compacted rows.

    Args:
        table: full name.
        restore: the format's statement that goes back to an older version.
    """
    return TrinityError(
        "NOT_SUPPORTED",
        f"Another engine changed or deleted compacted rows of table '{table}'. They are folded from row versions that "
        "lie in the sidecar, and go on saying what the rows were (E3). Restore the version before that there "
        f"({restore}), and change rows by Trinity's UPDATE, DELETE or MERGE.",
    )


def _unfit(table: str, what: str) -> TrinityError:
    return TrinityError(
        "NOT_SUPPORTED",
        f"Another engine {what}, in table '{table}': its rows cannot be merged any more. Restore the table there to "
        "what it was before, or read a version from before that.",
    )


def not_ours(table: str, what: str) -> TrinityError:
    """Return NOT_SUPPORTED, for what Trinity does only to tables that it made."""
    return TrinityError(
        "NOT_SUPPORTED",
        f"Table '{table}' is external: Trinity appends row versions to it, and leaves {what} to the engine that made "
        "it.",
    )


class SingleTable(RowChanges):
    """Base class of the metadata of one external table, which :meth:`~trinity.spi.Connector.open_external` returns.

    An adapter adds ``get_splits``, ``history``, ``begin_insert``, ``begin_rewrite`` and ``commit``.
    """

    def truncate(self, table: TableHandle, txn: TransactionId | None = None) -> CommitResult:
        return ConnectorMetadata.truncate(self, table, txn)

    def list_schemas(self) -> list[str]:
        return []

    def list_tables(self, schema: str) -> list[str]:
        return []

    def get_table(self, schema: str, table: str) -> TableHandle | None:
        return None

    def create_schema(self, schema: str) -> NoReturn:
        raise not_ours(schema, "schemas")

    def drop_schema(self, schema: str) -> NoReturn:
        raise not_ours(schema, "schemas")

    def create_table(self, definition: TableDefinition) -> NoReturn:
        raise not_ours(definition.full_name, "CREATE TABLE")

    def drop_table(self, table: TableHandle) -> NoReturn:
        raise not_ours(table.full_name, "the removal of its files")

    def rename_table(self, table: TableHandle, schema: str, name: str) -> NoReturn:
        raise not_ours(table.full_name, "its name")

    def alter_table(self, table: TableHandle, change: Callable[[TableDefinition], TableDefinition]) -> NoReturn:
        raise not_ours(table.full_name, "its columns")

    def vacuum(self, table: TableHandle, older_than_ms: int) -> VacuumResult:
        raise not_ours(table.full_name, "vacuum")
