"""Compaction of tables whose engine folds column by column, by Spark: row versions into base, sidecar and log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from trinity.engine.reading.spark.fold_by_column import column_fold
from trinity.errors import TrinityError
from trinity.hidden import ARRIVAL, DELETED, FITS, FOLD_ORDER, KIND, LEFT, SINCE, VISIBLE
from trinity.merge.row_kinds import FoldKind, StoredKind
from trinity.merge.sidecar import SIDECAR_ROWS, Retention
from trinity.merge.spec import MergeSpec
from trinity.spark_names import DataFrame, F
from trinity.spi import ROW_KIND, SplitSource
from trinity.syntax.quoting import quoted

Run = Callable[..., list[bytes]]
"""A function (rows, in_log) -> fragments, which writes rows with ``DELETED``, ``LEFT``, ``SINCE`` and ``ARRIVAL``."""


def rewritten(rows: DataFrame, splits: SplitSource, spec: MergeSpec, run: Run, retention: Retention) -> list[bytes]:
    """Fold row versions, all or those of given keys, into base and sidecar, and return the fragments.

    The row versions of a key with a value out of range stay where they are, in the log or in the sidecar. A read raises
    the error, and a later row can repair it (A4).
    """
    rewrite = _Rewrite(rows, splits, spec, retention)
    try:
        return run(rewrite.rows(None))
    except TrinityError as error:
        if error.code != "NUMERIC_VALUE_OUT_OF_RANGE":
            raise
    unfit = rewrite.folded.where(f"{VISIBLE} AND NOT {FITS}").select(*map(quoted, spec.key))
    return run(rewrite.rows(unfit), in_log=True)


class _Rewrite:
    """The rows that a compaction writes, marked for base, sidecar or log."""

    def __init__(self, rows: DataFrame, splits: SplitSource, spec: MergeSpec, retention: Retention) -> None:
        self.spec = spec
        self.retention = retention
        self.storage = [quoted(f.name) for f in splits.storage]
        self.marked = [
            f"{StoredKind.FOLDED} AS {ROW_KIND}" if f.name == ROW_KIND else quoted(f.name) for f in splits.storage
        ]
        self.fold = replace(column_fold(splits, spec), raises=False)
        self.counted = self.fold.contributions(rows)
        self.folded = self.fold(self.counted)

    def rows(self, unfit: DataFrame | None) -> DataFrame:
        """Return the rows for base and sidecar, and the row versions of unfit keys for the log.

        Unfit keys have a value out of range. As long as they are not known (None), their base rows are marked ``LEFT``.
        """
        base = self.folded.where(VISIBLE if unfit is None else f"{VISIBLE} AND {FITS}")
        base = base.selectExpr(*self.marked, FITS)
        rows = self._routed(base, deleted=False, left=f"NOT {FITS}", since="CAST(NULL AS BIGINT)", arrival="0L")
        if unfit is not None:
            kept = self.counted.join(F.broadcast(unfit), list(self.spec.key), "left_semi")
            in_log, in_sidecar = kept.where(f"{SINCE} IS NULL"), kept.where(f"{SINCE} IS NOT NULL")
            rows = rows.unionByName(self._routed(in_log, deleted=False, left="true", since=SINCE, arrival=FOLD_ORDER))
            # in the log the folded row would come before them
            rows = rows.unionByName(
                self._routed(in_sidecar, deleted=True, left="false", since=SINCE, arrival=self._order())
            )
        if not self.spec.may_need_sidecar:
            return rows
        versions = self._sidecar_rows()
        if unfit is not None:
            versions = versions.join(F.broadcast(unfit), list(self.spec.key), "left_anti")
        since = self.retention.since_sql
        return rows.unionByName(self._routed(versions, deleted=True, left="false", since=since, arrival=self._order()))

    def _routed(self, rows: DataFrame, *, deleted: bool, left: str, since: str, arrival: str) -> DataFrame:
        facts = [f"{deleted} AS {DELETED}", f"{left} AS {LEFT}", f"{since} AS {SINCE}", f"{arrival} AS {ARRIVAL}"]
        return rows.selectExpr(*self.storage, *facts)

    def _order(self) -> str:
        key = ", ".join(map(quoted, self.spec.key))
        return f"row_number() OVER (PARTITION BY {key} ORDER BY {FOLD_ORDER}) - {SIDECAR_ROWS}L"

    def _sidecar_rows(self) -> DataFrame:
        """Return the rows with which late rows, or later rows of keys that are not visible, are folded (E3)."""
        spec = self.spec
        # without ordering columns no later row can come before a cut or a revival any more
        rows = self.counted if spec.ordering else self.fold.counting(self.counted)
        key = ", ".join(map(quoted, spec.key))
        rows = rows.selectExpr("*", f"max({KIND} = {FoldKind.ADD}) OVER (PARTITION BY {key}) AS {VISIBLE}")
        if not spec.keeps_history:
            rows = rows.where(f"NOT {VISIBLE} OR {KIND} = {FoldKind.CUT}")
        return rows.where(f"{VISIBLE} OR {self.retention.keeps_sql}")
