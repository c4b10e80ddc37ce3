"""Several processes on the same tables, some killed: acknowledged writes count once, others at most once (L7).

Each process draws its actions by its number and life, so a run can be repeated as far as the operating system allows.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from tests.soak.child import ACCOUNTS, TOTAL, Notes
from tests.support.paths import TESTS
from tests.support.threads import at_once
from trinity import Column, Session

CHILD = TESTS / "soak" / "child.py"
KILLED = -9
LIVES = 12
WORKERS = [("writer", 1), ("writer", 2), ("carer", 3)]
ACTIONS = {"writer": 60, "carer": 40}


@pytest.mark.full
def test_l7_a_soak(session: Session, warehouse: Path, fmt: str, tmp_path: Path) -> None:
    _make(session, fmt)
    notes = {number: tmp_path / f"{role}-{number}.txt" for role, number in WORKERS}
    works = [partial(_live, role, number, warehouse, fmt, notes[number]) for role, number in WORKERS]
    assert at_once(works) == []
    _compare(session, fmt, {number: Notes(path) for number, path in notes.items()})


def _make(session: Session, fmt: str) -> None:
    whole, keyed = pa.int32(), ["id"]
    columns = [Column("id", "int"), Column("balance", "int")]
    accounts = session.create_table(f"{fmt}.default.accounts", columns, primary_key=keyed)
    ids = pa.array(range(ACCOUNTS), whole)
    accounts.upsert(pa.table({"id": ids, "balance": pa.array([TOTAL // ACCOUNTS] * ACCOUNTS, whole)}))
    counters = session.create_table(
        f"{fmt}.default.counters", [Column("id", "int"), Column("n", "int")], primary_key=keyed
    )
    counters.upsert(pa.table({"id": pa.array([0], whole), "n": pa.array([0], whole)}))
    steps = [Column("worker", "int"), Column("step", "int")]
    session.create_table(f"{fmt}.default.events", steps)
    session.create_table(f"{fmt}.default.latest", steps, primary_key=["worker"])
    session.create_table(f"{fmt}.default.aside", [Column("k", "int")])


def _live(role: str, number: int, warehouse: Path, fmt: str, notes: Path) -> None:
    """Run a process, and start it again whenever it was killed."""
    for life in range(LIVES):
        given = (role, number, life, ACTIONS[role], warehouse, fmt, notes)
        command = [sys.executable, str(CHILD), *map(str, given)]
        done = subprocess.run(command, start_new_session=True, capture_output=True, text=True)
        if done.returncode != KILLED:
            assert done.returncode == 0, f"{role} {number}, life {life}:\n{done.stderr[-4000:]}"
            return
    raise AssertionError(f"{role} {number} was killed {LIVES} times")


def _compare(session: Session, fmt: str, notes: dict[int, Notes]) -> None:
    money = session.sql(f"SELECT sum(balance) s, count(*) n FROM {fmt}.default.accounts").collect()[0]
    assert (money.s, money.n) == (TOTAL, ACCOUNTS)
    counts = [n.count("increment") for n in notes.values()]
    [counted] = session.sql(f"SELECT n FROM {fmt}.default.counters").collect()
    assert sum(least for least, _ in counts) <= counted.n <= sum(most for _, most in counts)
    events = Counter((r.worker, r.step) for r in session.sql(f"SELECT * FROM {fmt}.default.events").collect())
    latest = {r.worker: r.step for r in session.sql(f"SELECT * FROM {fmt}.default.latest").collect()}
    for number, found in notes.items():
        appended = {int(step) for step, name in found.begun if name == "append" and found.ended.get(step) == "done"}
        assert {step: n for (worker, step), n in events.items() if worker == number} == dict.fromkeys(appended, 1)
        upserts = [int(step) for step, name in found.begun if name == "upsert" and found.ended.get(step) != "lost"]
        known = [step for step in upserts if found.ended.get(str(step)) == "done"]
        newest = upserts[upserts.index(known[-1]) :] if known else [None, *upserts]
        assert latest.get(number) in newest
    other = session.table(f"{fmt}.default.aside")
    assert other.to_df().count() == sum(f.rows for f in other.splits().files)
