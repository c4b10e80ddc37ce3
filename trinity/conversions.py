"""Conversions of Arrow streams to pandas, Polars and DuckDB, each of which is imported at its first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from trinity.errors import TrinityError

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa


_LOCAL: Final = "trinity-merge[local]"
_OLDEST_DUCKDB: Final = (1, 4)


def library(name: str, package: str) -> Any:
    """Import an optional library. Raise CONFIGURATION_INVALID, naming the package to install, if it is missing."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        message = f"The Python package '{name}' is not installed: pip install '{package}'."
        raise TrinityError("CONFIGURATION_INVALID", message) from error


def duckdb_module() -> ModuleType:
    """Import DuckDB. Raise CONFIGURATION_INVALID, naming the package to install, if it is missing or too old."""
    found: ModuleType = library("duckdb", _LOCAL)
    version = tuple(int(part) for part in found.__version__.split(".")[:2])
    if version < _OLDEST_DUCKDB:
        oldest = ".".join(map(str, _OLDEST_DUCKDB))
        raise TrinityError(
            "CONFIGURATION_INVALID",
            f"DuckDB {found.__version__} is too old; {oldest} or newer is needed: pip install --upgrade '{_LOCAL}'.",
        )
    return found


def as_pandas(rows: pa.RecordBatchReader) -> pd.DataFrame:
    """Return the rows as a pandas DataFrame, in the types that Arrow's ``to_pandas`` gives."""
    library("pandas", "pandas")
    found: pd.DataFrame = rows.read_all().to_pandas()
    return found


def as_polars(rows: pa.RecordBatchReader) -> pl.DataFrame:
    """Return the rows as a Polars DataFrame."""
    found: pl.DataFrame = library("polars", "polars").from_arrow(rows.read_all())
    return found


def as_lazy_polars(schema: pa.Schema, read: Callable[[Sequence[str] | None], pa.RecordBatchReader]) -> pl.LazyFrame:
    """Return a Polars LazyFrame that calls ``read`` when it is collected: with the names it needs, or None for all."""
    polars, plugins = library("polars", "polars"), library("polars.io.plugins", "polars")

    def pages(names: list[str] | None, predicate: Any, limit: int | None, _: int | None) -> Iterator[pl.DataFrame]:
        for page in read(names):
            frame = polars.from_arrow(page)
            rows = frame if predicate is None else frame.filter(predicate)
            yield rows if limit is None else rows.head(limit)
            if limit is not None and not (limit := max(0, limit - len(rows))):
                return

    found: pl.LazyFrame = plugins.register_io_source(pages, schema=polars.from_arrow(schema.empty_table()).schema)
    return found


def as_duckdb(rows: pa.RecordBatchReader, connection: Any) -> duckdb.DuckDBPyRelation:
    """Return the rows as a relation of a DuckDB connection; None stands for DuckDB's default connection."""
    found = duckdb_module()
    if connection is not None and not isinstance(connection, found.DuckDBPyConnection):
        what = type(connection).__name__
        raise TrinityError("INVALID_ARGUMENTS", f"connection is to be a connection of DuckDB, and is of type {what}.")
    relation: duckdb.DuckDBPyRelation = (connection or found).from_arrow(rows.read_all())
    return relation
