"""Topics of change messages, and a table that receives them."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from trinity import Session, Table


def messages(session: Session, *given: Any) -> DataFrame:
    """Return a DataFrame of one partition with messages: texts, bytes and NULL as they are, other values as JSON."""
    texts = [m if m is None or isinstance(m, str) else json.dumps(m) for m in given]
    return session.spark.createDataFrame(pa.table({"value": pa.array(texts, pa.string())})).coalesce(1)


def people(session: Session, columns: str = "id INT, name STRING", **properties: str) -> Table:
    """Make a table with a row kind and the watermark ``lsn``."""
    options = {"watermark-key": "lsn", "rowkind.field": "kind", **properties}
    text = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
    session.sql(
        f"CREATE TABLE parquet.default.people ({columns}, lsn BIGINT, kind STRING, PRIMARY KEY (id)) "
        f"TBLPROPERTIES ({text})"
    )
    return session.table("parquet.default.people")


def rows(table: Table, *names: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(r) for r in table.to_df().select(*(names or ("id", "name"))).collect())


def event(op: str, lsn: int | None, before: Any = None, after: Any = None) -> dict[str, Any]:
    return {"op": op, "before": before, "after": after, "source": {"lsn": lsn, "ts_ms": 7}, "ts_ms": 8, "other": [1]}
