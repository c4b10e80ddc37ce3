"""The rows of each step of a query: streams of Arrow pages, and queries of DuckDB over such streams.

DuckDB joins, groups, sorts and drops duplicates, all by bare columns. Expressions are computed before, over Arrow
pages, so that no value depends on how DuckDB evaluates it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Final, TypeVar

import pyarrow as pa

from trinity.conversions import duckdb_module
from trinity.engine.expressions import VOID, Compiled, ScopeColumn, widened
from trinity.errors import TrinityError
from trinity.hidden import HIDDEN_PREFIX
from trinity.spi import DataType

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_ROWS_AT_ONCE: Final = 100_000
_names: Final = count()
_T = TypeVar("_T")


def new_field() -> str:
    """Return a name for a column in pages and queries, which no table has."""
    return f"{HIDDEN_PREFIX}_q{next(_names)}"


@dataclass(frozen=True)
class _Rows:
    """Rows with columns. The ``field`` of a column is its name in pages and queries."""

    columns: tuple[ScopeColumn, ...]

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the pages: the fields of the columns, with the types that tables store."""
        return _schema(self.columns)


@dataclass(frozen=True)
class Pages(_Rows):
    """Rows that this process computes. Each call of ``open`` returns all pages, from the first on."""

    open: Callable[[], Iterator[pa.RecordBatch]]

    def pages(self) -> Pages:
        """Return these rows."""
        return self

    def query(self) -> Query:
        """Return these rows as a query of DuckDB."""
        name = f"rows_{next(_names)}"
        return Query(self.columns, f"SELECT * FROM {name}", {name: self})


@dataclass(frozen=True)
class Query(_Rows):
    """Rows that DuckDB computes.

    Attributes:
        text: the query.
        inputs: name in the query -> the rows that it stands for.
    """

    text: str
    inputs: Mapping[str, Pages]

    def query(self) -> Query:
        """Return this query."""
        return self

    def over(self, text: str, columns: Sequence[ScopeColumn], *others: Query) -> Query:
        """Return a query over this one, which ``text`` names ``{0}``, and over others, ``{1}`` and so on."""
        parts = [f"({query.text}) AS q{number}" for number, query in enumerate((self, *others))]
        inputs = {name: rows for query in (self, *others) for name, rows in query.inputs.items()}
        return Query(tuple(columns), text.format(*parts), inputs)

    def pages(self) -> Pages:
        """Return the rows as pages; DuckDB computes them as they are taken."""
        return Pages(self.columns, self._open)

    def _open(self) -> Iterator[pa.RecordBatch]:
        duckdb = duckdb_module()
        schema, failed = self.schema, list[Exception]()
        config = {"threads": pa.cpu_count()}
        with duckdb.connect(config=config) as connection, ThreadPoolExecutor(1) as thread:
            connection.execute("SET enable_progress_bar = false")
            for name, rows in self.inputs.items():
                reader = pa.RecordBatchReader.from_batches(rows.schema, _keep_error(rows.open(), failed))
                connection.register(name, reader)

            def started() -> pa.RecordBatchReader:
                done = connection.sql(self.text)
                read = getattr(done, "to_arrow_reader", None) or done.fetch_arrow_reader  # its name before DuckDB 1.5
                return read(_ROWS_AT_ONCE)

            try:
                reader = _interruptible(connection, thread.submit(started))
                while (page := _interruptible(connection, thread.submit(next, reader, None))) is not None:
                    arrays = [_cast(array, field.type) for array, field in zip(page.columns, schema, strict=True)]
                    yield pa.RecordBatch.from_arrays(arrays, schema=schema)
            except (duckdb.Error, pa.ArrowException) as error:
                raise (failed[0] if failed else _translated(error)) from error


def _schema(columns: Sequence[ScopeColumn]) -> pa.Schema:
    return pa.schema([(c.field, pa.null() if c.type == VOID else c.type.to_arrow()) for c in columns])


def _cast(found: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cast a column that DuckDB returns to the type of a table. DuckDB gives a type to NULLs that have none here."""
    return pa.nulls(len(found)) if pa.types.is_null(kind) else found.cast(kind)


def _interruptible(connection: DuckDBPyConnection, work: Future[_T]) -> _T:
    """Wait for work of DuckDB in another thread, so that Ctrl-C is noticed, and then interrupts DuckDB."""
    try:
        return work.result()
    except BaseException:
        connection.interrupt()
        raise


def _keep_error(pages: Iterator[pa.RecordBatch], failed: list[Exception]) -> Iterator[pa.RecordBatch]:
    """Yield pages; keep an error, since DuckDB would pass on only its text."""
    try:
        yield from pages
    except Exception as error:
        failed.append(error)
        raise


def _translated(error: Exception) -> TrinityError:
    what = type(error).__name__
    if what in ("ConversionException", "OutOfRangeException"):
        return TrinityError("NUMERIC_VALUE_OUT_OF_RANGE", f"A sum is beyond the type of its column: {error}")
    if what == "OutOfMemoryException":
        return TrinityError("CONFIGURATION_INVALID", f"The query does not fit into memory and spill folder: {error}")
    return TrinityError("GENERIC_INTERNAL_ERROR", f"DuckDB refuses the query: {error}")


Relation = Pages | Query


def projected(
    relation: Relation, values: Sequence[tuple[ScopeColumn, Compiled]], condition: Compiled | None = None
) -> Relation:
    """Return the values of expressions, at least one, for the rows that meet a condition, under the given columns."""
    columns = tuple(column for column, _ in values)
    if condition is None and isinstance(relation, Query) and all(value.column for _, value in values):
        listed = ", ".join(f"{_only(value.fields)} AS {column.field}" for column, value in values)
        return relation.over(f"SELECT {listed} FROM {{0}}", columns)
    pages, schema = relation.pages(), _schema(columns)

    def computed() -> Iterator[pa.RecordBatch]:
        for page in pages.open():
            shown = page if condition is None else page.filter(condition.evaluate(page))
            yield pa.RecordBatch.from_arrays([value.evaluate(shown) for _, value in values], schema=schema)

    return Pages(columns, computed)


def filtered(relation: Relation, condition: Compiled) -> Pages:
    """Return the rows for which a condition is true."""
    pages = relation.pages()
    return replace(pages, open=lambda: (page.filter(condition.evaluate(page)) for page in pages.open()))


def with_values(relation: Relation, values: Sequence[Compiled]) -> tuple[Relation, list[str]]:
    """Return the rows with added columns for the values of expressions, and the names of these columns."""
    fields = [_only(value.fields) if value.column else new_field() for value in values]
    further = [(field, value) for field, value in zip(fields, values, strict=True) if not value.column]
    if not further:
        return relation, fields
    pages = relation.pages()
    columns = (*pages.columns, *(ScopeColumn("", field, value.type) for field, value in further))
    schema = _schema(columns)

    def computed() -> Iterator[pa.RecordBatch]:
        for page in pages.open():
            found = [value.evaluate(page) for _, value in further]
            yield pa.RecordBatch.from_arrays([*page.columns, *found], schema=schema)

    return Pages(columns, computed), fields


def cast_to(relation: Relation, kinds: Sequence[DataType], timezone: Callable[[], str]) -> Relation:
    """Return the rows with each column cast to the type to which Spark widens it."""
    if [column.type for column in relation.columns] == list(kinds):
        return relation
    columns = [replace(c, field=new_field(), type=kind) for c, kind in zip(relation.columns, kinds, strict=True)]
    values = [widened(_value(c), kind, timezone) for c, kind in zip(relation.columns, kinds, strict=True)]
    return projected(relation, list(zip(columns, values, strict=True)))


def _value(column: ScopeColumn) -> Compiled:
    """Return a column of rows as an expression over them."""
    return Compiled(column.type, lambda rows: rows.column(column.field), frozenset({column.field}), column=True)


def _only(fields: frozenset[str]) -> str:
    (field,) = fields
    return field


def limited(relation: Relation, limit: int, offset: int = 0) -> Relation:
    """Return a slice of the rows, in their order if they have one. Read a stream only as far as needed."""
    if isinstance(relation, Query):
        return relation.over(f"SELECT * FROM {{0}} LIMIT {limit} OFFSET {offset}", relation.columns)

    def cut() -> Iterator[pa.RecordBatch]:
        skipped, left = offset, limit
        for page in relation.open():
            shown = page.slice(min(skipped, len(page)))
            skipped -= len(page) - len(shown)
            shown = shown.slice(0, left)
            left -= len(shown)
            yield shown
            if not left:
                return

    return replace(relation, open=cut)


def union_all(first: Relation, second: Relation) -> Relation:
    """Return the rows of both, under the columns of the first."""
    one, other = first.pages(), second.pages()

    def both() -> Iterator[pa.RecordBatch]:
        yield from one.open()
        for page in other.open():
            yield pa.RecordBatch.from_arrays(page.columns, schema=one.schema)

    return replace(one, open=both)
