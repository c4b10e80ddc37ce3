"""Debezium's change events as JSON: envelopes, and the flat messages of its transform ExtractNewRecordState.

Source: debezium.io/documentation, the connectors' chapters on change events, and New Record State Extraction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

from trinity.calls import public
from trinity.cdc.json_text import text_of
from trinity.cdc.messages import Invalid, Reading, position_or_failing, unlocated
from trinity.cdc.placeholders import is_placeholder
from trinity.cdc.values import DecimalForm, Encoding, TimeUnit, decimal_of, fields_of, integer_of, matches, whole
from trinity.cdc.version_columns import Rows, row_columns, version_columns
from trinity.errors import TrinityError
from trinity.spark.settings import pinned
from trinity.spi import parse_type
from trinity.syntax.quoting import quoted, text_literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


Position = Literal[
    "source.lsn", "source.ts_ms", "source.ts_us", "source.ts_ns", "ts_ms", "ts_us", "ts_ns",
    "source.scn", "source.commit_lsn", "source.change_lsn", "binlog",
]  # fmt: skip
"""The field of a message that orders the changes of a row.

``source.lsn`` BIGINT is PostgreSQL's; ``source.commit_lsn`` and ``source.change_lsn`` STRING are SQL Server's;
``source.scn`` DECIMAL(38,0) is Oracle's; ``binlog`` STRING is MySQL's, made of ``source.file``, ``source.pos`` and
``source.row``, so that file 1000000 comes after 999999. The others are times, BIGINT: of the change in the source, or
of its capture.
"""
_LSN: Final = ("source.commit_lsn", "source.change_lsn")
_TYPES: Final[Mapping[str, str]] = {
    **dict.fromkeys((*_LSN, "binlog"), "STRING"),
    "source.scn": "DECIMAL(38,0)",
}
"""Position -> type, where it is not BIGINT."""
UNAVAILABLE: Final = "__debezium_unavailable_value"
"""Debezium's default for ``unavailable.value.placeholder``."""
_SOURCE: Final = ("lsn", "ts_ms", "ts_us", "ts_ns", "scn", "commit_lsn", "change_lsn", "file", "pos", "row")
_BARE_UPDATE: Final = "kind = '+U' AND e.before IS NULL"
_FLAT_UPDATE: Final = "e.__op = 'u'"
_TIMES: Final = ("ts_ms", "ts_us", "ts_ns")


@public
def debezium(
    messages: DataFrame,
    rows: Rows,
    key: Sequence[str] | None = None,
    *,
    column: str = "value",
    position: Position | None = "source.lsn",
    watermark: str | None = None,
    row_kind: str | None = None,
    tombstone: str | None = None,
    preimages: bool = False,
    timestamps: TimeUnit | Mapping[str, TimeUnit] | None = None,
    decimals: DecimalForm = "number",
    unavailable: Mapping[str, str] | None = None,
    placeholder: str = UNAVAILABLE,
    invalid: Invalid = "refuse",
) -> DataFrame:
    """Read Debezium's envelopes as row versions; lazy. Kafka's tombstones, which are NULL, are left out.

    ``c`` and ``r`` become ``+I``, ``u`` ``+U``, ``d`` ``-D``. A ``u`` that changes the key becomes ``-D`` and ``+I``.

    Args:
        messages: the messages, in the order of their topic where that matters. If there is Kafka's column ``key``, an
            update without ``before`` is refused when ``key`` lacks a key column: the update may have changed the key.
        rows: columns of the rows, or the table that they are for. A column that a message lacks is NULL.
        key: key columns; by default the table's.
        column: the column with the messages, STRING or BINARY: envelopes, or objects with the envelope in ``payload``.
        position: the watermark's value; None for rows with a watermark among their own columns.
        watermark: name of the watermark column; by default the table's, else ``_watermark``.
        row_kind: name of the row kind column; by default the table's, else ``_row_kind``.
        tombstone: name of a tombstone column, instead of a row kind column.
        preimages: True for the old row of an update before the new one, as ``-U``; the source must log whole rows.
        timestamps: unit of integers in TIMESTAMP and TIMESTAMP_NTZ columns, or column -> unit; text is ISO 8601.
        decimals: ``number`` for numbers, or texts of them; ``base64`` for ``decimal.handling.mode`` = ``precise``,
            whose values lack their scale: the column must have the source's, so prefer ``string``.
        unavailable: column that may hold the placeholder -> a watermark column of its own, NULL where it does, for a
            sequence group of a ``partial-update`` table (G2).
        placeholder: ``unavailable.value.placeholder`` of the connector.
        invalid: ``refuse`` or ``drop`` messages that are no change of a row.

    Raises:
        TrinityError: COLUMN_NOT_FOUND, TYPE_MISMATCH, DUPLICATE_COLUMN_NAME, INVALID_ARGUMENTS. As rows are written
            BAD_DATA with the message's beginning, or naming a column with the placeholder; TYPE_MISMATCH for a value.
    """
    roles, own = (
        version_columns(rows, key, position, watermark, row_kind, tombstone, preimages),
        dict(unavailable or {}),
    )
    reading = Reading(messages, column, row_columns(rows, roles, [*own.values()]), roles, position, invalid)
    _check_own(own, reading)
    return reading.row_versions(
        _changes_in_envelopes(reading), Encoding(timestamps, decimals, days=True), placeholder, own
    )


@public
def debezium_flat(
    messages: DataFrame,
    rows: Rows,
    key: Sequence[str] | None = None,
    *,
    column: str = "value",
    position: Position | None = "source.lsn",
    watermark: str | None = None,
    row_kind: str | None = None,
    tombstone: str | None = None,
    timestamps: TimeUnit | Mapping[str, TimeUnit] | None = None,
    decimals: DecimalForm = "number",
    unavailable: Mapping[str, str] | None = None,
    placeholder: str = UNAVAILABLE,
    invalid: Invalid = "refuse",
) -> DataFrame:
    """Read the flat messages of Debezium's transform ExtractNewRecordState as row versions; lazy.

    A message with ``__deleted`` = ``true`` or ``__op`` = ``d`` becomes ``-D``; one with ``__op`` ``c`` or ``r`` becomes
    ``+I``; every other one ``+U``. A message with neither field is no change of a row: the transform needs
    ``delete.tombstone.handling.mode`` = ``rewrite`` (older: ``delete.handling.mode``), or ``add.fields`` = ``op``.

    The arguments are those of :func:`debezium`. The position is in a field of ``add.fields``: ``source.lsn`` in
    ``__source_lsn`` or ``__lsn``, ``source.ts_ms`` in ``__source_ts_ms``, ``ts_ms`` in ``__ts_ms``.

    Raises:
        TrinityError: as :func:`debezium`.
    """
    roles, own = (
        version_columns(rows, key, position, watermark, row_kind, tombstone),
        dict(unavailable or {}),
    )
    reading = Reading(messages, column, row_columns(rows, roles, [*own.values()]), roles, position, invalid)
    _check_own(own, reading)
    return reading.row_versions(_flat(reading), Encoding(timestamps, decimals, days=True), placeholder, own)


def _kind(reading: Reading, update: str) -> str:
    """Return Spark SQL of the row kind ``kind``, which fails for an update that may have changed the key unseen.

    For an update without ``before``, only the message's key in Kafka shows which key columns stayed.

    Args:
        reading: the messages.
        update: Spark SQL of the condition that a message is an update without ``before``.
    """
    names = "json_object_keys(key)"
    wrapped = f"array_contains({names}, 'schema') AND array_contains({names}, 'payload')"
    names = f"IF({wrapped}, json_object_keys(get_json_object(key, '$.payload')), {names})"
    lacks = " ".join(
        f"WHEN NOT array_contains({names}, {text_literal(name)}) THEN {unlocated(name, 'the key of the message')}"
        for name in reading.roles.key
    )
    return f"IF({update} AND CASE {lacks} ELSE false END, NULL, kind)"


def _changes_in_envelopes(reading: Reading) -> DataFrame:
    """Return the changes in envelopes, as :meth:`Reading.row_versions` takes them."""
    struct = f"STRUCT<{fields_of(reading.columns)}>"
    source, times = (", ".join(f"{name}: STRING" for name in names) for names in (_SOURCE, _TIMES))
    fields = f"op: STRING, before: {struct}, after: {struct}, source: STRUCT<{source}>, {times}"
    cases = [("e.op IN ('c', 'r')", "+I"), ("e.op = 'u'", "+U"), ("e.op = 'd'", "-D"), (_wrapped_null("op"), None)]
    columns = {n: f"e.{n}" for n in _TIMES} | {f"source.{n}": f"e.source.{n}" for n in _SOURCE}
    read = reading.parsed(f"{fields}, payload: STRUCT<{fields}>")
    with pinned(reading.messages.sparkSession):
        event = _event_of_message("m.op", ("op", "before", "after", "source", *_TIMES))
        events = reading.of_rows(read.selectExpr("text", "key", "m", event), "Debezium", cases)
        return events.selectExpr(
            "text",
            f"{_kind(reading, _BARE_UPDATE)} AS kind",
            "e.before AS before",
            "e.after AS after",
            f"{_position(reading.position, columns)} AS at",
        )


def _flat(reading: Reading) -> DataFrame:
    """Return the changes in flat messages, as :meth:`Reading.row_versions` takes them; ``before`` equals ``after``."""
    added = ["__op", "__deleted", *(f"__{n}" for n in _SOURCE), *(f"__source_{n}" for n in _SOURCE)]
    fields = ", ".join([fields_of(reading.columns), *(f"{name}: STRING" for name in added)])
    wrapped = "payload" not in {c.name.lower() for c in reading.columns}
    deleted = text_of("e.__deleted")
    cases: list[tuple[str, str | None]] = [
        (f"{deleted} = 'true' OR e.__op = 'd'", "-D"),
        ("e.__op IN ('c', 'r')", "+I"),
        (f"e.__op = 'u' OR (e.__op IS NULL AND {deleted} = 'false')", "+U"),
        *([(_wrapped_null("__op"), None)] if wrapped else []),
    ]
    columns = {n: f"e.__{n}" for n in _TIMES} | {f"source.{n}": f"e.__source_{n}" for n in _SOURCE}
    columns |= {f"source.{n}": f"coalesce(e.__source_{n}, e.__{n})" for n in _SOURCE if n not in _TIMES}
    read = reading.parsed(f"{fields}, payload: STRUCT<{fields}>" if wrapped else fields)
    with pinned(reading.messages.sparkSession):
        names = [*(c.name for c in reading.columns), *added]
        event = _event_of_message("coalesce(m.__op, m.__deleted)", names) if wrapped else "m AS e"
        events = reading.of_rows(read.selectExpr("text", "key", "m", event), "ExtractNewRecordState", cases)
        found = events.selectExpr(
            "text",
            f"{_kind(reading, _FLAT_UPDATE)} AS kind",
            "e AS after",
            f"{_position(reading.position, columns)} AS at",
        )
        return found.selectExpr("text", "kind", "after AS before", "after", "at")


def _check_own(own: Mapping[str, str], reading: Reading) -> None:
    """Check the columns that have watermarks of their own."""
    types = {column.name: parse_type(column.type) for column in reading.columns}
    for name in own:
        if name not in types or is_placeholder("", types[name], "") is None:
            message = (
                f"unavailable: '{name}' is none of the rows' columns that may hold the placeholder: those of type "
                "STRING, BINARY or MAP<STRING, STRING>, and arrays of texts, bytes or numbers."
            )
            raise TrinityError("INVALID_ARGUMENTS", message)
    if own and reading.position is None:
        raise TrinityError("INVALID_ARGUMENTS", "unavailable needs a position, for the columns' own watermarks.")


def _event_of_message(marker: str, names: Sequence[str]) -> str:
    """Return Spark SQL of the event ``e``: the message, or its ``payload`` if the marker is NULL."""
    bare = ", ".join(f"{text_literal(n)}, m.{quoted(n)}" for n in names)
    return f"IF({marker} IS NULL AND m.payload IS NOT NULL, m.payload, named_struct({bare})) AS e"


def _wrapped_null(marker: str) -> str:
    """Return Spark SQL that is true for a tombstone in a schema envelope, whose ``payload`` is NULL."""
    keys = "coalesce(array_contains(json_object_keys(text), 'payload'), false)"
    return f"e.{marker} IS NULL AND m.payload IS NULL AND {keys}"


def _position(position: str | None, columns: Mapping[str, str]) -> str:
    """Return Spark SQL of the position of a change, which fails for a message without one."""
    if position is None:
        return "CAST(NULL AS BIGINT)"
    if position == "binlog":
        file, *rest = (text_of(columns[f"source.{name}"]) for name in ("file", "pos", "row"))
        found = _binlog_position(file, *rest)
    elif position in _LSN:
        found = _sql_server_lsn(text_of(columns[position]))
    elif position == "source.scn":
        found = decimal_of(text_of(columns[position]), 38, 0)
    else:
        found = integer_of(text_of(columns[position]), "BIGINT")
    return position_or_failing(found, position, _TYPES.get(position, "BIGINT"))


_FILE: Final = r"(.*)\.0*([0-9]{1,18})"
_LSN_PATTERN: Final = "[0-9a-fA-F]{1,8}:[0-9a-fA-F]{1,8}:[0-9a-fA-F]{1,4}"
_MIN_FILE_DIGITS: Final = 6
"""Minimum digits of the number of a MySQL log file; after 999999 comes 1000000."""


def _binlog_position(file: str, pos: str, row: str) -> str:
    """Return Spark SQL of a position in MySQL's log: the file's name, the position in it, the event's row (default 0).

    A file's number of more than six digits gets a letter before it, ``a`` for seven, so that it sorts after all shorter
    ones. Those stay as MySQL writes them.
    """
    pattern = text_literal(whole(_FILE))
    name, number = (f"regexp_extract({file}, {pattern}, {n})" for n in (1, 2))
    digits, usual = f"length({number})", f"lpad({number}, {_MIN_FILE_DIGITS}, '0')"
    longer = f"concat(char({ord('a') - _MIN_FILE_DIGITS - 1} + {digits}), {number})"
    digits_shown = f"IF({digits} > {_MIN_FILE_DIGITS}, {longer}, {usual})"
    numbers = [f"IF({matches(n, '[0-9]{1,20}')}, lpad({n}, 20, '0'), NULL)" for n in (pos, f"coalesce({row}, '0')")]
    return (
        f"IF({matches(file, _FILE)}, concat({name}, '.', {digits_shown}, ':', {numbers[0]}, ':', {numbers[1]}), NULL)"
    )


def _sql_server_lsn(lsn: str) -> str:
    """Return Spark SQL of SQL Server's LSN, ``00000027:00000ac0:0002``: hexadecimal numbers of 8, 8 and 4 digits."""
    parts = (f"lpad(split({lsn}, ':')[{n}], {width}, '0')" for n, width in enumerate((8, 8, 4)))
    whole_lsn = f"lower(concat_ws(':', {', '.join(parts)}))"
    return f"IF({matches(lsn, _LSN_PATTERN)}, {whole_lsn}, NULL)"
