"""The merged read as plain SQL over the files of a version, for engines that know nothing of Trinity (design §3).

The query is the fold of :mod:`trinity.merge`, applied to the text of a query instead of a DataFrame; only how a
dialect names files and places of rows is written here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import indent
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import sqlglot

from trinity.engine.read import logical
from trinity.engine.scan import POSITION_BITS, tiers
from trinity.engine.sparktypes import spark_type
from trinity.errors import TrinityError, nearest
from trinity.merge.fold import ARRIVAL, is_deleted, winners
from trinity.merge.literal import quoted
from trinity.merge.spec import MergeSpec
from trinity.spi import DataFile, SplitSource, arrival_order, type_text
from trinity.storage import columns_in

__all__ = ["SqlRows", "merge_view_sql"]

_FILE: Final = "_trinity_file"


@dataclass(frozen=True)
class SqlRows:
    """Rows as the text of a Spark query (:class:`~trinity.merge.rows.Rows`).

    Attributes:
        text: the query.
        dtypes: (name, Spark's text of the type) of the columns that the table has.
    """

    text: str
    dtypes: list[tuple[str, str]]

    def where(self, condition: str, /) -> SqlRows:
        return replace(self, text=f"{self.selectExpr('*').text}\nWHERE {condition}")

    def selectExpr(self, *expr: str) -> SqlRows:  # noqa: N802 - Spark's name
        return replace(self, text=f"SELECT {', '.join(expr)}\nFROM (\n{indent(self.text, '  ')}\n)")

    def drop(self, *cols: str) -> SqlRows:
        return self.selectExpr(f"* EXCEPT ({', '.join(map(quoted, cols))})")


def merge_view_sql(splits: SplitSource, dialect: str) -> str:
    """One SELECT that yields what :func:`~trinity.engine.read.merged_read` yields.

    Args:
        splits: the version.
        dialect: ``duckdb`` or ``spark``.

    Raises:
        TrinityError: NOT_SUPPORTED for another dialect, for row versions that fold column by column, or for files that
            the format's own reader has to read; BAD_DATA naming a file that is missing or corrupt.
    """
    read = _READS.get(dialect.lower())
    if read is None:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"There is no merge view for dialect '{dialect}'.{nearest(dialect, list(_READS))} "
            f"There is one for: {', '.join(_READS)}.",
        )
    if splits.native is not None:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"There is no merge view of '{splits.definition.full_name}': it has deletes or column names that only the "
            "format's own reader honours.",
        )
    spec = MergeSpec.of(splits.definition) if _merges(splits) else None
    sources = _sources([*(splits.sidecar if spec else ()), *splits.files], splits.storage)
    rows = _live(_union(sources, splits.storage, [ARRIVAL]), spec) if spec else _union(sources, splits.storage, [])
    query = logical(rows, splits).text
    if dialect.lower() != "spark":
        query = sqlglot.transpile(query, read="spark", write=dialect.lower(), pretty=True)[0]
    named = [f"{source.name} AS (\n{indent(read(source, bool(spec)), '  ')}\n)" for source in sources]
    return f"WITH {', '.join(named)}\n{query}" if named else query


def _merges(splits: SplitSource) -> bool:
    """False where the rows of the files are the rows of the table: there is no log."""
    return splits.definition.keyed and bool(tiers(splits.files)[1])


def _live(rows: SqlRows, spec: MergeSpec) -> SqlRows:
    if spec.by_column:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"There is no merge view of row versions that fold column by column (merge-engine={spec.engine.value}); "
            "after compact(full=True) there is one.",
        )
    newest = winners(rows, spec)
    return newest.where(f"NOT {is_deleted(spec, newest)}")


# -- files ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Source:
    """Files with the same columns, read under one name.

    Attributes:
        name: of the common table expression.
        columns: Spark SQL over the files for each column of the storage schema.
        legacy: columns that are instants, and stored as INT96, which does not say so.
        files: the files, each with the arrival of its first row.
    """

    name: str
    columns: Sequence[str]
    legacy: Sequence[str]
    files: list[tuple[DataFile, int]]


def _sources(files: Sequence[DataFile], storage: pa.Schema) -> list[_Source]:
    """The files by what they call their columns, which ALTER TABLE may have changed between two of them.

    Base and sidecar come before the log; among themselves their order does not matter, no key being in two of them.
    """
    found: dict[tuple[tuple[str, ...], ...], _Source] = {}
    for place, file in enumerate(sorted(files, key=arrival_order)):
        schema = _schema(file)
        columns, legacy = _columns(schema, storage)
        alike = columns, legacy, tuple(f"{f.name} {f.type}" for f in schema)
        source = found.setdefault(alike, _Source(f"files_{len(found)}", columns, legacy, []))
        source.files.append((file, place << POSITION_BITS))
    return list(found.values())


def _schema(file: DataFile) -> pa.Schema:
    try:
        return pq.read_schema(file.path)
    except (OSError, pa.ArrowInvalid) as error:
        what = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read ({error})"
        raise TrinityError(
            "BAD_DATA", f"Data file '{file.path}' {what}; restore it from a copy, or read an older version."
        ) from error


def _columns(file: pa.Schema, storage: pa.Schema) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Spark SQL for each stored column: the file's own, cast where ALTER TABLE changed the type since, or NULL.

    With it the names of those in the file that are legacy (see :class:`_Source`).
    """
    columns, legacy = [], []
    for field, name in zip(storage, columns_in(file, storage), strict=True):
        kind = None if name is None else file.field(name).type
        value = "NULL" if name is None else quoted(name)
        if name is not None and kind == pa.timestamp("ns") and pa.types.is_timestamp(field.type) and field.type.tz:
            legacy.append(name)
        elif kind != field.type:
            value = f"CAST({value} AS {_kind(field)})"
        columns.append(f"{value} AS {quoted(field.name)}")
    return tuple(columns), tuple(legacy)


def _kind(field: pa.Field) -> str:
    return spark_type(type_text(field.type))


def _union(sources: Sequence[_Source], storage: pa.Schema, further: list[str]) -> SqlRows:
    dtypes = [(field.name, _kind(field)) for field in storage]
    parts = [f"SELECT {', '.join([*source.columns, *further])}\nFROM {source.name}" for source in sources]
    if not parts:
        nothing = ", ".join(f"CAST(NULL AS {kind}) AS {quoted(name)}" for name, kind in dtypes)
        parts = [f"SELECT {nothing} WHERE false"]
    return SqlRows("\nUNION ALL\n".join(parts), dtypes)


# -- dialects ---------------------------------------------------------------------------------------------


def _in_duckdb(source: _Source, placed: bool) -> str:
    files = ",\n  ".join(_text(file.path) for file, _ in source.files)
    instants = ", ".join(f"timezone('UTC', {_name(name)}) AS {_name(name)}" for name in source.legacy)
    columns = f"* REPLACE ({instants})" if instants else "*"
    if not placed:
        return f"SELECT {columns}\nFROM read_parquet([\n  {files}\n], hive_partitioning = false)"
    places = ",\n  ".join(f"({_text(file.path)}, {file.commit}, {first})" for file, first in source.files)
    return f"""SELECT f.{columns}, p.commit_version, p.first_row + f.file_row_number AS {ARRIVAL}
FROM read_parquet([
  {files}
], filename = '{_FILE}', file_row_number = true, hive_partitioning = false) AS f
JOIN (VALUES
  {places}
) AS p (file, commit_version, first_row) ON f.{_FILE} = p.file"""


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _in_spark(source: _Source, placed: bool) -> str:
    scans = []
    for file, first in source.files:
        place = f", {file.commit} AS commit_version, {first}L + _metadata.row_index AS {ARRIVAL}" if placed else ""
        scans.append(f"SELECT *{place} FROM parquet.{quoted(file.path)}")
    return "\nUNION ALL\n".join(scans)


_READS: Final[Mapping[str, Callable[[_Source, bool], str]]] = {"duckdb": _in_duckdb, "spark": _in_spark}
"""Dialect -> the SELECT of a source: the columns of its files; if rows are to be placed, commit and arrival too."""
