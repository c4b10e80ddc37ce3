"""Histories of a keyed table that is put back from outside: RESTORE, rollback, folders from a backup, copies and
clones.

A history is a list of steps ``[name, number, number]``, whose numbers choose rows, keys and versions. It is drawn from
a seed, printed by a failure, and played again by ``Restored.play``.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import trinity
from tests.support.iceberg import pyiceberg
from tests.support.refusals import refused
from tests.support.restored_others import OTHERS, Others
from tests.support.spark import clear_delta_cache
from trinity import Session, Table, TrinityError, cdc
from trinity.calls import spark_errors

Step = tuple[str, int, int]
History = list[Step]

WEIGHTS: Final = {
    "upsert": 10, "delete": 3, "compact": 5, "checkpoint": 1, "reopen": 1, "follow": 4, "stream": 1,
    "put_back": 2, "restore": 5, "go_back": 4, "copy": 1, "append": 4, "require": 2, "remake": 2, "clone": 1,
    "drop_feature": 1,
}  # fmt: skip
KEYS: Final = 5
COLUMNS: Final = "id INT PRIMARY KEY, ts BIGINT, gone BOOLEAN, v STRING"
OPTIONS: Final = "TBLPROPERTIES ('watermark-key' = 'ts', 'tombstone-key' = 'gone')"
TARGET: Final = "id INT PRIMARY KEY, ts BIGINT, gone BOOLEAN, v STRING, at BIGINT, kind STRING"
TARGET_OPTIONS: Final = "TBLPROPERTIES ('watermark-key' = 'at', 'rowkind.field' = 'kind')"
GONE: Final = ("delete", "update_preimage")
REFUSALS: Final = frozenset({"NOT_SUPPORTED", "BAD_DATA"})
"""Codes with which a table refuses to be read or written in its present state."""


def drawn(seed: int, length: int = 14) -> History:
    """Return the history of a seed. Each has at least one restore."""
    chance = Random(seed)
    names = chance.choices(list(WEIGHTS), list(WEIGHTS.values()), k=length)
    names = ["upsert", "upsert", *names]
    names[length // 2] = chance.choice(["restore", "put_back"])
    return [(name, chance.randrange(1000), chance.randrange(1000)) for name in [*names, "upsert", "follow"]]


@dataclass(frozen=True)
class Version:
    """A row version that wins its key."""

    ts: int
    gone: bool
    v: str | None


State = dict[int, Version]


@dataclass
class Restored:
    """A table under test, the rows that it must hold, and a second table that follows it.

    Args:
        fmt: the format.
        spark: the Spark session that all histories share.
        folder: an empty folder.
    """

    fmt: str
    spark: SparkSession
    folder: Path
    seen: Counter[str] = field(default_factory=Counter)
    """Number of times that each step was taken, and that it was refused."""

    def __post_init__(self) -> None:
        self.home, self.backups = self.folder / "home", self.folder / "backups"
        self.session = self._connect(self.home)
        self.second = self._connect(self.home)  # a session that has the old table in its caches
        self.session.sql(f"CREATE TABLE t ({COLUMNS}) {OPTIONS}").collect()
        self.state: State = {}
        self.states: dict[Any, State] = {}
        self.required = False
        """Whether another engine forbids NULL in ``v``."""
        self.were_required: dict[Any, bool] = {}
        self.has_nulls = False
        """Whether NULL was ever stored in ``v``."""
        self.streamed: dict[int, tuple[Any, ...]] | None = None
        """The rows by the changes of a stream; None before its first batch."""
        self.written = 0
        self.followed: tuple[str, Any] | None = None
        self.targets = 0
        self.lost = False
        """Whether the table was put back since it was last followed."""
        self.streams = 0
        self.stream_lost = False
        """Whether it was put back since it was last streamed."""
        self._committed()

    @property
    def table(self) -> Table:
        return self.session.table("t")

    def play(self, history: History) -> None:
        """Play the steps, and compare the table with what it must hold after each one."""
        try:
            for number, (name, one, other) in enumerate(history):
                self.seen[name] += 1
                if getattr(self, name)(one, other) is False:
                    break
                self._compare(f"step {number}, {name}")
            else:
                self._finish()
        except Exception as error:
            error.add_note(f"{self.fmt} {json.dumps(history)}")
            raise
        finally:
            self.session.close()
            self.second.close()

    # -- Trinity's steps ------------------------------------------------------------------------------------

    def upsert(self, one: int, other: int) -> None:
        rows, state = self._drawn(self.state, one, other)
        if self._forbidden(rows):
            with refused("CONSTRAINT_VIOLATION", "v"):
                self.table.upsert(rows)
            self.seen["NULL refused"] += 1
            return
        self.table.upsert(rows)
        self._stored(rows, state)

    def _stored(self, rows: pa.Table, state: State) -> None:
        self.has_nulls |= bool(rows["v"].null_count)
        self.state = state
        self._committed()

    def _forbidden(self, rows: pa.Table) -> bool:
        return self.required and bool(rows["v"].null_count)

    def _drawn(self, state: State, one: int, other: int) -> tuple[pa.Table, State]:
        """Draw row versions, and return them with the state after them."""
        chance, found = Random(one), dict(state)
        rows = []
        for key in chance.sample(range(KEYS), 1 + other % 3):
            self.written += 1
            text = None if chance.random() < (0.3 if self.required else 0.05) else f"v{self.written}"
            version = Version(chance.randrange(8), chance.random() < 0.4, text)
            rows.append({"id": key, **version.__dict__})
            if key not in found or version.ts >= found[key].ts:
                found[key] = version
        schema = pa.schema({"id": pa.int32(), "ts": pa.int64(), "gone": pa.bool_(), "v": pa.string()})
        return pa.Table.from_pylist(rows, schema), found

    def go_back(self, one: int, other: int) -> None:
        """Restore a version by Trinity. Followers and streams continue; a version that others removed is refused."""
        version = self._chosen(one)
        try:
            self.table.restore(version)
        except TrinityError as error:
            if error.code not in {"INVALID_ARGUMENTS", *REFUSALS}:
                raise
            self.seen["go_back refused"] += 1
            return
        self.state, self.required = self.states[version], self.were_required[version]
        self._committed()

    def delete(self, one: int, other: int) -> None:
        key = one % KEYS
        self.table.delete([key])
        if key in self.state:
            self.state = {**self.state, key: Version(self.state[key].ts, True, self.state[key].v)}
        self._committed()

    def compact(self, one: int, other: int) -> None:
        self.table.compact(["full", "full", "full", "resolve", "minor"][one % 5])
        self._committed()

    def reopen(self, one: int, other: int) -> None:
        self.session.close()
        self.session = self._connect(self.home)

    def follow(self, one: int, other: int) -> None:
        """Let the target follow the table: it must agree, or fail with the reason; without a loss it may not fail."""
        if self.followed is None:
            self.targets += 1
            self.followed = f"followers.default.f{self.targets}", None
            self.session.sql(f"CREATE TABLE {self.followed[0]} ({TARGET}) {TARGET_OPTIONS}").collect()
        target = self.session.table(self.followed[0])
        try:
            cdc.follow(self.table, target, watermark="at")
        except TrinityError as error:
            if not self.lost or error.code not in {"INVALID_ARGUMENTS", *REFUSALS}:
                raise
            self.seen["follow refused"] += 1
            self.followed = None
        else:
            rows = target.to_df().select("id", "ts", "v").collect()
            assert sorted(map(tuple, rows)) == self._live(), "the follower"
        self.lost = False

    def stream(self, one: int, other: int) -> None:
        """Let a stream catch up: its changes must lead to the table's rows, or it must fail with the reason."""
        if self.streamed is None:
            self.streams += 1
            self.streamed = {}
        changes = self.spark.readStream.format("trinity").option("table", str(self.table.name)).load()
        checkpoint = self.folder / f"stream{self.streams}"
        writer = changes.writeStream.foreachBatch(self._batch).option("checkpointLocation", str(checkpoint))
        try:
            with spark_errors():
                writer.trigger(availableNow=True).start().awaitTermination()
        except TrinityError as error:
            if not self.stream_lost or error.code not in {"INVALID_ARGUMENTS", *REFUSALS}:
                raise
            self.seen["stream refused"] += 1
            self.streamed = None
        else:
            assert sorted(self.streamed.values()) == self._live(), "the stream"
        self.stream_lost = False

    def _batch(self, rows: DataFrame, number: int) -> None:
        assert self.streamed is not None
        found = [row.asDict() for row in rows.collect()]
        for row in sorted(found, key=lambda row: (row["_commit_version"], row["_change_type"] not in GONE)):
            if row["_change_type"] in GONE:
                self.streamed.pop(row["id"], None)
            else:
                self.streamed[row["id"]] = (row["id"], row["ts"], row["v"])

    # -- others' steps --------------------------------------------------------------------------------------

    @property
    def _others(self) -> Others | None:
        return OTHERS[self.fmt](self.spark, self.table) if self.fmt in OTHERS else None

    def append(self, one: int, other: int) -> None:
        """Let another engine append row versions, with or without statistics, as a file of its own or by its path."""
        rows, state = self._drawn(self.state, one, other)
        if (others := self._others) is not None and not self._forbidden(rows):
            others.append(rows, one)
            self._stored(rows, state)

    def require(self, one: int, other: int) -> None:
        """Let another engine forbid NULL in a column, or allow it again."""
        if (others := self._others) is not None and not self.has_nulls:
            self.required = not self.required
            others.require("v", self.required)
            self._committed()

    def remake(self, one: int, other: int) -> None:
        """Let another engine change how metadata and statistics are kept: compressed, as structs, or not at all."""
        if (others := self._others) is not None:
            others.remake_metadata(one)
            self._committed()

    def clone(self, one: int, other: int) -> None:
        """Clone the table by Delta's SHALLOW CLONE: the clone has the same rows, or is refused by name."""
        if self.fmt != "delta":
            return
        place = self.folder / f"clone{self.seen['clone']}" / "delta"
        there = place / Path(self.table.location).relative_to(self.home)
        self.spark.sql(f"CREATE TABLE delta.`{there}` SHALLOW CLONE delta.`{self.table.location}`").collect()
        with self._connect(place) as session:
            try:
                assert self._rows(session.table("t")) == self._live(), "a clone"
            except TrinityError as error:
                if error.code not in REFUSALS:
                    raise
                self.seen["clone refused"] += 1

    def drop_feature(self, one: int, other: int) -> None:
        """Drop the Delta feature that holds Trinity's domain metadata: the table is refused until it is repaired.

        The changes meanwhile are not known, so followers and streams may not continue.
        """
        if self.fmt != "delta":
            return
        self.spark.sql(f"ALTER TABLE delta.`{self.table.location}` DROP FEATURE domainMetadata").collect()
        with refused("NOT_SUPPORTED", "repair"):
            self._rows(self.table)
        self.session.repair("t")
        self.lost = self.stream_lost = True
        self._committed()

    def checkpoint(self, one: int, other: int) -> None:
        """Let Delta write a checkpoint, from which the operations of commits can no longer be read."""
        if self.fmt == "delta":
            logs = self.spark._jvm.org.apache.spark.sql.delta.DeltaLog  # type: ignore[union-attr]
            logs.forTable(self.spark._jsparkSession, self.table.location).checkpoint()

    def restore(self, one: int, other: int) -> bool | None:
        """Restore a version by the format's own means."""
        if self.fmt == "parquet":
            return None
        version = self._chosen(one)
        if self.fmt == "delta":
            self.spark.sql(f"RESTORE TABLE delta.`{self.table.location}` TO VERSION AS OF {version}").collect()
        else:
            self._roll_back(version)
        self._went_back(version)
        if self.fmt == "delta":  # it restores the schema, too
            self.required = self.were_required[version]
        self._committed()
        return self._usable("restore")

    def _went_back(self, version: Any) -> None:
        self.state = self.states[version]
        self.lost = self.stream_lost = True

    def _roll_back(self, version: int) -> None:
        found = self._iceberg()
        [snapshot] = [s for s in found.metadata.snapshots if s.sequence_number == version]
        found.manage_snapshots().set_current_snapshot(snapshot.snapshot_id).commit()

    def put_back(self, one: int, other: int) -> bool | None:
        """Restore the whole warehouse from a backup: later versions are gone, and their numbers are used again.

        Sessions are closed before, or stay open.
        """
        version = self._chosen(one)
        goes_on = other % 2 == 0
        if not goes_on:
            self.session.close()
            self.second.close()
        shutil.rmtree(self.home)
        shutil.copytree(self.backups / str(version), self.home)
        if not goes_on:
            self.session = self._connect(self.home)
            self.second = self._connect(self.home)
        self._went_back(version)
        self.required = self.were_required[version]
        self.states = {v: s for v, s in self.states.items() if v <= version}
        for later in self.backups.iterdir():
            if int(later.name) > version:
                shutil.rmtree(later)
        if self.fmt == "delta":  # it would continue with a log that no longer exists
            clear_delta_cache(self.spark)
        return self._usable("put_back")

    def copy(self, one: int, other: int) -> None:
        """Copy the warehouse and write to the copy: the copy must be right or refused, and the table unchanged."""
        place = self.folder / f"copy{self.written}"
        shutil.copytree(self.home, place)
        before = dict(self.state)
        with self._connect(place) as session:
            table = session.table("t")
            try:
                assert self._rows(table) == self._live(), "a copy"
                rows, there = self._drawn(before, one, other)
                if self._forbidden(rows):
                    rows, there = rows.slice(0, 0), before
                table.upsert(rows)
                assert self._rows(table) == self._live(there), "a copy that was written"
            except TrinityError as error:
                if error.code not in REFUSALS:
                    raise
                self.seen["copy refused"] += 1
        shutil.rmtree(place)

    # -- comparisons ----------------------------------------------------------------------------------------

    def _usable(self, step: str) -> bool | None:
        """Return False when the table refuses to be read in its present state."""
        try:
            self._rows(self.table)
        except TrinityError as error:
            if error.code not in REFUSALS:
                raise
            self.seen[f"{step} refused"] += 1
            return False
        return None

    def _compare(self, when: str) -> None:
        assert self._rows_here(self.table) == self._live(), f"{when}: the session"
        assert self._rows_here(self.second.table("t")) == self._live(), f"{when}: another session"

    def _finish(self) -> None:
        """Compact, and compare with the rows that the format's own reader shows."""
        self.table.compact(full=True)
        self._compare("after compaction")
        assert self._rows(self.table) == self._live(), "a read of Spark's"
        if self.fmt == "delta":
            native = self.spark.read.format("delta").load(self.table.location).selectExpr("id", "ts", "v").collect()
            assert sorted(map(tuple, native)) == self._live(), "Delta's own reader"
        elif self.fmt == "iceberg":
            rows = self._iceberg().scan().to_arrow().select(["id", "ts", "v"]).to_pylist()
            assert sorted(tuple(row.values()) for row in rows) == self._live(), "PyIceberg"

    def _iceberg(self) -> Any:
        return pyiceberg(self.table)

    def _rows_here(self, table: Table) -> list[tuple[Any, ...]]:
        return sorted(tuple(row.values()) for row in table.to_arrow(columns=["id", "ts", "v"]).to_pylist())

    def _rows(self, table: Table) -> list[tuple[Any, ...]]:
        return sorted(map(tuple, table.to_df().select("id", "ts", "v").collect()))

    def _live(self, state: State | None = None) -> list[tuple[Any, ...]]:
        found = self.state if state is None else state
        return sorted((key, w.ts, w.v) for key, w in found.items() if not w.gone)

    # -- versions -------------------------------------------------------------------------------------------

    def _chosen(self, number: int) -> Any:
        known = sorted(self.states)
        return known[number % len(known)]

    def _committed(self) -> None:
        """Record the rows of the version that a step has made, with a backup of it.

        A change of columns makes no version of an Iceberg table: the present version keeps the columns that it was made
        with.
        """
        version = self.table.splits().version
        self.states[version] = dict(self.state)
        place = self.backups / str(version)
        if not place.exists():
            self.were_required[version] = self.required
            shutil.copytree(self.home, place)

    def _connect(self, home: Path) -> Session:
        followers = {"connector": "parquet", "warehouse": str(self.folder / "followers")}
        catalogs = {self.fmt: {"connector": self.fmt, "warehouse": str(home)}, "followers": followers}
        return trinity.connect(spark=self.spark, catalogs=catalogs, catalog=self.fmt)
