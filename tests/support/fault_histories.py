"""Statements on a bucket whose store has drawn faults: the report of each one, and the tables afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.bucket_lake import COLUMNS, BucketLake
from tests.support.fault_sequences import FaultSequence, drawn, hurried, playing
from trinity import Column, Session
from trinity.errors import TrinityError
from trinity.spi import CommitResult
from trinity.storage import Location, ObjectStore

_STATEMENTS = (
    *("append", "append", "append", "txn", "create", "drop", "alter", "folder", "folder"),
    *("upsert", "upsert", "remove", "compact", "compact", "vacuum"),
)
_KEYS = 3
_UNKNOWN = "COMMIT_STATE_UNKNOWN"
_TOLD = ("FILESYSTEM_ERROR", "PERMISSION_DENIED", _UNKNOWN)
"""Codes that a fault of the store may raise."""


@dataclass(frozen=True)
class Statement:
    """A statement, and the fault that is injected while it runs."""

    kind: str
    faults: FaultSequence


History = tuple[Statement, ...]


def drawn_history(seed: int) -> History:
    """Draw a history."""
    random = Random(seed)
    return tuple(Statement(random.choice(_STATEMENTS), drawn(random)) for _ in range(random.choice((2, 3, 4))))


def play(cloud: BucketLake, history: History) -> None:
    """Play a history, and compare what each statement reported with what the tables hold afterwards.

    Raises:
        AssertionError: a statement reported something untrue, or rows are lost or duplicated.
    """
    _Player(cloud).play(history)


@dataclass
class _Player:
    lake: BucketLake
    rows: dict[str, Counter[int]] = field(default_factory=dict)
    live: dict[int, int] = field(default_factory=dict)
    """Key of the keyed table -> number of its row."""
    numbers: int = 0

    def play(self, history: History) -> None:
        with self.lake.connect() as session:
            self._make(session, "t0")
            session.create_table("keyed", COLUMNS, primary_key=["k"])
            self.rows["keyed"] = Counter()
            if self.lake.fmt == "parquet":
                self._register(session)
            for statement in history:
                self._statement(session, statement)

    def _statement(self, session: Session, statement: Statement) -> None:
        step = getattr(self, f"_{statement.kind}")(session)
        if step is None:
            return
        with hurried(), playing(self.lake.server.proxy, statement.faults):
            error = _refusal(step.act)
        code = error and error.code
        assert code in (None, *_TOLD), (statement, error)
        with self.lake.connect() as fresh:
            stands = step.stands(fresh) if step.stands is not None else code is None
            assert code == _UNKNOWN or stands == (code is None), (statement, code, stands)
            step.settle(fresh, stands)
            for one in (fresh, session):
                self._check(one, statement)

    def _check(self, session: Session, statement: Statement) -> None:
        assert sorted(session.list_tables("lake", "default")) == sorted(self.rows), statement
        for name, expected in self.rows.items():
            found = self._read(session, name)
            assert found == expected, (statement, name, found, expected)

    # -- statements -------------------------------------------------------------------------------------

    def _append(self, session: Session, name: str = "t0", txn: tuple[str, int] | None = None) -> _Step:
        number = self._number()
        table = session.table(name)

        def settle(fresh: Session, stands: bool) -> None:
            if txn and not stands:
                assert not fresh.table(name).append(_rows(number), txn=txn).skipped
            elif txn:
                assert fresh.table(name).append(_rows(number), txn=txn).skipped
            if txn or stands:
                self.rows[name][number] += 1

        return _Step(
            lambda: table.append(_rows(number), txn=txn), lambda fresh: self._read(fresh, name)[number] > 0, settle
        )

    def _txn(self, session: Session) -> _Step:
        return self._append(session, txn=("loader", self.numbers))

    def _folder(self, session: Session) -> _Step | None:
        return self._append(session, "folder") if "folder" in self.rows else None

    def _create(self, session: Session) -> _Step:
        name = f"t{self._number()}"

        def settle(fresh: Session, stands: bool) -> None:
            if stands:
                self.rows[name] = Counter()

        return _Step(lambda: session.create_table(name, COLUMNS), lambda fresh: _there(fresh, name), settle)

    def _drop(self, session: Session) -> _Step | None:
        name = next((name for name in self.rows if name not in ("t0", "keyed", "folder")), None)
        if name is None:
            return None

        def settle(fresh: Session, stands: bool) -> None:
            if stands:
                del self.rows[name]

        return _Step(lambda: session.drop_table(name), lambda fresh: not _there(fresh, name), settle)

    def _alter(self, session: Session) -> _Step:
        column = f"c{self._number()}"
        table = session.table("t0")
        return _Step(
            lambda: table.add_column(Column(column, "int")),
            lambda fresh: any(c.name == column for c in fresh.table("t0").definition.columns),
        )

    def _upsert(self, session: Session) -> _Step:
        number = self._number()
        return self._change(number % _KEYS, number, lambda: _put(session, number))

    def _remove(self, session: Session) -> _Step:
        number = self._number()
        if number % _KEYS not in self.live:
            return self._upsert(session)
        return self._change(number % _KEYS, None, lambda: session.table("keyed").delete([number % _KEYS]))

    def _change(self, key: int, number: int | None, act: Callable[[], object]) -> _Step:
        """Return the step that sets the row of a key to a number, or deletes it."""
        after = {**self.live, key: number}
        expected = {k: n for k, n in after.items() if n is not None}

        def settle(fresh: Session, stands: bool) -> None:
            if stands:
                self.live, self.rows["keyed"] = expected, Counter(expected.values())

        return _Step(act, lambda fresh: self._read(fresh, "keyed") == Counter(expected.values()), settle)

    def _compact(self, session: Session) -> _Step:
        """Return the step that compacts a log with something to compact."""
        number = self._number()
        _put(session, number)
        self.live[number % _KEYS] = number
        self.rows["keyed"] = Counter(self.live.values())
        table, strength = session.table("keyed"), ("full", "resolve", "minor")[number % 3]
        before = table.version
        if strength != "full" and (self.lake.fmt == "parquet" or strength == "minor"):
            strength = "full"
        return _Step(lambda: table.compact(strength), lambda fresh: fresh.table("keyed").version > before)

    def _vacuum(self, session: Session) -> _Step:
        """Return the step that vacuums a table: it removes no row, even if it is interrupted."""
        return _Step(lambda: session.table("keyed").vacuum("0 seconds"), None)

    # -- helpers ----------------------------------------------------------------------------------------

    def _number(self) -> int:
        self.numbers += 1
        return self.numbers

    def _read(self, session: Session, name: str) -> Counter[int]:
        if name == "keyed":
            return Counter(map(int, session.table(name).to_arrow(columns=["v"])["v"].to_pylist()))
        files = [Location.of(file.path).for_arrow for file in session.table(name).splits().files]
        tables = [pq.read_table(file, columns=["k"], filesystem=self.lake.server.files) for file in files]
        return Counter(k for table in tables for k in table.column("k").to_pylist())

    def _make(self, session: Session, name: str) -> None:
        session.create_table(name, COLUMNS).append(_rows(0))
        self.rows[name] = Counter({0: 1})

    def _register(self, session: Session) -> None:
        place = f"{self.lake.place}-folder"
        written = pa.BufferOutputStream()
        pq.write_table(_rows(0), written)
        ObjectStore(place).put("first.parquet", written.getvalue().to_pybytes())  # also in the tests' Google server
        session.register("folder", "parquet", place)
        self.rows["folder"] = Counter({0: 1})


@dataclass(frozen=True)
class _Step:
    """A statement.

    Attributes:
        act: runs it.
        stands: returns, from a fresh session, whether it took effect; None where only its own report says so.
        settle: records the outcome.
    """

    act: Callable[[], object]
    stands: Callable[[Session], bool] | None
    settle: Callable[[Session, bool], None] = lambda fresh, stands: None


def _refusal(act: Callable[[], object]) -> TrinityError | None:
    try:
        act()
    except TrinityError as error:
        return error
    return None


def _put(session: Session, number: int) -> CommitResult:
    return session.table("keyed").upsert({"k": number % _KEYS, "v": str(number)})


def _rows(number: int) -> pa.Table:
    return pa.table({"k": pa.array([number], pa.int32()), "v": ["x"]})


def _there(session: Session, name: str) -> bool:
    return name in session.list_tables("lake", "default")
