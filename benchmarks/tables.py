"""Tables of Trinity and of the peers, prepared rows, and reads to the end, for all cases."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from benchmarks.data import COLUMNS, base_rows, batch
from benchmarks.results import Result
from benchmarks.timing import Rounds
from trinity import Session, Table

_OPTIONS: Final[Mapping[str, str]] = {"watermark-key": "ts", "tombstone-key": "del"}
_WARM_SCANS: Final = 15
_numbers: Final = itertools.count()


@dataclass
class Scene:
    """The common part of all cases.

    Attributes:
        session: the session of the tables.
        rows: rows of the base.
        runs: rounds per case.
        folder: a folder for prepared rows and for the peers.
    """

    session: Session
    rows: int
    runs: Rounds
    folder: Path

    def warm_up(self) -> None:
        """Read the base some times: Java has then compiled what all reads run, before a format is measured."""
        for _ in range(_WARM_SCANS if self.runs.warm_up else 0):
            scan(self.base())

    def commits(self, count: int) -> int:
        """Return the number of commits to make; fewer where there are few rows."""
        return max(2, min(count, count * self.rows // 400_000))

    def new_table(self, catalog: str) -> Table:
        """Return an empty table with key, watermark and tombstone."""
        name = f"{catalog}.default.bench_{next(_numbers)}"
        return self.session.create_table(name, COLUMNS, primary_key=["id"], properties=_OPTIONS)

    def base_table(self, catalog: str) -> Table:
        """Return a compacted table with the base."""
        table = self.new_table(catalog)
        table.upsert(self.base())
        table.compact(full=True)
        return table

    def base(self) -> DataFrame:
        """Return the rows of the base."""
        return self.prepared("base", base_rows(self.session.spark, self.rows))

    def batch(self, count: int, number: int) -> DataFrame:
        """Return changes of distinct keys, newer than the changes of every lower number."""
        return self.prepared(f"batch_{count}_{number}", batch(self.session.spark, self.rows, count, number))

    def batch_arrow(self, count: int, number: int) -> pa.Table:
        """Return the rows of :meth:`batch` as an Arrow table."""
        self.batch(count, number)
        return arrow_rows(self.folder / f"batch_{count}_{number}")

    def prepared(self, name: str, rows: DataFrame) -> DataFrame:
        """Write the rows into a file, and return them from there, so that making them is not measured."""
        target = self.folder / name
        if not (target / "_SUCCESS").exists():
            rows.write.mode("overwrite").parquet(str(target))
        return self.session.spark.read.parquet(str(target))


@dataclass
class CatalogBench(ABC):
    """The cases of one catalog.

    Attributes:
        scene: what all cases need.
        catalog: the format.
    """

    scene: Scene
    catalog: str

    @abstractmethod
    def cases(self) -> Iterator[Result]:
        """Measure every case in turn."""

    @property
    def session(self) -> Session:
        """Where the tables are."""
        return self.scene.session

    @property
    def rows(self) -> int:
        """Rows of the table that is measured."""
        return self.scene.rows

    @property
    def runs(self) -> Rounds:
        """Rounds per case."""
        return self.scene.runs

    @property
    def folder(self) -> Path:
        """Scratch."""
        return self.scene.folder


@dataclass
class FormatsBench(ABC):
    """The cases in which all formats of ours and the peers take turns.

    Attributes:
        scene: what all cases need.
        formats: our catalogs.
    """

    scene: Scene
    formats: tuple[str, ...]

    @abstractmethod
    def cases(self) -> Iterator[Result]:
        """Measure every case in turn."""

    def drop(self, *groups: Mapping[str, Table | Dropped]) -> None:
        """Drop tables of ours, and the peers'."""
        for table in itertools.chain.from_iterable(group.values() for group in groups):
            if isinstance(table, Table):
                self.scene.session.drop_table(table.name)
            else:
                table.drop()


class Dropped(Protocol):
    """A table of a peer's."""

    def drop(self) -> None:
        """Drop the table."""


def scan(rows: DataFrame) -> None:
    """Read all rows, and keep none."""
    rows.write.format("noop").mode("overwrite").save()


def drain(rows: DataFrame) -> None:
    """Read all rows without a sink: Delta's reader refuses one of Spark's for a table with deletion vectors."""
    rows._jdf.queryExecution().toRdd().count()


def fingerprint(rows: DataFrame) -> tuple[int, int]:
    """Return the number of rows, and a sum of their hashes, equal for the same rows in any order."""
    names = [c.name for c in COLUMNS]
    found = rows.agg(F.count("*").alias("n"), F.bit_xor(F.xxhash64(*names)).alias("x")).first()
    assert found is not None
    return int(found.n), int(found.x or 0)


def arrow_rows(folder: Path) -> pa.Table:
    """Return prepared rows as Arrow data."""
    table = pq.read_table(folder)
    # Spark's INT96 reads as nanoseconds
    at = table.schema.get_field_index("ts")
    return table.set_column(at, "ts", table["ts"].cast(pa.timestamp("us", tz="UTC"))).combine_chunks()
