"""The rows that a fold works on: a DataFrame, or the text of a query that any engine can run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from textwrap import indent
from typing import TYPE_CHECKING, TypeVar

from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from typing import TypeAlias

    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class SqlRows:
    """Rows as the text of a Spark query, with ``dtypes`` and those methods of a DataFrame that a fold calls."""

    text: str
    dtypes: list[tuple[str, str]]

    def where(self, condition: str, /) -> SqlRows:
        return replace(self, text=f"{self.selectExpr('*').text}\nWHERE {condition}")

    def selectExpr(self, *expr: str) -> SqlRows:  # noqa: N802 - Spark's name
        return replace(self, text=f"SELECT {', '.join(expr)}\nFROM (\n{indent(self.text, '  ')}\n)")

    def drop(self, *cols: str) -> SqlRows:
        return self.selectExpr(f"* EXCEPT ({', '.join(map(quoted, cols))})")

    def unionByName(self, other: SqlRows, /) -> SqlRows:  # noqa: N802 - Spark's name
        names = [quoted(name) for name, _ in self.dtypes]
        return replace(self, text=f"{self.selectExpr(*names).text}\nUNION ALL\n{other.selectExpr(*names).text}")


Rows: TypeAlias = "DataFrame | SqlRows"
AnyRows = TypeVar("AnyRows", "DataFrame", SqlRows)


def per_key(rows: AnyRows, key: Sequence[str], *aggregates: str) -> AnyRows:
    """Return one row per key: the key columns, and aggregate expressions with their names."""
    columns = [quoted(k) for k in key]
    if isinstance(rows, SqlRows):
        grouped = rows.selectExpr(*columns, *aggregates)
        return replace(grouped, text=f"{grouped.text}\nGROUP BY {', '.join(columns)}")
    from trinity.spark_names import F

    return rows.groupBy(*columns).agg(*[F.expr(text) for text in aggregates])
