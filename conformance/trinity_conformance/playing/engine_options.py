"""Options of merge engines with which no table may be made (V1, A5, P1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

COLUMNS: Final[Mapping[str, str]] = {
    "k": "int!", "g_1": "bigint", "g_2": "bigint", "price": "int", "stock": "int", "title": "string", "kind": "string",
}  # fmt: skip
"""Columns of the tables of these attempts: name -> type; a trailing ``!`` means NOT NULL. The key is ``k``."""

_PROPERTY: Final = "INVALID_TABLE_PROPERTY"
_UNKNOWN: Final = "COLUMN_NOT_FOUND INVALID_TABLE_PROPERTY"
_TWICE: Final = "DUPLICATE_COLUMN_NAME INVALID_TABLE_PROPERTY"
_PARTIAL: Final = {"merge-engine": "partial-update"}
_GROUPED: Final = {**_PARTIAL, "fields.g_1.sequence-group": "price"}
_TOTALS: Final = {"merge-engine": "aggregation"}
_REMOVE: Final = "partial-update.remove-record-on-delete"
_REMOVE_GROUP: Final = "partial-update.remove-record-on-sequence-group"


@dataclass(frozen=True)
class BadOption:
    """Options that must be refused.

    Attributes:
        name: what is wrong.
        codes: error codes, separated by spaces; the error must have one of them.
        names: words that the message must contain.
        options: the properties.
        columns: columns that are added to :data:`COLUMNS`, or replace columns of it.
    """

    name: str
    codes: str
    names: tuple[str, ...]
    options: Mapping[str, str]
    columns: Mapping[str, str] = field(default_factory=dict)


def _bad(
    name: str, codes: str, names: str, base: Mapping[str, str], options: Mapping[str, str], **columns: str
) -> BadOption:
    return BadOption(name, codes, tuple(names.split()), {**base, **options}, columns)


def _typed(function: str, type_text: str, **options: str) -> BadOption:
    """Return options with a function on a column of a type, or with options, that it does not accept."""
    further = {f"fields.f.{o.replace('_', '-')}": v for o, v in options.items()}
    given = {"fields.f.aggregate-function": function, **further}
    shown = f" with {further}" if further else ""
    return _bad(f"{function} on {type_text}{shown}", _UNKNOWN, "f", _TOTALS, given, f=type_text)


_NESTED: Final = "array<struct<id:int,x:int>>"
_TIMED: Final = "map<string,struct<x:int,ts:string>>"

BAD_OPTIONS: Final[tuple[BadOption, ...]] = (
    # columns that do not exist, or twice
    _bad("group of an unknown column", _UNKNOWN, "nope sequence-group", _PARTIAL,
         {"fields.g_1.sequence-group": "nope"}),
    _bad("group by an unknown column", _UNKNOWN, "nope", _PARTIAL, {"fields.nope.sequence-group": "price"}),
    _bad("group by a known and an unknown column", _UNKNOWN, "nope", _PARTIAL,
         {"fields.g_1,nope.sequence-group": "price"}),
    _bad("function of an unknown column", _UNKNOWN, "nope", _GROUPED, {"fields.nope.aggregate-function": "sum"}),
    _bad("a column twice in a group", _TWICE, "price sequence-group", _PARTIAL,
         {"fields.g_1.sequence-group": "price,price"}),
    _bad("a sequence column twice in a group", _TWICE, "g_1", _PARTIAL, {"fields.g_1,g_1.sequence-group": "price"}),
    _bad("sequence.field of an unknown column", _UNKNOWN, "nope", _PARTIAL, {"sequence.field": "nope"}),
    _bad("sequence.field with a column twice", _TWICE, "g_1", _PARTIAL, {"sequence.field": "g_1,g_1"}),
    _bad("rowkind.field of an unknown column", _UNKNOWN, "nope rowkind.field", _PARTIAL, {"rowkind.field": "nope"}),
    # groups that overlap
    _bad("a column in two groups", _PROPERTY, "price", _GROUPED, {"fields.g_2.sequence-group": "price,stock"}),
    _bad("one sequence column in two groups", _PROPERTY, "g_1", _GROUPED, {"fields.g_1,g_2.sequence-group": "stock"}),
    _bad("a sequence column protected by another group", _PROPERTY, "g_1", _GROUPED,
         {"fields.g_2.sequence-group": "stock,g_1"}),
    _bad("a sequence column protected by its group", _PROPERTY, "g_1", _PARTIAL,
         {"fields.g_1.sequence-group": "price,g_1"}),
    _bad("a key column in a group", _PROPERTY, "k", _PARTIAL, {"fields.g_1.sequence-group": "price,k"}),
    _bad("a key column as sequence", _PROPERTY, "k", _PARTIAL, {"fields.k.sequence-group": "price"}),
    # ways to delete that exclude each other
    _bad("ignore-delete and remove on delete", _PROPERTY, f"ignore-delete {_REMOVE}", _PARTIAL,
         {"ignore-delete": "true", _REMOVE: "true", "rowkind.field": "kind"}),
    _bad("ignore-delete and remove on group", _PROPERTY, f"ignore-delete {_REMOVE_GROUP}", _GROUPED,
         {"ignore-delete": "true", _REMOVE_GROUP: "g_1", "rowkind.field": "kind"}),
    _bad("ignore-delete and remove on delete, aggregation", _PROPERTY,
         "ignore-delete aggregation.remove-record-on-delete", _TOTALS,
         {"ignore-delete": "true", "aggregation.remove-record-on-delete": "true", "rowkind.field": "kind"}),
    _bad("remove on delete with groups", _PROPERTY, _REMOVE, _GROUPED, {_REMOVE: "true", "rowkind.field": "kind"}),
    _bad("remove on group naming a protected column", _UNKNOWN, f"price {_REMOVE_GROUP}", _GROUPED,
         {_REMOVE_GROUP: "price", "rowkind.field": "kind"}),
    _bad("remove on group naming no column", _UNKNOWN, f"nope {_REMOVE_GROUP}", _GROUPED,
         {_REMOVE_GROUP: "nope", "rowkind.field": "kind"}),
    # functions
    _bad("unknown function", _PROPERTY, "colect collect price", _GROUPED,
         {"fields.price.aggregate-function": "colect"}),
    _bad("unknown default function", _PROPERTY, "colect collect", _TOTALS,
         {"fields.default-aggregate-function": "colect"}),
    _bad("function outside groups", _PROPERTY, "sum stock", _GROUPED, {"fields.stock.aggregate-function": "sum"}),
    _bad("default function that reaches outside groups", _PROPERTY, "max", _GROUPED,
         {"fields.default-aggregate-function": "max"}),
    _bad("sequence.field with its own function", _PROPERTY, "g_1", _TOTALS,
         {"sequence.field": "g_1", "fields.g_1.aggregate-function": "max"}),
    _bad("first-row with sequence.field", _PROPERTY, "sequence.field first-row", {"merge-engine": "first-row"},
         {"sequence.field": "g_1"}),
    _typed("sum", "string"),
    _typed("sum", "boolean"),
    _typed("product", "date"),
    _typed("max", "array<int>"),
    _typed("min", "map<string,int>"),
    _typed("bool_and", "int"),
    _typed("bool_or", "string"),
    _typed("listagg", "int"),
    _typed("collect", "string"),
    _typed("merge_map", "array<int>"),
    _typed("merge_map_with_keytime", "map<string,int>"),
    _typed("nested_update", "array<int>"),
    _typed("nested_partial_update", "array<int>", nested_key="id"),
    _typed("hll_sketch", "string"),
    _typed("theta_sketch", "bigint"),
    _typed("rbm32", "array<int>"),
    _typed("rbm64", "string"),
    _typed("nested_partial_update", _NESTED),
    _typed("nested_update", _NESTED, nested_key="nope"),
    _typed("nested_update", _NESTED, nested_sequence_field="x"),
    _typed("nested_update", _NESTED, nested_key="id", nested_sequence_field="nope"),
    _typed("nested_update", _NESTED, nested_key="id", nested_key_null_strategy="forget"),
    _typed("nested_update", _NESTED, count_limit="some"),
    _typed("merge_map_with_keytime", _TIMED, ts_field="nope"),
    # options that do not exist, or not for this engine
    _bad("unknown option of a column", _PROPERTY, "fields.price.agregate-function aggregate-function", _GROUPED,
         {"fields.price.agregate-function": "sum"}),
    _bad("unknown default option", _PROPERTY, "fields.default-agregate-function fields.default-aggregate-function",
         _GROUPED, {"fields.default-agregate-function": "sum"}),
    _bad("unknown option", _PROPERTY, f"partial-update.remove-records-on-delete {_REMOVE}", _PARTIAL,
         {"partial-update.remove-records-on-delete": "true"}),
    _bad("unknown merge engine", _PROPERTY, "partial-updaet partial-update", {}, {"merge-engine": "partial-updaet"}),
    _bad("tombstone in partial-update", _PROPERTY, "tombstone-key", _PARTIAL, {"tombstone-key": "title"}),
    _bad("tombstone in aggregation", _PROPERTY, "tombstone-key", _TOTALS, {"tombstone-key": "title"}),
    _bad("tombstone in first-row", _PROPERTY, "tombstone-key", {"merge-engine": "first-row"},
         {"tombstone-key": "title"}),
    _bad("watermark and sequence", _PROPERTY, "watermark-key sequence.field", _PARTIAL,
         {"watermark-key": "g_1", "sequence.field": "g_1"}),
    # NOT NULL in groups
    _bad("a protected column that is NOT NULL", _PROPERTY, "price", _GROUPED, {}, price="int!"),
    _bad("a sequence column that is NOT NULL", _PROPERTY, "g_1", _GROUPED, {}, g_1="bigint!"),
)  # fmt: skip
"""All bad options."""
