"""The merged read as plain SQL over the files of a version, for engines that know nothing of Trinity.

The query is the fold of :mod:`trinity.merge`, applied to the text of a query instead of a DataFrame; only how a
dialect names files and positions of rows is written here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import indent
from typing import Any, Final

import pyarrow as pa

from trinity.engine.reading.files import tiers
from trinity.engine.reading.spark import fold_by_column as by_column
from trinity.engine.reading.spark.fold import without_null_keys
from trinity.engine.reading.spark.row_arrival import POSITION_BITS, with_order_restored
from trinity.engine.reading.spark.selection import to_user_columns
from trinity.engine.reading.spark.view_dialects import translated
from trinity.errors import TrinityError, nearest
from trinity.hidden import ARRIVAL, DELETED, FILE
from trinity.merge.spec import MergeSpec, merge_spec
from trinity.merge.sql.fold import is_deleted, winners
from trinity.merge.sql.rows import SqlRows
from trinity.spark.types import spark_type
from trinity.spi import DataFile, SplitSource, arrival_order, type_text
from trinity.storage import Location, PositionDeletes
from trinity.storage.errors import system_trouble
from trinity.storage.file_schema import FIELD_ID, columns_in, has_fields_of
from trinity.storage.parquet_files import parquet_schema
from trinity.syntax.quoting import quoted, text_literal

_MOST_ROWS: Final = 1_000_000
"""Most deleted rows that a view lists itself, where the format keeps them in files that no dialect reads."""
_PATTERN: Final = re.compile(r"([\[*?])")
"""Characters that DuckDB expands in a path, and reads as themselves within brackets."""


def merge_view_sql(splits: SplitSource, dialect: str) -> str:
    """Return one SELECT that yields what :func:`~trinity.engine.reading.spark.merged_read.merged_read` yields.

    Dialects are ``duckdb`` and ``spark``.

    Raises:
        TrinityError: NOT_SUPPORTED for another dialect, for a function that the dialect lacks, or for files that the
            format's own reader has to read; BAD_DATA naming a file that is missing or corrupt.
    """
    read = _READS.get(dialect.lower())
    if read is None:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"There is no merge view for dialect '{dialect}'.{nearest(dialect, list(_READS))} "
            f"There is one for: {', '.join(_READS)}.",
        )
    _refuse_unreadable(splits)
    scans = _Scans(foreign=splits.native is not None)
    rows = _live(scans, splits, dialect.lower()) if _merges(splits) else scans.rows(splits.files, splits.storage)
    query = to_user_columns(rows, splits).text
    if dialect.lower() != "spark":
        query = translated(query, dialect.lower())
    named = [f"{group.name} AS (\n{indent(read(group), '  ')}\n)" for group in scans.groups]
    return f"WITH {', '.join(named)}\n{query}" if named else query


def _refuse_unreadable(splits: SplitSource) -> None:
    if splits.native is not None and not splits.native.as_written:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"There is no merge view of '{splits.definition.full_name}': it has deletes or column names that only the "
            "format's own reader honours. After compact() there may be one; or read it with Trinity.",
        )
    count = sum(f.deletes.rows for f in splits.files if f.deletes and not isinstance(f.deletes, PositionDeletes))
    if count > _MOST_ROWS:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"There is no merge view of '{splits.definition.full_name}': it would have to name {count:,} deleted rows, "
            f"and names {_MOST_ROWS:,} at most. After compact(full=True) there is one; or use the format's own reader.",
        )


def _merges(splits: SplitSource) -> bool:
    """Return True when row versions must be merged; without a log the rows of the files are those of the table."""
    return splits.definition.keyed and bool(tiers(splits.files)[1])


def _live(scans: _Scans, splits: SplitSource, dialect: str) -> SqlRows:
    spec = merge_spec(splits.definition)
    if spec.by_column:
        rows = _versions_by_column(scans, splits, spec, dialect)
        return by_column.folded(rows, splits, spec).where(f"NOT {DELETED}")
    rows = scans.ordered([*splits.sidecar, *splits.files], splits, spec)
    newest = winners(spec, without_null_keys(rows, splits, spec))
    return newest.where(f"NOT {is_deleted(spec, newest)}")


def _versions_by_column(scans: _Scans, splits: SplitSource, spec: MergeSpec, dialect: str) -> SqlRows:
    _refuse_unsupported(splits, spec, dialect)
    rows = without_null_keys(scans.ordered(tiers(splits.files)[1], splits, spec), splits, spec)
    rows = by_column.with_carried(rows, splits)
    if splits.sidecar:  # it has several rows of a key, and so stores their arrival
        sidecar_columns = splits.storage.append(pa.field(ARRIVAL, pa.int64()))
        rows = rows.unionByName(scans.rows(splits.sidecar, sidecar_columns))
    base = by_column.needed_base(splits, spec)
    return by_column.with_base(rows, scans.rows(base, splits.storage) if base else None, splits, spec)


def _refuse_unsupported(splits: SplitSource, spec: MergeSpec, dialect: str) -> None:
    unsupported = by_column.unsupported(splits, spec, dialect)
    if not unsupported:
        return
    columns = ", ".join(f"column '{column}' folds by {function}" for column, function in unsupported.items())
    others = [d for d in _READS if not by_column.unsupported(splits, spec, d)]
    elsewhere = f"There is one for: {', '.join(others)}. " if others else ""
    raise TrinityError(
        "NOT_SUPPORTED",
        f"There is no merge view of '{splits.definition.full_name}' for dialect '{dialect}': {columns}, which cannot "
        f"be said there. {elsewhere}"
        "After compact(full=True), until the next write, there is one for every dialect.",
    )


# -- files ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _FileGroup:
    """Files with the same columns, read under the name of a common table expression.

    Attributes:
        columns: Spark SQL over the files for each column of the storage schema.
        legacy: columns of instants that are stored as INT96, a type that does not tell instants from local times.
        placed: True when the rows have commit and arrival.
        files: the files, each with the arrival of its first row.
    """

    name: str
    columns: Sequence[str]
    legacy: Sequence[str]
    placed: bool
    files: list[tuple[DataFile, int]]


class _Scans:
    """The files that a view reads. ``foreign`` files, of another engine, are given in arrival order.

    They lack their partition values, which the view adds as constants.
    """

    def __init__(self, *, foreign: bool) -> None:
        self.groups: list[_FileGroup] = []
        self._foreign = foreign

    def rows(self, files: Sequence[DataFile], storage: pa.Schema, *, placed: bool = False) -> SqlRows:
        """Return the rows of some files in storage form; placed ones have :data:`~trinity.hidden.ARRIVAL`.

        Base and sidecar come before the log. Their own order does not matter, since no key is in two of their files.
        """
        groups = self._by_column_names(files, storage, placed)
        dtypes = [(field.name, _kind(field)) for field in storage]
        further = [ARRIVAL] if placed else []
        parts = [f"SELECT {', '.join([*group.columns, *further])}\nFROM {group.name}" for group in groups]
        if not parts:
            parts = [f"SELECT {', '.join(_constant(field, None) for field in storage)} WHERE false"]
        return SqlRows("\nUNION ALL\n".join(parts), [*dtypes, *((name, "bigint") for name in further)])

    def ordered(self, files: Sequence[DataFile], splits: SplitSource, spec: MergeSpec) -> SqlRows:
        """Return the row versions of some files, in storage form with :data:`~trinity.hidden.ARRIVAL`."""
        return with_order_restored(self.rows(files, splits.storage, placed=True), self._in_order(files), splits, spec)

    def _in_order(self, files: Sequence[DataFile]) -> Sequence[DataFile]:
        return files if self._foreign else sorted(files, key=arrival_order)

    def _by_column_names(self, files: Sequence[DataFile], storage: pa.Schema, placed: bool) -> list[_FileGroup]:
        """Group files by the names and types of their columns, which ALTER TABLE may have changed in between."""
        found: dict[tuple[tuple[str, ...], ...], _FileGroup] = {}
        for index, file in enumerate(self._in_order(files)):
            schema = _schema(file)
            columns, legacy = _columns(schema, storage, file.partition if self._foreign else None)
            alike = columns, legacy, tuple(f"{f.name} {f.type}" for f in schema)
            name = f"files_{len(self.groups) + len(found)}"
            group = found.setdefault(alike, _FileGroup(name, columns, legacy, placed, []))
            group.files.append((file, index << POSITION_BITS))
        self.groups += found.values()
        return list(found.values())


def _schema(file: DataFile) -> pa.Schema:
    try:
        return parquet_schema(file.path)
    except (OSError, MemoryError, pa.ArrowInvalid) as error:
        if (trouble := system_trouble(error, file.path)) is not None:
            raise trouble from error
        what = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read ({error})"
        raise TrinityError(
            "BAD_DATA", f"Data file '{file.path}' {what}; restore it from a copy, or read an older version."
        ) from error


def _columns(
    file: pa.Schema, storage: pa.Schema, values: Mapping[str, Any] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return Spark SQL for each stored column: the file's own, cast where ALTER TABLE changed the type since, or NULL.

    Also return which of the file's columns are legacy (see :class:`_FileGroup`). For a file of another engine
    ``values`` holds constants that replace what the file stores.
    """
    names = columns_in(file, storage)
    if values is not None and not any(FIELD_ID in (f.metadata or {}) for f in file):
        alike = {name.lower(): name for name in file.names}  # in any case, as in Spark
        names = [alike.get(field.name.lower()) for field in storage]
    columns, legacy, known = [], [], values or {}
    for field, name in zip(storage, names, strict=True):
        if name is None or field.name in known:
            columns.append(_constant(field, known.get(field.name)))
            continue
        if not has_fields_of(file.field(name), field):
            raise TrinityError(
                "NOT_SUPPORTED",
                f"There is no merge view: within column '{field.name}' fields were added, renamed, moved or dropped "
                "since some of its files were written. After compact(full=True) there may be one; or read it with "
                "Trinity.",
            )
        kind, value = file.field(name).type, quoted(name)
        if kind == pa.timestamp("ns") and pa.types.is_timestamp(field.type) and field.type.tz:
            legacy.append(name)
        elif kind != field.type:
            value = f"CAST({value} AS {_kind(field)})"
        columns.append(f"{value} AS {quoted(field.name)}")
    return tuple(columns), tuple(legacy)


def _kind(field: pa.Field) -> str:
    return spark_type(type_text(field.type))


def _constant(field: pa.Field, value: Any) -> str:
    text = "NULL" if value is None else text_literal(str(value))
    if isinstance(value, bytes):
        text = f"X'{value.hex()}'"
    return f"CAST({text} AS {_kind(field)}) AS {quoted(field.name)}"


# -- dialects ---------------------------------------------------------------------------------------------


def _in_duckdb(group: _FileGroup) -> str:
    files = ",\n  ".join(_text(_PATTERN.sub(r"[\1]", file.path)) for file, _ in group.files)
    instants = ", ".join(f"timezone('UTC', {_name(name)}) AS {_name(name)}" for name in group.legacy)
    columns = f"* REPLACE ({instants})" if instants else "*"
    left_out = _anti_join_in_duckdb(group)
    if not group.placed and not left_out:
        return f"SELECT {columns}\nFROM read_parquet([\n  {files}\n], hive_partitioning = false)"
    shown = join = ""
    if group.placed:
        listed = ",\n  ".join(f"({_text(file.path)}, {file.commit}, {first})" for file, first in group.files)
        shown = f", p.commit_version, p.first_row + f.file_row_number AS {ARRIVAL}"
        join = f"\nJOIN (VALUES\n  {listed}\n) AS p (file, commit_version, first_row) ON f.{FILE} = p.file"
    return f"""SELECT f.{columns}{shown}
FROM read_parquet([
  {files}
], filename = '{FILE}', file_row_number = true, hive_partitioning = false) AS f{join}{left_out}"""


def _anti_join_in_duckdb(group: _FileGroup) -> str:
    """Return the join that leaves out rows deleted by position; empty without any."""
    found = [
        (path, deletes.of, file.path)
        for file, _ in group.files
        if isinstance(deletes := file.deletes, PositionDeletes)
        for path in deletes.files
    ]
    parts = [
        f"SELECT {_text(file.path)} AS file, unnest(CAST('[{positions}]' AS BIGINT[])) AS pos"
        for file, _ in group.files
        if (positions := _positions(file))
    ]
    if found:
        files = ",\n  ".join(_text(_PATTERN.sub(r"[\1]", path)) for path in dict.fromkeys(path for path, _, _ in found))
        lines = ",\n  ".join(
            f"({_text(path)}, {'NULL' if of is None else _text(of)}, {_text(at)})" for path, of, at in found
        )
        parts.append(f"""SELECT m.file, d.pos
  FROM read_parquet([
  {files}
], filename = '{FILE}', hive_partitioning = false) AS d
  JOIN (VALUES
  {lines}
) AS m (deletes, named, file) ON d.{FILE} = m.deletes AND (m.named IS NULL OR d.file_path = m.named)""")
    if not parts:
        return ""
    gone = "\n  UNION ALL\n  ".join(parts)
    return f"\nANTI JOIN (\n  {gone}\n) AS g ON g.file = f.{FILE} AND g.pos = f.file_row_number"


def _positions(file: DataFile) -> str:
    """Return a file's deleted positions, joined by commas, if the view has to list them; else an empty text."""
    if file.deletes is None or isinstance(file.deletes, PositionDeletes):
        return ""
    return ",".join(map(str, file.deletes.positions().to_pylist()))


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _in_spark(group: _FileGroup) -> str:
    scans = []
    for file, first in group.files:
        position = (
            f", {file.commit} AS commit_version, {first}L + _metadata.row_index AS {ARRIVAL}" if group.placed else ""
        )
        rows = f"parquet.{quoted(Location.of(file.path).for_sql)}"
        if gone := _deleted_positions_in_spark(file):
            rows = f"{rows} LEFT ANTI JOIN ({gone}) AS _trinity_gone ON pos = _metadata.row_index"
        scans.append(f"SELECT *{position} FROM {rows}")
    return "\nUNION ALL\n".join(scans)


def _deleted_positions_in_spark(file: DataFile) -> str:
    """Return a query for the positions, ``pos``, of a file's deleted rows; an empty text without any."""
    if not isinstance(deletes := file.deletes, PositionDeletes):
        positions = _positions(file)
        return f"SELECT CAST(col AS BIGINT) AS pos FROM explode(split('{positions}', ','))" if positions else ""
    return " UNION ALL ".join(
        f"SELECT pos FROM parquet.{quoted(Location.of(path).for_sql)}"
        + ("" if deletes.of is None else f" WHERE file_path = {text_literal(deletes.of)}")
        for path in deletes.files
    )


_READS: Final[Mapping[str, Callable[[_FileGroup], str]]] = {"duckdb": _in_duckdb, "spark": _in_spark}
"""Dialect -> the SELECT of a group: the columns of its files; if the rows are placed, commit and arrival too."""
