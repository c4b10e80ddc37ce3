"""JSON messages of any tool: parsed, classified, and turned from changes of rows into row versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from trinity.cdc.json_text import marked, text_of, valid
from trinity.cdc.placeholders import is_placeholder
from trinity.cdc.values import BROKEN, Encoding, failing, integer_of
from trinity.cdc.version_columns import VersionColumns
from trinity.errors import TrinityError, nearest
from trinity.spark.settings import pinned
from trinity.spark.types import spark_type
from trinity.spi import Column, parse_type
from trinity.syntax.quoting import quoted, text_literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Invalid = Literal["refuse", "drop"]
"""What happens to a message that is no change of a row: it raises an error, or is dropped."""

_WHY: Final = ", since it is not one JSON object, or has a key twice in one"
_BEGINNING: Final = "left(text, 200)"
"""Spark SQL of the beginning of a message, as an error shows it."""


@dataclass(frozen=True)
class Reading:
    """Messages of a tool, and how they are read: the arguments that all tools' functions have.

    Attributes:
        messages: the messages.
        column: the column with their JSON text, STRING or BINARY.
        columns: the columns of the rows in them.
        roles: the key, and the columns of the result that mark row versions.
        position: the field of a message that orders the changes of a row; None for none.
        invalid: what happens to a message that is no change of a row.
    """

    messages: DataFrame
    column: str
    columns: Sequence[Column]
    roles: VersionColumns
    position: str | None
    invalid: Invalid

    def parsed(self, fields: str) -> DataFrame:
        """Parse the messages: ``text`` STRING; ``m``, a STRUCT, marked as in :mod:`~trinity.cdc.json_text`; ``key``.

        ``m`` is NULL for a text that is not one JSON object, or has a wrong type in one of the tool's own fields.
        ``key`` is the message's key in Kafka, STRING; NULL where there is none.

        Raises:
            TrinityError: COLUMN_NOT_FOUND, TYPE_MISMATCH.
        """
        messages, column = self.messages, self.column
        known = {name.lower(): kind for name, kind in messages.dtypes}
        if column.lower() not in known:
            message = f"The messages have no column '{column}'.{nearest(column, messages.columns)} Name it by column."
            raise TrinityError("COLUMN_NOT_FOUND", message)
        if known[column.lower()] not in ("string", "binary"):
            message = f"Column '{column}' is {known[column.lower()]}; the messages are JSON text, STRING or BINARY."
            raise TrinityError("TYPE_MISMATCH", message)
        schema = text_literal(f"STRUCT<m: STRUCT<{fields}>, {BROKEN}: STRING>")
        options = f"map('allowSingleQuotes', 'false', 'columnNameOfCorruptRecord', '{BROKEN}')"
        with pinned(messages.sparkSession):
            key = "key" if column.lower() != "key" and known.get("key") in ("string", "binary") else "NULL"
            texts = messages.selectExpr(f"CAST({quoted(column)} AS STRING) AS text", f"CAST({key} AS STRING) AS key")
            texts = _once(texts, text="text", key="key", marked=marked("text"))
            read = f"from_json(concat('{{\"m\":', marked, '}}'), {schema}, {options})"
            found = _once(texts, text="text", key="key", valid=f"is_valid_utf8(text) AND {valid('marked')}", r=read)
            return found.selectExpr("text", "key", f"IF(valid AND r.{BROKEN} IS NULL, r.m, NULL) AS m")

    def of_rows(self, parsed: DataFrame, tool: str, cases: Sequence[tuple[str, str | None]]) -> DataFrame:
        """Return the messages that change a row, with their row kind ``kind``: ``+I``, ``+U`` or ``-D``.

        Args:
            parsed: the messages.
            tool: the tool's name, for errors.
            cases: (condition, row kind), None for messages that are left out; the first that holds counts. If none
                holds, the message is no change of a row. A message that is NULL is left out.
        """
        other, broken = (
            _no_change(f"The message is no change of a row as {tool} writes it{why}: ", self.invalid)
            for why in ("", _WHY)
        )
        whens = (f"WHEN {condition} THEN {text_literal(kind) if kind else 'NULL'}" for condition, kind in cases)
        none = "WHEN text IS NULL OR trim(text) = 'null' THEN NULL"
        kind = f"CASE {none} WHEN m IS NULL THEN {broken} {' '.join(whens)} ELSE {other} END"
        with pinned(parsed.sparkSession):
            return parsed.selectExpr("*", f"{kind} AS kind").where("kind IS NOT NULL")

    def by_old_values(self, changes: DataFrame, old: str, new: str, encoding: Encoding) -> DataFrame:
        """Return the row versions of changes whose messages have old values only of the fields that changed.

        ``old`` is Spark SQL of these old values, a MAP<STRING, STRING>; ``new`` of the fields after the change, or
        before a deletion.
        """
        with pinned(changes.sparkSession):
            before, at = _image_before(self.columns, old, new), _position_of(self.position)
            rows = changes.selectExpr("text", "kind", f"{before} AS before", f"{new} AS after", f"{at} AS at")
        return self.row_versions(rows, encoding)

    def row_versions(
        self, rows: DataFrame, encoding: Encoding, placeholder: str | None = None, own: Mapping[str, str] | None = None
    ) -> DataFrame:
        """Return the row versions of changes; arguments as for :class:`_Changes`."""
        return _row_versions(_Changes(rows, self.columns, encoding, placeholder, own or {}), self.roles)


def _once(rows: DataFrame, **columns: str) -> DataFrame:
    """Project rows so that each expression is evaluated once a row: Spark copies plain ones into predicates above."""
    return rows.selectExpr(
        f"inline(array(named_struct({', '.join(f'{text_literal(n)}, {c}' for n, c in columns.items())})))"
    )


def _no_change(reason: str, invalid: Invalid) -> str:
    failure = failing("BAD_DATA", f"{text_literal(reason)}, {_BEGINNING}", "STRING")
    return "CAST(NULL AS STRING)" if invalid == "drop" else failure


def _image_before(columns: Sequence[Column], old: str, new: str) -> str:
    """Return Spark SQL of the fields of a row before an update.

    ``old`` is a MAP<STRING, STRING> of the old values of the changed fields, ``new`` a STRUCT of the fields after the
    update; NULL for none.
    """
    fields = []
    for column in columns:
        name, now = text_literal(column.name), f"{new}.{quoted(column.name)}"
        fields.append(f"{name}, IF(map_contains_key({old}, {name}), element_at({old}, {name}), {now})")
    return f"IF({new} IS NULL OR {old} IS NULL, {new}, named_struct({', '.join(fields)}))"


def _position_of(field: str | None) -> str:
    """Return Spark SQL of a number in the message ``m``, as the position of a change; a message without it fails."""
    if field is None:
        return "CAST(NULL AS BIGINT)"
    return position_or_failing(integer_of(text_of(f"m.{quoted(field)}"), "BIGINT"), field, "BIGINT")


def position_or_failing(value: str, position: str, kind: str) -> str:
    """Return Spark SQL of a position, which fails for a message without one."""
    reason = f"'The message has no {position}; name another position: ', {_BEGINNING}"
    return f"coalesce({value}, {failing('BAD_DATA', reason, kind)})"


@dataclass(frozen=True)
class _Changes:
    """Changes of rows.

    Attributes:
        rows: ``text``; ``kind`` (``+I``, ``+U`` or ``-D``); ``before`` and ``after``, the row's fields; ``at``, the
            position. An insert lacks ``before``, a delete ``after``; an update may lack ``before``.
        placeholder: the tool's text for a value that it does not know; None when the tool has no such text.
        own: column that may hold the placeholder -> its own watermark column.
    """

    rows: DataFrame
    columns: Sequence[Column]
    encoding: Encoding
    placeholder: str | None = None
    own: Mapping[str, str] = field(default_factory=dict)


def _row_versions(changes: _Changes, roles: VersionColumns) -> DataFrame:
    """Return the row versions of changes, in their order.

    An update that changes the key is a ``-D`` of the old key and a ``+I`` of the new one; every other one its new row.
    """
    with pinned(changes.rows.sparkSession):
        found = changes.rows.where("kind IS NOT NULL").selectExpr("*", f"{_changes_key(changes, roles)} AS moved")
        found = found.selectExpr("at", f"inline({_versions(roles)})")
        # each step names what the next one uses several times: so expressions stay small, and Spark plans fewer nodes
        numbered = [*enumerate(changes.columns)]
        fields = [f"row.{quoted(c.name)} AS field{n}" for n, c in numbered]
        found = found.selectExpr("at", "kind", *fields)
        texts = [f"{text_of(f'field{n}')} AS text{n}" for n, c in numbered if not parse_type(c.type).nested]
        found = found.selectExpr("*", *texts)
        row = (f"{text_literal(c.name)}, {changes.encoding.value(c, f'field{n}', f'text{n}')}" for n, c in numbered)
        found = found.selectExpr("at", "kind", f"named_struct({', '.join(row)}) AS row")
        values = [f"{_value(changes, column)} AS {quoted(column.name)}" for column in changes.columns]
        owns = [_own_watermark(changes, column) for column in changes.columns if column.name in changes.own]
        return found.selectExpr(*values, *roles.marks("at", "kind"), *owns)


def _changes_key(changes: _Changes, roles: VersionColumns) -> str:
    """Return Spark SQL that is true for an update that changes the key, and fails where that cannot be known."""
    columns = {c.name.lower(): c for c in changes.columns}
    differ = []
    for column in (columns[name.lower()] for name in roles.key):
        old, new = (f"{side}.{quoted(column.name)}" for side in ("before", "after"))
        values = (changes.encoding.value(column, side) for side in (old, new))
        differ.append(f"(NOT ({old} <=> {new}) AND NOT ({' <=> '.join(values)}))")
    known = " AND ".join(f"before.{quoted(name)} IS NOT NULL" for name in roles.key)
    both = "kind = '+U' AND before IS NOT NULL AND after IS NOT NULL"
    return f"({both} AND {_old_key(roles.key)} AND {known} AND ({' OR '.join(differ)}))"


def _versions(roles: VersionColumns) -> str:
    """Return Spark SQL of an ARRAY of the row versions of a change: row kind, and fields of the row."""
    deleted, updated = (_present(kind, "before") for kind in ("'-D'", "'-U'"))
    old = f"CASE WHEN kind = '-D' THEN {deleted} WHEN moved THEN '-D'"
    if roles.preimages:
        old += f" WHEN kind = '+U' THEN {updated}"
    new = f"CASE WHEN kind = '-D' THEN NULL WHEN moved THEN '+I' ELSE {_present('kind', 'after')} END"
    both = f"named_struct('kind', {old} END, 'row', before), named_struct('kind', {new}, 'row', after)"
    return f"filter(array({both}), v -> v.kind IS NOT NULL)"


def _old_key(names: Sequence[str]) -> str:
    """Return Spark SQL that is true, and fails for an update whose old row lacks a key column: a row might stay."""
    lacks = [(n, f"before.{quoted(n)} IS NULL AND after.{quoted(n)} IS NOT NULL") for n in names]
    whens = " ".join(f"WHEN {lack} THEN {unlocated(name, 'the row before the update')}" for name, lack in lacks)
    return f"CASE {whens} ELSE true END"


def unlocated(name: str, where: str) -> str:
    """Return Spark SQL of type BOOLEAN that fails, since ``where`` lacks key column ``name`` of an update."""
    reason = (
        f"Key column '{name}': {where} lacks it, so an older row of another '{name}' might stay; let the source log "
        "whole rows (PostgreSQL: REPLICA IDENTITY FULL): "
    )
    return failing("BAD_DATA", f"{text_literal(reason)}, {_BEGINNING}", "BOOLEAN")


def _present(kind: str, side: str) -> str:
    """Return Spark SQL of a row kind, which fails for a change that lacks this image of its row."""
    reason = f"'The message lacks the row {side} the change: ', {_BEGINNING}"
    return f"IF({side} IS NULL, {failing('BAD_DATA', reason, 'STRING')}, {kind})"


def _value(changes: _Changes, column: Column) -> str:
    """Return Spark SQL of a column's value. It fails for the placeholder, unless the column has its own watermark."""
    value = f"row.{quoted(column.name)}"
    unknown = _unknown(changes, column)
    if unknown is None:
        return value
    kind = spark_type(column.type)
    if column.name in changes.own:
        return f"IF({unknown}, CAST(NULL AS {kind}), {value})"
    reason = (
        f"Column '{column.name}': the message holds the placeholder of a value that did not change and is not known; "
        "give the column a watermark of its own by unavailable, or the source table REPLICA IDENTITY FULL."
    )
    return f"IF(kind IN ('+I', '+U') AND {unknown}, {failing('BAD_DATA', text_literal(reason), kind)}, {value})"


def _own_watermark(changes: _Changes, column: Column) -> str:
    """Return Spark SQL of the position if a row version has the column's value; else NULL, which is not merged (G2)."""
    known = f"kind IN ('+I', '+U') AND NOT coalesce({_unknown(changes, column)}, false)"
    return f"IF({known}, at, NULL) AS {quoted(changes.own[column.name])}"


def _unknown(changes: _Changes, column: Column) -> str | None:
    """Return Spark SQL that is true for the placeholder; None for a column that cannot hold it."""
    if changes.placeholder is None:
        return None
    found = is_placeholder(f"row.{quoted(column.name)}", parse_type(column.type), changes.placeholder)
    return None if found is None else f"({found})"
