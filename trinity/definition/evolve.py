"""ALTER TABLE: changes of a definition after which existing rows mean the same (L3).

A column is identified by its field id, and in data files by a name that no other column of the table ever had. So a
change is a commit of metadata: no data file is read or written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Final

from trinity.calls import as_trinity, public
from trinity.definition.checks import naming_checks
from trinity.definition.define import check_column
from trinity.errors import TrinityError
from trinity.merge.properties import TABLE_PROPERTIES, MergeEngine
from trinity.merge.roles import renamed, role_of, without_column
from trinity.merge.spec import merge_spec
from trinity.spi import INTEGERS, Column, DataType, TableDefinition, parse_type

Change = Callable[[TableDefinition], TableDefinition]
"""A function from a definition to the changed definition."""

FIRST: Final = ""

Position = str | None
"""A column's position: the name of the column before it; :data:`FIRST` for the first place, None for the last one."""

_MEANING: Final = tuple(name for name, found in TABLE_PROPERTIES.items() if found.fixed)
"""Properties on which the meaning of stored rows depends."""


@public
def added(definition: TableDefinition, column: Column, position: Position = None) -> TableDefinition:
    """Return the definition with one more column. In existing rows it has its DEFAULT, or else is NULL.

    Raises:
        TrinityError: COLUMN_ALREADY_EXISTS, COLUMN_NOT_FOUND (of the position); NOT_SUPPORTED for NOT NULL,
            INVALID_ARGUMENTS for a hidden name.
    """
    _check_free(definition, column.name)
    if position:
        _visible_column(definition, position)
    check_column(definition.full_name, column)
    if not column.nullable:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Column '{column.name}': a column added to a table is nullable, since older rows have no value for it; "
            f"fill it, then ALTER COLUMN {column.name} SET NOT NULL.",
        )
    column = replace(column, type=str(parse_type(column.type)), field_id=_next_id(definition))
    taken = {c.stored_name.lower() for c in (*definition.columns, *definition.dropped)}
    if column.name.lower() in taken:
        # files have values of another column under that name
        column = replace(column, stored=_free_name(f"{column.name}_{column.field_id}", taken))
    hidden = [c for c in definition.columns if c.hidden]
    found = definition.with_columns([*definition.visible, column, *hidden])
    return found if position is None else moved(found, column.name, position)


@public
def moved(definition: TableDefinition, name: str, position: Position) -> TableDefinition:
    """Return the definition with a visible column moved. Raises COLUMN_NOT_FOUND, INVALID_ARGUMENTS."""
    column = _visible_column(definition, name)
    others = [c for c in definition.visible if c is not column]
    at = len(others)
    if position == FIRST:
        at = 0
    elif position is not None:
        before = _visible_column(definition, position)
        if before is column:
            raise TrinityError("INVALID_ARGUMENTS", f"Column '{column.name}' cannot be moved after itself.")
        at = others.index(before) + 1
    others.insert(at, column)
    return definition.with_columns([*others, *(c for c in definition.columns if c.hidden)])


@public
def rename_column(definition: TableDefinition, old: str, new: str) -> TableDefinition:
    """Return the definition with another name for a column, also in the key, the partitioning and the properties.

    Raises:
        TrinityError: COLUMN_NOT_FOUND, COLUMN_ALREADY_EXISTS, INVALID_ARGUMENTS for a hidden name; NOT_SUPPORTED for a
            column that a CHECK constraint names.
    """
    column = _visible_column(definition, old)
    _check_unconstrained(definition, column.name)
    if new.lower() != column.name.lower():
        _check_free(definition, new)
    check_column(definition.full_name, replace(column, name=new))
    return renamed(definition, {column.name: new})


@public
def dropped(definition: TableDefinition, name: str) -> TableDefinition:
    """Return the definition without a column, and without its properties and its place in a sequence group.

    Raises:
        TrinityError: COLUMN_NOT_FOUND; NOT_SUPPORTED for a column of the key, the partitioning, an ordering, the
            tombstone, the row kind or a CHECK constraint, and for the last column that a sequence group protects, or
            that the table has.
    """
    column = _visible_column(definition, name)
    _check_unconstrained(definition, column.name)
    if role := role_of(definition, column.name):
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Column '{column.name}' of table '{definition.full_name}' cannot be dropped: it is {role}, by which the "
            "rows are merged. Create a new table and insert into it.",
        )
    if len(definition.visible) == 1:
        raise TrinityError("NOT_SUPPORTED", f"Column '{column.name}' is the last one of '{definition.full_name}'.")
    return without_column(definition, column)


@public
def with_type(definition: TableDefinition, name: str, type_text: str) -> TableDefinition:
    """Return the definition with a wider type for a column; older rows keep their values.

    Raises:
        TrinityError: COLUMN_NOT_FOUND; TYPE_MISMATCH for a type that is not wider; NOT_SUPPORTED for a partition
            column.
    """
    column = _visible_column(definition, name)
    before, after = parse_type(column.type), parse_type(type_text)
    if not widens(before, after):
        raise TrinityError(
            "TYPE_MISMATCH",
            f"Column '{column.name}' of table '{definition.full_name}' is of type {before}, and {after} is no wider "
            "one: integers grow up to bigint, float to double, decimal(p,s) in its digits before the point, and "
            "varchar(n) to a longer varchar or string.",
        )
    if column.name in definition.partition_columns:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Column '{column.name}' partitions table '{definition.full_name}': its type stays {before}, under which "
            "the formats keep the values of its partitions.",
        )
    return _with_column(definition, column, replace(column, type=str(after)))


@public
def with_not_null(definition: TableDefinition, name: str, not_null: bool) -> TableDefinition:
    """Return the definition with or without NOT NULL on a column; the caller checks that existing rows have no NULL.

    Raises:
        TrinityError: COLUMN_NOT_FOUND; NOT_SUPPORTED for a key column, or NOT NULL where rows need not carry a column.
    """
    column = _visible_column(definition, name)
    if column.name in definition.primary_key:
        raise TrinityError("NOT_SUPPORTED", f"Key column '{column.name}' of '{definition.full_name}' stays NOT NULL.")
    if not_null and definition.keyed and merge_spec(definition).engine is MergeEngine.PARTIAL_UPDATE:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Column '{column.name}' of table '{definition.full_name}': rows of a partial-update table need not carry "
            "every column (P1), so that older ones may lack it; NOT NULL is possible when the table is made.",
        )
    return _with_column(definition, column, replace(column, nullable=not not_null))


@public
def with_default(definition: TableDefinition, name: str, default: str | None) -> TableDefinition:
    """Return the definition with a DEFAULT of a column for future rows: SQL text, or None to remove it.

    Raises:
        TrinityError: COLUMN_NOT_FOUND; SYNTAX_ERROR.
    """
    column = replace(_visible_column(definition, name), default=default)
    check_column(definition.full_name, column)
    return _with_column(definition, _visible_column(definition, name), column)


@public
def with_comment(definition: TableDefinition, name: str, comment: str | None) -> TableDefinition:
    """Return the definition with another comment on a column. Raises COLUMN_NOT_FOUND."""
    column = _visible_column(definition, name)
    return _with_column(definition, column, replace(column, comment=comment))


@public
def with_changed_properties(before: TableDefinition, given: Mapping[str, str]) -> TableDefinition:
    """Return the definition with the given table properties added or changed.

    Raises:
        TrinityError: INVALID_TABLE_PROPERTY for a change of a property by which stored rows were written (L3).
    """
    return _same_meaning(before, before.with_properties({**before.properties, **given}))


@public
def without_properties(before: TableDefinition, names: Sequence[str]) -> TableDefinition:
    """Return the definition with the given table properties unset, so that their defaults apply.

    Raises:
        TrinityError: INVALID_TABLE_PROPERTY as :func:`with_changed_properties`.
    """
    left = {name: value for name, value in before.properties.items() if name not in names}
    return _same_meaning(before, before.with_properties(left))


def _same_meaning(before: TableDefinition, after: TableDefinition) -> TableDefinition:
    """Return the definition ``after``, whose properties differ, after checking that stored rows keep their meaning."""
    merge_spec(after)
    by_column = {o for d in (before, after) for o in d.properties if o.startswith("fields.")}
    for option in (*_MEANING, *sorted(by_column.difference(_MEANING))):
        if before.properties.get(option) != after.properties.get(option):
            raise TrinityError(
                "INVALID_TABLE_PROPERTY",
                f"'{option}' of table '{before.full_name}' cannot be changed: the rows it holds were written under the "
                "old value. Create a new table and insert into it.",
            )
    return after


def changed(definition: TableDefinition, change: Change) -> TableDefinition:
    """Return the definition after a user's change. If that fails, or returns no definition, raise INVALID_ARGUMENTS."""
    try:
        found = change(definition)
    except TrinityError:
        raise
    except Exception as error:
        known = as_trinity(error)
        if known.code != "GENERIC_INTERNAL_ERROR":
            raise known from error
        raise TrinityError("INVALID_ARGUMENTS", f"A change fails: {type(error).__name__}: {error}.") from error
    if not isinstance(found, TableDefinition):
        raise TrinityError("INVALID_ARGUMENTS", f"A change gives a {type(found).__name__}, and no definition.")
    return found


def _with_column(definition: TableDefinition, before: Column, after: Column) -> TableDefinition:
    return definition.with_columns(after if c is before else c for c in definition.columns)


def _visible_column(definition: TableDefinition, name: str) -> Column:
    return definition.with_columns(definition.visible).column(name)


def _check_free(definition: TableDefinition, name: str) -> None:
    if any(c.name.lower() == name.lower() for c in definition.columns):
        raise TrinityError("COLUMN_ALREADY_EXISTS", f"Table '{definition.full_name}' has a column '{name}' already.")


def _check_unconstrained(definition: TableDefinition, column: str) -> None:
    if found := naming_checks(definition, column):
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Column '{column}' of table '{definition.full_name}' is named by the CHECK constraint '{found[0]}'; drop "
            "that first.",
        )


def _next_id(definition: TableDefinition) -> int:
    return 1 + max(c.field_id or 0 for c in (*definition.columns, *definition.dropped))


def _free_name(name: str, taken: set[str]) -> str:
    while name.lower() in taken:
        name += "_"
    return name


@public
def restored(now: TableDefinition, then: TableDefinition) -> TableDefinition:
    """Return the definition of the table after an earlier version is restored (L11).

    Columns that were added since count as dropped: no new column gets their names in data files.

    Raises:
        TrinityError: NOT_SUPPORTED for a column that was given a wider type since.
    """
    types = {c.identity: c.type for c in (*now.dropped, *now.visible)}  # a dropped column keeps its type in data files
    known = {c.identity for c in then.all_columns}
    dropped = {c.identity for c in now.dropped}
    for column in then.visible:
        wider = types.get(column.identity, column.type)
        before, after = parse_type(column.type), parse_type(wider)
        if before != after and (widens(before, after) if column.identity in dropped else not widens(after, before)):
            raise TrinityError(
                "NOT_SUPPORTED",
                f"Column '{column.name}' of table '{now.full_name}' was {column.type} then, and is {wider} since: a "
                "restore cannot make it narrower. Write the rows of that version instead: "
                "table.upsert(table.to_arrow(version=...)).",
            )
    later = tuple(c for c in now.all_columns if c.identity not in known)
    # a compaction that began before the restore may still commit what it kept (E3)
    noted = then.history_changed or now.history_changed
    found = replace(then, dropped=(*then.dropped, *later), history_changed=noted)
    return found.with_stamps() if now.stamped else found


@public
def replaced(now: TableDefinition, wanted: TableDefinition, version: int) -> TableDefinition:
    """Return the definition of a table that replaces another one (L13), with field ids that the other one never had."""
    fresh = count(_next_id(now))
    columns = [c if c.hidden else replace(c, field_id=next(fresh)) for c in wanted.columns]
    return replace(wanted.with_columns(columns), id=now.id, replaced=version + 1)


@public
def widens(before: DataType, after: DataType) -> bool:
    """Return True when a column of type ``before`` may get type ``after``: it is wider, or the same."""
    if before == after:
        return True
    if before.is_integer and after.is_integer:
        return INTEGERS.index(before.name) < INTEGERS.index(after.name)
    if before.name == after.name == "decimal":
        return before.arguments[0] <= after.arguments[0] and before.arguments[1] == after.arguments[1]
    if before.name == "varchar" and after.name in ("varchar", "string"):
        return after.name == "string" or before.arguments[0] <= after.arguments[0]
    return before.is_floating and after.name == "double"
