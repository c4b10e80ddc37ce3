"""Merge views, run by engines without Trinity."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from trinity import Session, Table
from trinity.spi import type_text


def shown(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


def types(rows: pa.Table) -> list[str]:
    """Return the names and the types of the columns: nested types in words, and no time zone of the reader."""
    return [f"{f.name} {type_text(f.type)}" for f in rows.schema]


def check_view(session: Session, table: Table) -> pa.Table:
    expected = table.to_df().toArrow()
    by_spark = session.spark.sql(table.merge_view_sql("spark")).toArrow()
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'Asia/Tokyo'")
        found = connection.sql(table.merge_view_sql("duckdb")).to_arrow_table()
    assert shown(by_spark) == shown(expected)
    assert types(by_spark) == types(expected)
    assert types(found) == types(expected)
    assert shown(found.cast(expected.schema)) == shown(expected)
    return expected
