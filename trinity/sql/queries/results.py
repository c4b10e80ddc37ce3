"""The DataFrames of statements that are no queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trinity.engine.spark.frames import local_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trinity.session import Session

__all__ = ["counts", "nothing"]

_COUNTS: Final = ("num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows")


def counts(session: Session, *, updated: int = 0, deleted: int = 0, inserted: int = 0) -> DataFrame:
    """Return one row of counts, all BIGINT, none NULL (M5)."""
    row = (updated + deleted + inserted, updated, deleted, inserted)
    return local_frame(session.spark, dict.fromkeys(_COUNTS, "bigint"), [row])


def nothing(session: Session) -> DataFrame:
    """Return no rows and no columns, as Spark does for DDL."""
    return session.spark.range(0).drop("id")
