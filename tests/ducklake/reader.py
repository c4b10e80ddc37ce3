"""Run one query by DuckDB's own DuckLake extension, and write a Parquet file: ``reader.py CATALOG QUERY FILE``.

It runs in an environment of its own. The catalog's name there is ``lake``.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import duckdb


def library(extension: str) -> Path:
    """Return the file of a DuckDB extension that is installed as a package."""
    package = find_spec(f"duckdb_extension_{extension}")
    folders = package.submodule_search_locations if package else None
    return next(path for folder in folders or () for path in Path(folder).rglob("*.duckdb_extension"))


def main(catalog: str, query: str, file: str) -> None:
    """Run a query, and write its rows to a file."""
    database = duckdb.connect()
    for extension in ("ducklake", "sqlite_scanner"):
        database.execute(f"LOAD '{library(extension)}'")
    database.execute(f"ATTACH 'ducklake:sqlite:{catalog}' AS lake (READ_ONLY)")
    database.execute(f"COPY ({query}) TO '{file}' (FORMAT parquet)")


if __name__ == "__main__":
    main(*sys.argv[1:])
