"""What tests do with most tables: put rows in, read them, and look at versions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import trinity
from trinity import Column, Session, Table

Rows = list[tuple[Any, ...]]


def keyed_table(
    session: Session,
    fmt: str,
    columns: Sequence[Column],
    *,
    name: str = "t",
    key: Sequence[str] = ("k",),
    **properties: str,
) -> Table:
    """Create a table in the default schema of a catalog.

    A property may be given as an identifier: ``changelog_producer__row_deduplicate`` is
    ``changelog-producer.row-deduplicate``.
    """
    named = {_property(given): value for given, value in properties.items()}
    return session.create_table(f"{fmt}.default.{name}", columns, primary_key=key, properties=named)


def _property(given: str) -> str:
    return given.replace("__", ".").replace("_", "-") if given.isidentifier() else given


def new_rows(*keys: int) -> pa.Table:
    """Return a row (key, 'new') for each key, in columns k and v."""
    return pa.table({"k": pa.array(keys, pa.int32()), "v": ["new"] * len(keys)})


def put(table: Table, *rows: tuple[Any, ...]) -> int:
    """Upsert rows, each with values for the first columns of the table; return the commit's version."""
    fields = [column.to_arrow() for column in table.definition.visible][: len(rows[0])]
    arrays = [pa.array(values, f.type) for values, f in zip(zip(*rows, strict=True), fields, strict=True)]
    return table.upsert(pa.table(arrays, names=[f.name for f in fields])).version


def put_ids(table: Table, *ids: int) -> int:
    """Upsert rows that have nothing but a column ``id``; return the commit's version."""
    return put(table, *((key,) for key in ids))


def add(table: Table, *rows: tuple[int, int, str]) -> None:
    """Upsert rows of the columns k, w and v, or append them to a table without a key."""
    data = pa.Table.from_pylist([dict(zip(("k", "w", "v"), row, strict=True)) for row in rows])
    (table.upsert if table.definition.keyed else table.append)(data)


def put_dicts(table: Table, *rows: dict[str, Any]) -> None:
    """Upsert rows with a value or NULL for every column."""
    table.upsert(pa.Table.from_pylist(list(rows), pa.schema([c.to_arrow() for c in table.definition.visible])))


def arrow_rows(table: Table, *columns: str, version: int | None = None) -> Rows:
    """Return the rows of a table, or some of their columns, as sorted tuples; a struct is a tuple."""
    found = table.to_arrow(columns=list(columns) or None, version=version).to_pylist()
    plain = (tuple(tuple(v.values()) if isinstance(v, dict) else v for v in row.values()) for row in found)
    return sorted(plain, key=repr)


def ordered_rows(table: Table) -> Rows:
    """Return the rows of a table as tuples in their own order, which rows without NULL have."""
    return sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())


def spark_rows(table: Table) -> Rows:
    """Return the rows of a table as Spark reads them, as sorted tuples."""
    return sorted((tuple(row) for row in table.to_df().collect()), key=repr)


def check_that_spark_agrees(table: Table, where: str) -> None:
    """Check that Spark reads the rows, none of which has a NULL, that this process reads."""
    assert sorted(spark_rows(table)) == ordered_rows(table), where


def query(session: Session, text: str, dialect: str = "spark") -> Rows:
    """Return the rows of a query in its order."""
    return [tuple(row) for row in session.sql(text, dialect=dialect).collect()]


def sorted_query(session: Session, text: str = "SELECT * FROM t") -> Rows:
    """Return the rows of a query as sorted tuples."""
    return sorted(query(session, text), key=repr)


def as_texts(rows: pa.Table) -> list[str]:
    """Return rows as sorted texts, also those that do not compare."""
    return sorted(map(repr, rows.to_pylist()))


def by_k(rows: pa.Table) -> list[dict[str, Any]]:
    """Return rows in the order of their column ``k``."""
    return sorted(rows.to_pylist(), key=lambda row: row["k"])


def stored_ids(table: Table) -> list[int]:
    """Return the column ``id`` of all files of a table, read without Trinity."""
    return sorted(n for f in table.splits().files for n in pq.read_table(f.path)["id"].to_pylist())


def versions_of(table: Table) -> list[int]:
    """Return the versions that a table's history has."""
    return [entry.version for entry in table.connector.metadata.history(table.handle)]


def oldest_version(table: Table) -> int:
    """Return the oldest version that users see in a table's history."""
    return int(min(row.version for row in table.history().collect()))


def reopened(table: Table) -> Table:
    """Open a table of a catalog in a folder in a new session, as another process would."""
    return trinity.connect(Path(table.location).parents[2]).table(str(table.name))
