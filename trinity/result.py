"""The rows that a statement or a table returns: one interface, whether this process or Spark computes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa

from trinity.calls import public
from trinity.conversions import as_duckdb, as_pandas, as_polars
from trinity.display import as_html, as_text
from trinity.rows import Row, rows_of
from trinity.spark.types import arrow_frame
from trinity.target import Host

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    from pyspark.sql import DataFrame

_OF_A_FRAME = ("_jdf", "_plan", "_session")
"""Attributes that pyspark reads from DataFrame objects, and that the class DataFrame does not have."""

_OF_DUCKDB: Final = {
    "df": "to_pandas",
    "fetchdf": "to_pandas",
    "pl": "to_polars",
    "arrow": "to_arrow",
    "fetch_arrow_table": "to_arrow",
    "fetch_record_batch": "to_reader",
    "fetchone": "first",
    "fetchmany": "take",
}
"""DuckDB's name of a method -> the name of that method in :class:`Result`."""


@public
class Result:
    """The rows of a statement, of changes, of a history or of a log. Lazy, and pinned to the versions that it reads.

    A Result stands in for a DataFrame: it has the attributes of :meth:`to_df`, and Trinity's methods take it as data.
    """

    def __init__(self, session: Host, rows: DataFrame | pa.Table | Callable[[], pa.RecordBatchReader]) -> None:
        self._session = session
        self._rows: Any = rows

    @property
    def engine(self) -> Literal["local", "spark"]:
        """The executor of the rows: ``local`` for this process alone, or ``spark``."""
        return "spark" if self.frame is not None else "local"

    @property
    def frame(self) -> DataFrame | None:
        """The DataFrame, where Spark computes the rows; else None."""
        return None if isinstance(self._rows, pa.Table) or callable(self._rows) else self._rows

    # -- what the columns are ---------------------------------------------------------------------------

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns as Arrow's schema; ``to_df().schema`` is Spark's."""
        if self.frame is not None:
            from trinity.spark_names import to_arrow_schema

            return to_arrow_schema(self.frame.schema)
        return self._rows.schema if isinstance(self._rows, pa.Table) else self.to_reader().schema

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.schema.names if self.frame is None else self.frame.columns)

    # -- the rows ---------------------------------------------------------------------------------------

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream of Arrow record batches."""
        if self.frame is not None:
            return self.frame.toArrow().to_reader()
        return self._rows.to_reader() if isinstance(self._rows, pa.Table) else self._rows()

    def to_arrow(self) -> pa.Table:
        """Return the rows as Arrow data."""
        return self._rows if isinstance(self._rows, pa.Table) else self.to_reader().read_all()

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return the rows as dicts, in the types that Arrow's ``to_pylist`` gives."""
        found: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return found

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas DataFrame, in the types that Arrow's ``to_pandas`` gives."""
        return as_pandas(self.to_reader())

    def to_polars(self) -> pl.DataFrame:
        """Return the rows as a Polars DataFrame."""
        return as_polars(self.to_reader())

    def to_duckdb(self, connection: Any = None) -> duckdb.DuckDBPyRelation:
        """Return the rows as a relation of a DuckDB connection, by default of DuckDB's default one."""
        return as_duckdb(self.to_reader(), connection)

    def to_df(self) -> DataFrame:
        """Return the rows as a Spark DataFrame. Rows that this process computes are handed to Spark, which starts."""
        return self._frame

    @cached_property
    def _frame(self) -> DataFrame:
        return self.frame if self.frame is not None else arrow_frame(self._session.spark, self.to_arrow())

    def collect(self) -> list[Any]:
        """Return the rows: tuples whose values are also found by name, as ``row["k"]`` and ``row.k``.

        A TIMESTAMP is a datetime without zone, in the zone of this process, as pyspark has it.
        """
        return self.frame.collect() if self.frame is not None else list(self._local_rows())

    def fetchall(self) -> list[Any]:
        """Return the rows, as :meth:`collect`."""
        return self.collect()

    def take(self, num: int) -> list[Any]:
        """Return the first rows, at most ``num``."""
        return self.frame.take(num) if self.frame is not None else list(islice(self._local_rows(), num))

    def first(self) -> Any:
        """Return the first row; None where there is none."""
        return next(iter(self.take(1)), None)

    def count(self) -> int:
        """Return the number of rows."""
        return self.frame.count() if self.frame is not None else sum(map(len, self.to_reader()))

    def _local_rows(self) -> Iterator[Row]:
        return (row for page in self.to_reader() for row in rows_of(page))

    def _first(self, n: int) -> tuple[list[Any], bool]:
        """Return the first rows, and whether there are more."""
        rows = self.take(n + 1)
        return rows[:n], len(rows) > n

    # -- for people -------------------------------------------------------------------------------------

    def show(self, n: int = 20, truncate: bool | int = True) -> None:
        """Print the first rows as a table.

        Args:
            n: maximum number of rows.
            truncate: True to cut values to 20 characters, a number to cut them to that many, False to show them whole.
        """
        if self.frame is not None:
            self.frame.show(n, truncate)
            return
        rows, more = self._first(n)
        print(as_text(self.columns, rows, 20 if truncate is True else int(truncate), more))

    def _repr_html_(self) -> str | None:
        """Return the first 20 rows as HTML for a notebook; of a DataFrame what Spark is set to show, or None."""
        if self.frame is not None:
            frame: Any = self.frame
            found: str | None = frame._repr_html_()
            return found
        return as_html(self.columns, *self._first(20))

    def __repr__(self) -> str:
        return f"Result[{', '.join(f'{field.name}: {field.type}' for field in self.schema)}]"

    # -- for other libraries ----------------------------------------------------------------------------

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __iter__(self) -> Iterator[Any]:
        return self.frame.toLocalIterator() if self.frame is not None else self._local_rows()

    def __getitem__(self, item: Any) -> Any:
        return self.to_df()[item]

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of :meth:`to_df`, if DataFrames have one of that name."""
        if name.startswith("__") or "_rows" not in vars(self):
            raise AttributeError(name)
        if self.frame is None and not (name in _OF_A_FRAME or name in self.columns or _frame_has(name)):
            here = f"; use {_OF_DUCKDB[name]}()" if name in _OF_DUCKDB else ", nor has a DataFrame"
            raise AttributeError(f"'Result' has no attribute '{name}'{here}")
        return getattr(self.to_df(), name)


def _frame_has(name: str) -> bool:
    """Return whether Spark's class DataFrame has an attribute; False without pyspark. Spark need not run."""
    try:
        from trinity.spark_names import DataFrame
    except ImportError:
        return False
    return hasattr(DataFrame, name)
