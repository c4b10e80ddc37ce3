"""Tables of Trinity that other engines write, too: Spark's own writers of the formats, PyIceberg and pyarrow."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

from tests.support.oracles import spark_text
from trinity import Table
from trinity_conformance.model.programs import Counts, DmlModel
from trinity_conformance.model.shapes import Shape
from trinity_conformance.model.statements import Statement
from trinity_conformance.model.tables import Version
from trinity_conformance.playing.names import Names
from trinity_conformance.playing.subject import Outcome, TrinitySubject, Writer
from trinity_conformance.playing.traces import Upsert

_SORTED: Final = ("int", "bigint", "string", "double", "date", "timestamp")
_CHECK: Final = "spark.databricks.delta.retentionDurationCheck.enabled"


class Shared(TrinitySubject):
    """A table that another engine writes, too.

    Args:
        connector, spark, folder: as for the subject.
        external: whether the other engine also makes the table, which is then registered.
        stamped: whether rows have a stamp from the beginning. Without one, rows that are only upserted would tie once
            another engine rewrites them.
    """

    def __init__(
        self, connector: str, spark: SparkSession, folder: Path, *, external: bool = False, stamped: bool = True
    ) -> None:
        self.format = connector
        self.external = external
        self.stamped = stamped
        self.others = folder / "others"
        self.others_spark = spark
        super().__init__(connector, spark, folder)

    def create(self, shape: Shape) -> None:
        probe = "k" in shape.names  # for durability
        if self.external and not probe:
            self.register(shape)
            return
        super().create(shape)
        if self.stamped and not probe and shape.key:
            self.table.connector.metadata.alter_table(self.table.handle, lambda d: d.with_stamps())

    def register(self, shape: Shape) -> None:
        """Let the other engine make the table, and register it."""
        self.adopt(shape)
        location = _OTHERS[self.format](self, 0).make(self._arrow(shape.columns, []))
        key = {"primary-key": ",".join(shape.key)}
        self.session.register(self._name, self.format, location, {**key, **shape.options()})

    def another(self, how: int) -> Writer:
        return _OTHERS[self.format](self, how)

    @property
    def table(self) -> Table:
        """The table, opened by Trinity."""
        found: Table = self._table
        return found

    @property
    def location(self) -> Path:
        """The table's folder."""
        return self.others / self._name if self.external else Path(self.table.location)

    @property
    def name(self) -> str:
        """The table's full name."""
        return self._name

    @property
    def shape(self) -> Shape:
        """The shape of the table in the model."""
        return self._shape

    @property
    def names(self) -> Names:
        """The present names of its columns."""
        return self._names

    def rows(self, step: Upsert) -> pa.Table:
        """Return the rows of a commit under the present names of the columns."""
        columns = [c for c in self._shape.columns if step.names is None or c.name in step.names]
        found: pa.Table = self._names.renamed(self._arrow(columns, step.rows))
        return found

    def spark_session(self) -> SparkSession:
        """Return a Spark session with the format's own catalog ``c``, where it has one."""
        spark = self.others_spark.newSession()
        if self._connector == "iceberg":
            for key, value in self.session.catalogs["c"].spark_catalog_settings("c").items():  # type: ignore[attr-defined]
                spark.conf.set(key, value)
        return spark

    def pyiceberg(self) -> SqlCatalog:
        """Return the adapter's catalog, opened by PyIceberg."""
        return SqlCatalog("c", uri=f"sqlite:///{self._folder}/catalog.db", warehouse=f"file://{self._folder}")


class _Other(ABC):
    """Another engine, which writes the shared table.

    Args:
        shared: the table.
        how: the seed of the choices among the engine's ways to do a thing.
    """

    def __init__(self, shared: Shared, how: int) -> None:
        self.shared = shared
        self.chance = Random(how)

    @abstractmethod
    def make(self, rows: pa.Table) -> str | None:
        """Make an empty table with the columns of ``rows``. Return its location; None where it is found by name."""

    @abstractmethod
    def append(self, rows: pa.Table) -> None:
        """Append rows as one file."""

    def upsert(self, step: Upsert) -> Outcome:
        self.append(self.shared.rows(step))
        return Outcome(self.shared.table.splits().version)

    def change(self, statement: Statement) -> Counts:
        raise NotImplementedError

    def compact(self, full: bool) -> None:
        raise NotImplementedError

    def resolve(self) -> None:
        raise NotImplementedError

    def vacuum(self) -> None:
        raise NotImplementedError

    def alter(self, kind: str, columns: Sequence[str]) -> None:
        raise NotImplementedError


class _PyArrow(_Other):
    def make(self, rows: pa.Table) -> str:
        self.append(rows)
        return str(self.shared.location)

    def append(self, rows: pa.Table) -> None:
        location = self.shared.location
        location.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, location / f"part-{len(list(location.iterdir()))}.parquet")


class _Spark(_Other):
    """Spark's own writer of a format."""

    def __init__(self, shared: Shared, how: int) -> None:
        super().__init__(shared, how)
        self.spark = shared.spark_session()

    @property
    @abstractmethod
    def name(self) -> str:
        """The table's name in Spark."""

    def run(self, statement: str) -> list[Any]:
        """Run a statement, in which ``{t}`` is the table."""
        return self.spark.sql(statement.format(t=self.name)).collect()

    def change(self, statement: Statement) -> Counts:
        """Run a statement, and return its counts from a model of the rows before it: Spark does not report them."""
        shared = self.shared
        found = DmlModel(Shape(shared.shape.columns, ()))
        found.commits.append([Version(row) for row in shared.read()])
        counts = found.effect(statement).counts
        named = statement.renamed(shared.names.now, shared.shape)
        rows = self.spark.sql(spark_text(named, self.name, Shape((), ()))).collect()
        assert [row.num_affected_rows for row in rows] in ([], [counts.affected])
        return counts

    def sorted_by(self) -> str | None:
        """Return the present name of a column to sort by."""
        shape = self.shared.shape
        found = [c.name for c in shape.columns if c.type in _SORTED and c.name not in shape.partition_by]
        chosen = self.chance.choice([*found, None, None])
        return self.shared.names.now[chosen] if chosen else None

    def alter(self, kind: str, columns: Sequence[str]) -> None:
        before = self.shared.table.splits().version
        for text in self.shared.names.alter(kind, columns):
            self.run(f"ALTER TABLE {{t}} {text}")
        self.shared.names.happened(before)


class _Delta(_Spark):
    @property
    def name(self) -> str:
        return f"delta.`{self.shared.location}`"

    def make(self, rows: pa.Table) -> str:
        self.append(rows)
        return str(self.shared.location)

    def append(self, rows: pa.Table) -> None:
        location = str(self.shared.location)
        frame = self.spark.createDataFrame(rows).coalesce(1)
        if self.shared.location.exists():  # a widened column is not written with its narrow type
            types = dict(self.spark.read.format("delta").load(location).dtypes)
            frame = frame.select(*[frame[f"`{c}`"].cast(types[c]).alias(c) for c in frame.columns])
        frame.write.format("delta").mode("append").save(location)

    def compact(self, full: bool) -> None:
        by = self.sorted_by()
        self.run("OPTIMIZE {t}" + (f" ZORDER BY (`{by}`)" if by else ""))

    def vacuum(self) -> None:
        self.spark.conf.set(_CHECK, "false")
        self.run("VACUUM {t} RETAIN 0 HOURS")

    def alter(self, kind: str, columns: Sequence[str]) -> None:
        features = "'delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true'"
        if kind not in ("extra", "move") or self.chance.random() < 0.5:
            self.run(f"ALTER TABLE {{t}} SET TBLPROPERTIES ({features})")
        super().alter(kind, columns)


class _Iceberg(_Spark):
    @property
    def name(self) -> str:
        return self.shared.name

    @property
    def bare(self) -> str:
        """Schema and table."""
        return self.shared.name.removeprefix("c.")

    def make(self, rows: pa.Table) -> None:
        self.shared.pyiceberg().create_table(self.bare, schema=rows.schema)

    def append(self, rows: pa.Table) -> None:
        if self.chance.random() < 0.5:
            self.spark.createDataFrame(rows).coalesce(1).createOrReplaceTempView("appended")
            names = ", ".join(rows.column_names)
            self.run(f"INSERT INTO {{t}} ({names}) SELECT {names} FROM appended")
            return
        table = self.shared.pyiceberg().load_table(self.bare)
        required = {f.name: f.required for f in table.schema().fields}
        table.append(rows.cast(pa.schema([f.with_nullable(not required[f.name]) for f in rows.schema])))

    def call(self, procedure: str, *arguments: str) -> None:
        """Call a procedure of Iceberg."""
        self.run(f"CALL c.system.{procedure}({', '.join([f'table => {self.bare!r}', *arguments])})")

    def compact(self, full: bool) -> None:
        by = self.sorted_by()
        sorts = ["strategy => 'sort'", f"sort_order => '{by} DESC'"] if by else []
        self.call("rewrite_data_files", "options => map('rewrite-all', 'true')", *sorts)
        if self.chance.random() < 0.3:
            self.call("rewrite_manifests")

    def vacuum(self) -> None:
        self.call("expire_snapshots", "older_than => TIMESTAMP '2100-01-01 00:00:00'", "retain_last => 1")
        if self.chance.random() < 0.5:
            for path in self.shared.location.rglob("*"):  # the procedure does not remove younger files
                os.utime(path, (time.time() - 30 * 86400,) * 2)
            self.call("remove_orphan_files")


_OTHERS: Final[dict[str, type[_Other]]] = {"parquet": _PyArrow, "delta": _Delta, "iceberg": _Iceberg}
