"""A stream is killed (SIGKILL) at drawn moments, in commits and between them, and restarted with its checkpoint.

The moments are storage operations on the tables and on the checkpoint, which ``crash/crash_shim.c`` counts, so a run
can be repeated as far as threads allow. After each kill the table holds the rows of some first batches, and in the end
those of all batches: nothing is lost, nothing doubled.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.changes import Change, feed, rows_at
from tests.support.crash import built_shim
from tests.support.streams import SCHEMA, Row, drawn, is_killed, made_of, write
from trinity import Session, Table

KILLS = 9
"""Number of kills of a stream into each of six tables."""
KILLS_OUT = 4
"""Number of kills of a stream from each of three tables."""
BATCHES = 60
LONGEST = 160
"""The most operations from the first one of a life to its kill: those of some batches."""
FIRST = 40
"""The most operations of the first batch from a table."""


@dataclass(frozen=True)
class Stream:
    """A stream in a process of its own.

    Attributes:
        shim: the shared library that kills it.
        control: the file that the processes of a life share, outside of the folder.
        folder: the folder whose operations are counted: the stream's files, its checkpoint and the warehouse.
        table: the target table.
        source: the arguments of the program that name the source.
    """

    shim: Path
    control: Path
    folder: Path
    table: Table
    source: tuple[object, ...]

    def live(self, at: int) -> bool:
        """Run the stream up to storage operation ``at``, counted from a batch's first. Return whether it was killed."""
        self.control.write_bytes(bytes(64))
        environment = {
            "LD_PRELOAD": str(self.shim),
            "CRASH_ROOT": str(self.folder),
            "CRASH_CONTROL": str(self.control),
            "CRASH_AT": str(at),
            "CRASH_MATCH": "* */checkpoint/*",
        }
        given = (self.folder / "warehouse", self.table.name, self.folder / "checkpoint", *self.source)
        return is_killed(given, environment)


@pytest.fixture
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_shim(tmp_path_factory.mktemp("kills"))


@pytest.mark.full
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "plain"])
def test_a_stream_that_is_killed_loses_and_doubles_nothing(
    session: Session, tmp_path: Path, shim: Path, fmt: str, keyed: bool
) -> None:
    """Every three batches a compaction runs beside it where the table is keyed."""
    key, options = (" PRIMARY KEY", " TBLPROPERTIES ('watermark-key' = 'ts')") if keyed else ("", "")
    session.sql(f"CREATE TABLE {fmt}.default.t (id INT{key}, ts BIGINT, n INT){options}")
    table, control = session.table(f"{fmt}.default.t"), shim.with_name("control")
    stream = Stream(shim, control, tmp_path, table, ("files", tmp_path / "input", SCHEMA, 3 if keyed else 99))
    draw = random.Random(str(table.name))
    batches = drawn(draw, BATCHES)
    write(tmp_path / "input", batches)
    made = [made_of(batches[:count], keyed) for count in range(BATCHES + 1)]
    reached = 0
    for life in range(KILLS):
        at = draw.randrange(1, LONGEST)
        assert stream.live(at), f"life {life} got through"
        found = rows_at(table)
        assert found in made[reached:], f"life {life} killed at operation {at}, behind batch {reached}"
        reached += made[reached:].index(found)
    assert 0 < reached < BATCHES
    assert not stream.live(0)
    assert rows_at(table) == made[BATCHES]


@pytest.mark.full
def test_changes_of_a_table_go_on_where_their_stream_was_killed(
    session: Session, tmp_path: Path, shim: Path, fmt: str
) -> None:
    source = _made(session, fmt)
    session.sql(f"CREATE TABLE {fmt}.default.copy (id INT, ts BIGINT, n INT, kind STRING, at BIGINT)")
    copy = session.table(f"{fmt}.default.copy")
    stream = Stream(shim, shim.with_name("control"), tmp_path, copy, ("changes", source.name))
    draw = random.Random(str(source.name))
    batches = drawn(draw, 6 * (KILLS_OUT + 1))
    came: Counter[Change] = Counter()
    for life in range(KILLS_OUT + 1):
        for batch in batches[6 * life : 6 * life + 6]:
            _put(source, batch)
        source.delete([draw.randrange(12)])
        if life == 1:
            source.compact(full=True)
        # while rows are missing, a life may have only one batch
        at = draw.randrange(1, LONGEST if came else FIRST) if life < KILLS_OUT else 0
        assert stream.live(at) == bool(at), f"life {life} and operation {at}"
        found = copy.to_df().collect()
        came = Counter((row.kind, row["at"], (row.id, row.ts, row.n)) for row in found)
        begun = min((version for _, version, _ in came), default=source.splits().version)
        wanted = feed(source, begun)
        wanted.update(("insert", begun, row) for row in rows_at(source, begun).elements())
        assert came == wanted if not at else not came - wanted, f"life {life} and operation {at}"


def _made(session: Session, fmt: str) -> Table:
    session.sql(f"CREATE TABLE {fmt}.default.t ({SCHEMA}, PRIMARY KEY (id)) TBLPROPERTIES ('watermark-key' = 'ts')")
    return session.table(f"{fmt}.default.t")


def _put(table: Table, rows: list[Row]) -> None:
    ids, times, numbers = zip(*rows, strict=True)
    names = {"id": pa.array(ids, pa.int32()), "ts": pa.array(times, pa.int64()), "n": pa.array(numbers, pa.int32())}
    table.upsert(pa.table(names))
