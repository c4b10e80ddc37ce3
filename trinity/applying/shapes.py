"""The shape of a target: the key, columns and properties that the arguments of ``apply_changes`` need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from trinity.applying.arguments import END_AT, START_AT, ApplyArguments
from trinity.errors import TrinityError
from trinity.merge.properties import MergeEngine
from trinity.merge.spec import MergeSpec, merge_spec
from trinity.spi import Column, TableDefinition, parse_type
from trinity.syntax.quoting import quoted, text_literal

_ROW_KIND: Final = "_row_kind"


@dataclass(frozen=True)
class Shape:
    """The columns, key and properties that a target needs."""

    columns: tuple[Column, ...]
    key: tuple[str, ...]
    properties: Mapping[str, str] = field(default_factory=dict)

    def statement(self, name: str) -> str:
        """Return the CREATE TABLE of such a table."""
        columns = [f"{quoted(c.name)} {c.type}{'' if c.nullable else ' NOT NULL'}" for c in self.columns]
        key = f"PRIMARY KEY ({', '.join(map(quoted, self.key))})"
        properties = ", ".join(f"{text_literal(k)} = {text_literal(v)}" for k, v in self.properties.items())
        return f"CREATE TABLE {name} ({', '.join([*columns, key])}) TBLPROPERTIES ({properties})"


def shape_of(arguments: ApplyArguments, source: Sequence[Column]) -> Shape:
    """Return the shape that the arguments need. Columns outside the key are nullable, as deleting events have NULLs."""
    known = {column.name: column for column in source}
    identity = () if not arguments.history else (START_AT,) if arguments.by_start else arguments.sequence
    key = (*arguments.keys, *identity)
    stored = [Column(c, known[c].type, c not in key, comment=known[c].comment) for c in arguments.columns]
    if arguments.history:
        kind = _sequence_type(arguments, known)
        ends = (Column(START_AT, kind, START_AT not in key), Column(END_AT, kind))
        return Shape((*stored, *ends), key, {"tombstone.keep-values": "true"})
    sequence = ",".join(arguments.sequence)
    if not arguments.ignore_nulls:
        return Shape(tuple(stored), key, {"watermark-key": sequence})
    properties = {"merge-engine": MergeEngine.PARTIAL_UPDATE.value, "sequence.field": sequence}
    if arguments.deletes is None:
        return Shape(tuple(stored), key, properties)
    properties |= {"rowkind.field": _ROW_KIND, "partial-update.remove-record-on-delete": "true"}
    return Shape((*stored, Column(_ROW_KIND, "string")), key, properties)


def _sequence_type(arguments: ApplyArguments, known: Mapping[str, Column]) -> str:
    if len(arguments.sequence) == 1:
        return known[arguments.sequence[0]].type
    fields = ",".join(f"{quoted(name)}:{known[name].type}" for name in arguments.sequence)
    return str(parse_type(f"struct<{fields}>"))


def check_target(table: str, definition: TableDefinition, arguments: ApplyArguments, wanted: Shape) -> MergeSpec:
    """Return the properties of a target, and check that it has the shape that the arguments need.

    Raises:
        TrinityError: INVALID_ARGUMENTS saying what is wrong, with the CREATE TABLE of a right target;
            COLUMN_NOT_FOUND; TYPE_MISMATCH for a :data:`START_AT` or :data:`END_AT` of another type.
    """
    spec = merge_spec(definition) if definition.keyed else None
    why = _unlike(spec, arguments, wanted)
    if why is not None:
        message = f"Table '{table}' {why}; apply_changes needs a target like: {wanted.statement(table)}."
        raise TrinityError("INVALID_ARGUMENTS", message)
    assert spec is not None
    have = {c.name.lower(): c for c in definition.visible}
    for column in wanted.columns:
        found = have.get(column.name.lower())
        if found is None:
            message = (
                f"Table '{table}' has no column '{column.name}' for that of the source. It has: "
                f"{', '.join(c.name for c in definition.visible)}. Add it, or leave it out by except_columns."
            )
            raise TrinityError("COLUMN_NOT_FOUND", message)
        if column.name in (START_AT, END_AT) and found.type != _stored_type(definition, arguments):
            message = (
                f"Column '{column.name}' of table '{table}' is of type {found.type}, and the sequence of type "
                f"{column.type}; they must be one type."
            )
            raise TrinityError("TYPE_MISMATCH", message)
    return spec


def _stored_type(definition: TableDefinition, arguments: ApplyArguments) -> str:
    """Return the type that START_AT and END_AT need: that of the table's own columns of the sequence."""
    if arguments.by_start:
        return definition.column(START_AT).type
    known = {name: Column(name, definition.column(name).type) for name in arguments.sequence}
    return _sequence_type(arguments, known)


def _unlike(spec: MergeSpec | None, arguments: ApplyArguments, wanted: Shape) -> str | None:
    """Return how a target differs from the shape, as the rest of a sentence; None when it does not."""
    if spec is None:
        return "has no primary key"
    if _lower(spec.key) != _lower(wanted.key):
        return f"has the primary key ({', '.join(spec.key)}), and not ({', '.join(wanted.key)})"
    engine = MergeEngine(wanted.properties.get("merge-engine", MergeEngine.DEDUPLICATE.value))
    if spec.engine is not engine:
        return f"has merge engine {spec.engine.value}, and not {engine.value}"
    if arguments.history:
        return _unlike_history(spec)
    if [c.lower() for c in spec.ordering] != [c.lower() for c in arguments.sequence] or spec.descending:
        order = f"orders its rows by {', '.join(spec.ordering)}" if spec.ordering else "has no watermark"
        down = " downwards" if spec.descending else ""
        return f"{order}{down}, and not by {', '.join(arguments.sequence)}"
    if spec.by_column and (spec.groups or spec.functions):
        return "has sequence groups or functions, by which columns fold otherwise"
    if spec.by_column and arguments.deletes is not None and not (spec.row_kind and spec.remove_on_delete):
        return "has no row kind column by which an event could delete a row"
    if not spec.by_column and not (spec.tombstone or spec.row_kind or spec.hidden_row_kind):
        return "has no column by which a row could be deleted"
    return None


def _unlike_history(spec: MergeSpec) -> str | None:
    if not spec.hidden_row_kind or spec.row_kind:
        return "has a tombstone or row kind column of its own, or is external"
    if not set(spec.ordering) <= set(spec.key):
        return "has a watermark"
    return None if spec.tombstone_rows else "lacks 'tombstone.keep-values' = 'true'"


def _lower(names: Sequence[str]) -> set[str]:
    return {name.lower() for name in names}
