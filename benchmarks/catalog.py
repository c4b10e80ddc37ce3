"""The cases of one catalog: what all of them need, and how a DataFrame is read to its end."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from trinity import Session

__all__ = ["CatalogBench", "scan"]


@dataclass
class CatalogBench:
    """What the cases of a catalog need.

    Attributes:
        session: where the tables are.
        catalog: the format.
        rows: rows of the table that is measured.
        runs: rounds per case.
    """

    session: Session
    catalog: str
    rows: int
    runs: int


def scan(rows: DataFrame) -> None:
    """Reads all rows, and keeps none."""
    rows.write.format("noop").mode("overwrite").save()
