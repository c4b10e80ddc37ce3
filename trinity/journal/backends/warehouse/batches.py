"""Many rows of parameters for a Trinity table: Arrow data, appended in the process by one commit."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from trinity.calls import spark_errors
from trinity.engine.appending.append import check_rows
from trinity.engine.values.defaults import default_text, default_values
from trinity.engine.writing.casts import converts
from trinity.engine.writing.ingest import REFUSAL, raise_refusal
from trinity.errors import TrinityError
from trinity.journal.backends.warehouse.arrays import array_of
from trinity.journal.batches import Batch, error_of, first_failing
from trinity.messages import shown_value
from trinity.spark.types import arrow_frame
from trinity.spi import Column, TransactionId, arrow_type, parse_type, type_text
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from trinity.journal.tables import JournalTable
    from trinity.session import Session
    from trinity.table import Table


@dataclass(frozen=True)
class Rows:
    """Rows of parameters for an INSERT into a Trinity table.

    Attributes:
        batch: the statement.
        table: the table.
        targets: the columns that the statement fills, one for each item of its row of VALUES.
        values: for each row, the values of the parameters.
    """

    batch: Batch
    table: Table
    targets: tuple[Column, ...]
    values: Sequence[Sequence[Any]]

    def stored(self, store: Callable[[pa.Table], int], check: Callable[[pa.Table], None]) -> int | None:
        """Store all rows, or none; ``check`` raises where a row cannot be stored, and stores nothing.

        Returns:
            the number of rows; None if the statement has to be run row by row: a query over all rows yields another
            number of rows, or the statement fails even without rows.

        Raises:
            RowError: a row cannot be stored.
            TrinityError: storing failed for another reason.
        """

        def attempt(count: int) -> None:
            check(self.data(count))

        try:
            data = self.data(len(self.values))
            return store(data) if data.num_rows == len(self.values) else None
        except TrinityError as error:
            if error_of(attempt, 0) is not None:
                return None
            found = first_failing(len(self.values), attempt)
            if found is None:
                raise
            raise found from error

    def data(self, count: int) -> pa.Table:
        """Return the first ``count`` rows, a column per target. Raise TYPE_MISMATCH, NUMERIC_VALUE_OUT_OF_RANGE."""
        parameters = self._parameters(self.values[:count])
        if self._stored_without_spark(parameters):
            return self._in_process(parameters, count)
        return self._by_spark(parameters)

    def _parameters(self, rows: Sequence[Sequence[Any]]) -> list[pa.Array]:
        zone = self.table.session.timezone
        wanted = {
            item.first: parse_type(column.type).to_arrow()
            for item, column in zip(self.batch.items, self.targets, strict=True)
            if item.bare
        }
        # not zip(*rows): ten thousand iterators wake the garbage collector
        return [
            array_of(list(map(itemgetter(n), rows)), n + 1, zone, wanted.get(n))
            for n in range(sum(item.count for item in self.batch.items))
        ]

    def _stored_without_spark(self, parameters: Sequence[pa.Array]) -> bool:
        """Return True when Spark is not needed: ingest stores the parameters as an INSERT would."""
        return all(
            item.default or (item.bare and _stores_same_values(parameters[item.first], column))
            for item, column in zip(self.batch.items, self.targets, strict=True)
        )

    def _in_process(self, parameters: Sequence[pa.Array], count: int) -> pa.Table:
        defaulted = [c for i, c in zip(self.batch.items, self.targets, strict=True) if i.default]
        defaults = default_values(defaulted, lambda: self.table.session.spark)
        arrays = [
            parameters[item.first] if item.bare else _repeated(column, defaults, count)
            for item, column in zip(self.batch.items, self.targets, strict=True)
        ]
        return pa.Table.from_arrays(arrays, names=[c.name for c in self.targets])

    def _by_spark(self, parameters: Sequence[pa.Array]) -> pa.Table:
        """Let Spark evaluate the expressions, and round numbers and times for their columns (M6)."""
        from trinity.engine.values.spark.assignment import inserted_rows
        from trinity.sql.queries.query import run_query
        from trinity.syntax.parse import parse

        session = self.table.session
        names = [f"_trinity_parameter_{n}" for n in range(1, len(parameters) + 1)]
        items = [
            default_text(column, lambda: session.spark) if item.default else item.filled(names)
            for item, column in zip(self.batch.items, self.targets, strict=True)
        ]
        with _rows_view(session, pa.Table.from_arrays(list(parameters), names=names)) as view, spark_errors():
            rows = run_query(session, parse(f"SELECT {', '.join(items)} FROM {view}"))
            if len(rows.columns) != len(self.targets):
                raise TrinityError("INVALID_ARGUMENTS", "A value of the row yields several columns.")
            rows = rows.toDF(*[c.name for c in self.targets])
            data = inserted_rows(rows, self.targets, str(self.table.name)).toArrow()
        if REFUSAL in data.column_names:
            raise_refusal(data.column(REFUSAL).combine_chunks())
            data = data.drop_columns([REFUSAL])
        return data


def append_rows(
    table: Table, batch: Batch, values: Sequence[Sequence[Any]], txn: TransactionId | None = None
) -> int | None:
    """Append rows to a table in one commit, unless its ``txn`` is recorded; see :meth:`Rows.stored`."""
    definition = table.definition

    def store(data: pa.Table) -> int:
        return (table.upsert(data, txn=txn) if definition.keyed else table.append(data, txn=txn)).rows

    rows = _rows(table, definition.visible, batch, values)
    return rows.stored(store, lambda data: check_rows(table, data)) if rows is not None else None


def _rows(table: Table, visible: Sequence[Column], batch: Batch, values: Sequence[Sequence[Any]]) -> Rows | None:
    """Return the rows with the columns that they fill; None if the statement has wrong columns, or too many or few."""
    known = {c.name.lower(): c for c in visible}
    targets = [known.get(c.name.lower()) for c in batch.columns] or list(visible)
    found = tuple(c for c in targets if c is not None)
    fits = len(found) == len(targets) == len(batch.items) == len(set(found))
    return Rows(batch, table, found, values) if fits else None


@contextmanager
def _rows_view(session: Session, data: pa.Table) -> Iterator[str]:
    """Register a temporary view of Arrow data within the context, and yield its name."""
    view = f"_trinity_rows_{uuid.uuid4().hex}"
    arrow_frame(session.spark, data).createOrReplaceTempView(view)
    try:
        yield view
    finally:
        session.spark.catalog.dropTempView(view)


def _repeated(column: Column, defaults: Mapping[str, Any], count: int) -> pa.Array:
    return pa.repeat(pa.scalar(defaults.get(column.name), parse_type(column.type).to_arrow()), count)


def _stores_same_values(array: pa.Array, column: Column) -> bool:
    """Return whether ingest stores the same values as INSERT, and refuses none that INSERT would round."""
    if pa.types.is_null(array.type):
        return True
    source, target = parse_type(type_text(array.type)), parse_type(column.type)
    if not converts(source, target) or (source.is_timestamp and target.is_timestamp):
        return True
    if pa.types.is_integer(array.type):
        digits = {"float": 24, "double": 53}.get(target.name)
        return digits is None or _fits_bound(array, 2**digits)
    if pa.types.is_floating(array.type):
        return target.is_floating
    if pa.types.is_decimal(array.type):
        return target.name == "decimal" and source.arguments[1] <= target.arguments[1]
    return False


def _fits_bound(array: pa.Array, bound: int) -> bool:
    ends = pc.min_max(array)
    least, most = ends["min"].as_py(), ends["max"].as_py()
    return least is None or (-bound <= least and most <= bound)


# -- journalled tables ----------------------------------------------------------------------------------


def insert_journalled(
    journal: Table,
    table: JournalTable,
    batch: Batch,
    values: Sequence[Sequence[Any]],
    execute: Callable[[str], int],
) -> int | None:
    """Insert rows into a journalled table by one MERGE of its journal; see :meth:`Rows.stored`."""
    names = [c.name for c in table.visible]
    visible = [c for c in journal.definition.visible if c.name.lower() in names]
    rows = _rows(journal, visible, batch, values)
    if rows is None:
        return None
    listed = ", ".join(quoted(c.name) for c in rows.targets)

    def store(data: pa.Table) -> int:
        with _rows_view(journal.session, data) as view:
            return execute(f"INSERT INTO {batch.target} ({listed}) SELECT {listed} FROM {view}")

    def check(data: pa.Table) -> None:
        check_rows(journal, _with_version(data, table))
        for key in (table.key, *table.unique_keys):
            columns = [name for name in data.column_names if name.lower() in key]
            if len(columns) == len(key):
                _check_key(journal, data.select(columns), table)

    return rows.stored(store, check)


def _with_version(data: pa.Table, table: JournalTable) -> pa.Table:
    """Add a version column to the rows, so that they can be checked as rows of the journal."""
    first = pa.scalar(0, pa.int64()).cast(arrow_type(table.version_column.type))
    return data.append_column(table.version, pa.repeat(first, data.num_rows))


def _check_key(journal: Table, keys: pa.Table, table: JournalTable) -> None:
    """Raise CONSTRAINT_VIOLATION for a key that is live, or that two rows have; NULLs are never equal."""
    seen: set[tuple[Any, ...]] = set()
    for values in zip(*(column.to_pylist() for column in keys.columns), strict=True):
        if values in seen and None not in values:
            raise _key_is_live(keys.column_names, values, table)
        seen.add(values)
    if not seen:
        return
    new, live = arrow_frame(journal.session.spark, keys), journal.to_df()
    with spark_errors():
        same = [new[quoted(c)] == live[quoted(c)] for c in keys.column_names]
        for row in new.join(live, same, "left_semi").limit(1).collect():
            raise _key_is_live(keys.column_names, tuple(row), table)


def _key_is_live(names: Sequence[str], values: Sequence[Any], table: JournalTable) -> TrinityError:
    shown = ", ".join(shown_value(v) for v in values)
    return TrinityError(
        "CONSTRAINT_VIOLATION",
        f"{table} has a live row with ({', '.join(names)}) = ({shown}) already, or the rows bring it twice.",
    )
