"""Assigned columns, and fields of structs that are assigned by their dotted names (M10)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from trinity.engine.program import Expression, Fields, Value
from trinity.errors import TrinityError, nearest
from trinity.spi import Column, parse_type


@dataclass(frozen=True)
class AssignedField:
    """The target of an assignment: a column, or a field in it, whose path is the names from the column to the field."""

    column: Column
    path: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The dotted name of the column or field."""
        return ".".join((self.column.name, *self.path))


def resolve_field(
    parts: Sequence[str], columns: Mapping[str, Column], qualifiers: Collection[tuple[str, ...]], table: str
) -> AssignedField:
    """Return the column or field that a dotted name means. A name that may be a qualified column is not a field.

    Columns and qualifiers are in lower case.

    Raises:
        TrinityError: COLUMN_NOT_FOUND; TYPE_MISMATCH for a field of a column or field that is no struct.
    """
    lower = tuple(part.lower() for part in parts)
    for length in range(len(parts) - 1, -1, -1):
        column = columns.get(lower[length]) if not length or lower[:length] in qualifiers else None
        if column is not None:
            return AssignedField(column, _path(column, parts[length + 1 :], table))
    known = [column.name for column in columns.values()]
    if len(parts) > 1 and lower[:-1] not in qualifiers:
        shown, aliases = ".".join(parts), " or ".join(sorted(".".join(q) for q in qualifiers if len(q) == 1))
        raise TrinityError(
            "COLUMN_NOT_FOUND",
            f"'{shown}' is no column of the target '{table}', which is known as '{aliases}', and no field of one. "
            f"It has: {', '.join(known)}.",
        )
    name = parts[-1]
    raise TrinityError(
        "COLUMN_NOT_FOUND",
        f"Table '{table}' has no column '{name}'.{nearest(name, known)} It has: {', '.join(known)}.",
    )


def _path(column: Column, names: Sequence[str], table: str) -> tuple[str, ...]:
    kind, found = parse_type(column.type), [column.name]
    for name in names:
        at = ".".join(found)
        if kind.name != "struct":
            raise TrinityError(
                "TYPE_MISMATCH",
                f"'{at}' of table '{table}' is of type {kind} and has no field '{name}' that could be set; set all of "
                f"'{at}'.",
            )
        fields = {field.lower(): (field, part) for field, part in kind.parts}
        if name.lower() not in fields:
            known = [field for field, _ in kind.parts]
            raise TrinityError(
                "COLUMN_NOT_FOUND",
                f"'{at}' of table '{table}' has no field '{name}'.{nearest(name, known)} It has: {', '.join(known)}.",
            )
        field, kind = fields[name.lower()]
        found.append(field)
    return tuple(found[1:])


def field_column(field: AssignedField) -> Column:
    """Return an assigned field as a column named by its dotted path."""
    kind = parse_type(field.column.type)
    for name in field.path:
        kind = dict(kind.parts)[name]
    return Column(field.name, str(kind)) if field.path else field.column


def assigned_values(assignments: Iterable[tuple[AssignedField, Expression]], what: str) -> dict[str, Value]:
    """Return the new value of each column; the values of fields are collected by column.

    Raises:
        TrinityError: DUPLICATE_COLUMN_NAME for a column or field that is set twice, or as a whole and in part.
    """
    given = dict[tuple[str, ...], tuple[AssignedField, Expression]]()
    for field, value in assignments:
        path = (field.column.name, *field.path)
        other = next((known for known in given if path[: len(known)] == known or known[: len(path)] == path), None)
        if other == path:
            raise TrinityError("DUPLICATE_COLUMN_NAME", f"{what} names '{field.name}' more than once.")
        if other is not None:
            whole, part = sorted((path, other), key=len)
            raise TrinityError(
                "DUPLICATE_COLUMN_NAME", f"{what} names '{'.'.join(whole)}' and its field '{'.'.join(part)}'."
            )
        given[path] = field, value
    found = dict[str, Value]()
    for path, (_, value) in given.items():
        _put(found, path, value)
    return found


def _put(values: dict[str, Value], path: tuple[str, ...], value: Expression) -> None:
    name, *rest = path
    if not rest:
        values[name] = value
        return
    known = values.get(name)
    inner = dict(known.values) if isinstance(known, Fields) else {}
    _put(inner, tuple(rest), value)
    values[name] = Fields(inner)
