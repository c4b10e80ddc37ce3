"""L7: turns of the writers of one process. All formats share them, so they are tested with tables in memory."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.orders import make_orders
from tests.support.refusals import refused
from tests.support.threads import meanwhile
from trinity import Session, Table, TrinityError
from trinity.clock import clock_ahead
from trinity.engine.compacting.after_commit import begin
from trinity.spark.settings import _needed_settings, _statements
from trinity.storage import CommitRaced
from trinity.storage.commits import _lock, _locks

ROW = {"order_id": "a", "ts": 1, "deleted": False, "amount": 1.0}


@pytest.fixture
def orders(local: Session) -> Table:
    return make_orders(local, "memory")


class _Holder:
    """A thread that has a turn until :meth:`leave`."""

    def __init__(self, turn: AbstractContextManager[object]) -> None:
        self._turn = turn
        self._has_it, self._may_leave = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._hold, daemon=True)
        self._thread.start()
        self._has_it.wait()

    def _hold(self) -> None:
        with self._turn:
            self._has_it.set()
            self._may_leave.wait()

    def leave(self) -> None:
        self._may_leave.set()
        self._thread.join()


def _interrupted(patch: pytest.MonkeyPatch, work: Callable[[], object], before: Callable[[], object]) -> None:
    """Interrupt a writer while it waits for its turn, as Ctrl-C does, after ``before`` has run."""

    class Interrupted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            if not self.is_set():
                before()
                raise KeyboardInterrupt
            return True

    with patch.context() as within:
        within.setattr("trinity.storage.commits.threading", SimpleNamespace(Event=Interrupted, Lock=threading.Lock))
        with pytest.raises(KeyboardInterrupt):
            work()


def _check_writable(table: Table, turn: AbstractContextManager[object]) -> None:
    """Check that others get the turn, and write. The thread is a daemon, so that a failure does not hang."""
    done = threading.Event()

    def write() -> None:
        with turn:
            pass
        table.upsert([{**ROW, "order_id": "b"}])
        done.set()

    threading.Thread(target=write, daemon=True).start()
    assert done.wait(60), "nobody has the turn, and nobody gets it"
    assert "b" in table.to_arrow()["order_id"].to_pylist()


@pytest.mark.inner
@pytest.mark.parametrize("granted", [False, True], ids=["waiting", "granted"])
@pytest.mark.parametrize("kind", ["commit", "statement"])
def test_l7_a_writer_that_is_interrupted_while_it_waits_passes_its_turn_on(
    orders: Table, kind: str, monkeypatch: pytest.MonkeyPatch, granted: bool
) -> None:
    table, location = orders, orders.handle.location
    table.upsert([ROW])

    def turn() -> AbstractContextManager[object]:
        return _lock(location if kind == "commit" else f"{location} statement").taken()

    def statement() -> None:
        meanwhile(monkeypatch, table, "begin_merge", lambda: table.upsert([ROW]))
        table.update("order_id = 'a'", {"amount": "2"})

    holder = _Holder(turn())
    work = statement if kind == "statement" else lambda: table.upsert([ROW])
    _interrupted(monkeypatch, work, holder.leave if granted else lambda: None)
    holder.leave()
    _check_writable(table, turn())


@pytest.mark.inner
def test_locks_of_tables_that_nobody_writes_to_are_forgotten(orders: Table) -> None:
    orders.upsert([ROW])
    assert orders.handle.location not in _locks


@pytest.fixture
def move() -> Iterator[Callable[[dt.timedelta], None]]:
    """Return a function that moves the clock forward, for the rest of the test."""
    with ExitStack() as moved:
        yield lambda by: moved.enter_context(clock_ahead(by))


LATER = dt.timedelta(minutes=11)
"""More than ``commit.retry.timeout`` by default."""


def _lose_once(patch: pytest.MonkeyPatch, table: Table, then: Callable[[], object]) -> None:
    """Let the table's next commit lose a race; ``then`` runs at that moment."""
    metadata: Any = table.connector.metadata
    write = metadata.write_version

    def lost(*_: object) -> None:
        patch.setattr(metadata, "write_version", write)
        then()
        raise CommitRaced("another writer was first")

    patch.setattr(metadata, "write_version", lost)


def test_l7_a_statement_whose_commit_has_used_up_the_time_does_not_run_again(
    orders: Table, monkeypatch: pytest.MonkeyPatch, move: Callable[[dt.timedelta], None]
) -> None:
    orders.upsert([ROW])
    _lose_once(monkeypatch, orders, lambda: move(LATER))
    with refused("TRANSACTION_CONFLICT"):
        orders.update("order_id = 'a'", {"amount": "2"})
    assert orders.to_arrow()["amount"].to_pylist() == [1.0]


def test_l7_a_commit_has_the_time_that_its_statement_has_left(
    orders: Table, monkeypatch: pytest.MonkeyPatch, move: Callable[[dt.timedelta], None]
) -> None:
    orders.upsert([ROW])

    def conflict() -> None:
        orders.upsert([{**ROW, "ts": 2}])
        meanwhile(monkeypatch, orders, "begin_merge", second_conflict)

    def second_conflict() -> None:
        move(LATER)
        _lose_once(monkeypatch, orders, lambda: None)

    meanwhile(monkeypatch, orders, "begin_merge", conflict)
    with refused("TRANSACTION_CONFLICT", "commit.retry.timeout"):
        orders.update("order_id = 'a'", {"amount": "2"})
    assert orders.to_arrow()["amount"].to_pylist() == [1.0]


def test_l7_a_statement_that_has_written_for_longer_than_the_time_runs_again(
    orders: Table, monkeypatch: pytest.MonkeyPatch, move: Callable[[dt.timedelta], None]
) -> None:
    orders.upsert([ROW])

    def conflict() -> None:
        move(LATER)
        orders.upsert([{**ROW, "ts": 2, "amount": 5.0}])

    meanwhile(monkeypatch, orders, "begin_merge", conflict)
    orders.update("order_id = 'a'", {"amount": "amount + 1"})
    assert orders.to_arrow()["amount"].to_pylist() == [6.0]


@pytest.mark.inner
def test_l7_a_statement_waits_for_its_turn_as_long_as_it_may_run_again(
    local: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_orders(local, "memory")
    local.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('commit.retry.timeout' = '100 ms')")
    table = local.table(table.name)
    table.upsert([ROW])
    meanwhile(monkeypatch, table, "begin_merge", lambda: table.upsert([{**ROW, "ts": 2}]))
    caught = list[TrinityError]()

    def update() -> None:
        try:
            table.update("order_id = 'a'", {"amount": "2"})
        except TrinityError as error:
            caught.append(error)

    holder = _Holder(_lock(f"{table.handle.location} statement").taken())
    thread = threading.Thread(target=update, daemon=True)
    thread.start()
    thread.join(60)
    holder.leave()
    assert [error.code for error in caught] == ["TRANSACTION_CONFLICT"]


@pytest.mark.inner
def test_a_compaction_whose_thread_does_not_start_leaves_its_place(
    orders: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    done = threading.Event()
    with monkeypatch.context() as within:
        within.setattr(threading.Thread, "start", full)
        with pytest.raises(RuntimeError):
            begin(orders, done.set)
    assert begin(orders, done.set)
    assert done.wait(60)


@pytest.mark.inner
def test_settings_are_restored_if_setting_them_is_interrupted() -> None:
    now = {"spark.sql.ansi.enabled": "false", "spark.sql.caseSensitive": "true"}
    before = dict(now)

    def put(key: str, value: str) -> None:
        now[key] = value
        if key == "spark.sql.caseSensitive" and value == "FALSE":
            raise KeyboardInterrupt

    settings = SimpleNamespace(mkString=lambda _: "\n".join(f"{key} -> {value}" for key, value in before.items()))
    state = SimpleNamespace(conf=lambda: SimpleNamespace(getAllConfs=lambda: settings))
    session = SimpleNamespace(sessionUUID=lambda: "interrupted", sessionState=lambda: state)
    spark: Any = SimpleNamespace(conf=SimpleNamespace(set=put, unset=lambda key: now.pop(key, None)))
    with pytest.raises(KeyboardInterrupt), _needed_settings(spark, session):
        pass
    assert {key: now[key] for key in before} == before
    assert "interrupted" not in _statements
