"""The folds of merge engines, compared with Spark's own aggregation of the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from benchmarks.results import Result
from benchmarks.tables import CatalogBench, scan
from benchmarks.timing import in_turns
from trinity import Table

_GROUPS: Final = (1, 2, 3)
_NEWEST: Final = tuple(
    text
    for n in _GROUPS
    for text in (f"max(g{n}) AS g{n}", f"max_by(a{n}, g{n}) AS a{n}", f"max_by(b{n}, g{n}) AS b{n}")
)


class FoldBench(CatalogBench):
    """Ten log rows per key, which a read folds into one; a fourth of the rows of other cases."""

    def cases(self) -> Iterator[Result]:
        """Measure three sequence groups of two columns and a sum; then sums alone."""
        columns = ", ".join(f"g{n} BIGINT, a{n} BIGINT, b{n} BIGINT" for n in _GROUPS)
        groups = {f"fields.g{n}.sequence-group": f"a{n},b{n}{',n' if n == 1 else ''}" for n in _GROUPS}
        options = {"merge-engine": "partial-update", **groups, "fields.n.aggregate-function": "sum"}
        table = self._table("groups", f"k INT, {columns}, n BIGINT", options, self._changes())
        yield self._fold("fold, three sequence groups", table, (*_NEWEST, "sum(n) AS n"), 2.0)
        options = {"merge-engine": "aggregation", "fields.default-aggregate-function": "sum"}
        table = self._table(
            "sums", "k INT, n BIGINT, m BIGINT", options, self._changes().selectExpr("k", "n", "a1 AS m")
        )
        yield self._fold("fold, sums", table, ("sum(n) AS n", "sum(m) AS m"), 1.2)

    def _changes(self) -> DataFrame:
        count = self.rows // 4
        keys = max(1, count // 10)
        return self.session.spark.range(0, count, 1, 2).selectExpr(
            f"CAST(pmod(hash(id), {keys}) AS INT) AS k",
            *[f"pmod(xxhash64(id, {n}), 1000) AS g{n}" for n in _GROUPS],
            *[f"id * {n} AS a{n}" for n in _GROUPS],
            *[f"id + {n} AS b{n}" for n in _GROUPS],
            "id % 100 AS n",
        )

    def _table(self, name: str, columns: str, options: dict[str, str], rows: DataFrame) -> Table:
        given = ", ".join(f"'{k}' = '{v}'" for k, v in options.items())
        full = f"{self.catalog}.default.fold_{name}"
        self.session.sql(f"CREATE TABLE {full} ({columns}, PRIMARY KEY (k)) TBLPROPERTIES ({given})")
        table = self.session.table(full)
        table.upsert(rows)
        return table

    def _fold(self, case: str, table: Table, aggregates: tuple[str, ...], factor: float) -> Result:
        """Measure the merged read, compared with Spark's aggregation over the same files."""
        paths = [f.path for f in table.splits().files]

        def plain() -> DataFrame:
            return self.session.spark.read.parquet(*paths).groupBy("k").agg(*map(F.expr, aggregates))

        found = table.to_df().count()
        assert found == plain().count(), case
        ours, reference = in_turns(self.runs, lambda: scan(table.to_df()), lambda: scan(plain()))
        return Result(case, self.catalog, ours, reference, factor, found=found)
