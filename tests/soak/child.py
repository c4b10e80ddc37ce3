"""A process of the soak test: actions drawn by its seed, noted before and after; it may kill itself in between.

Usage: python child.py ROLE NUMBER LIFE ACTIONS WAREHOUSE FORMAT NOTES

A later life continues after the notes of the previous ones: a write with txn that is not noted as done is repeated.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa

import trinity
from trinity import Column, Session, TrinityError

ACCOUNTS = 8
TOTAL = 800
GONE = {"TRANSACTION_CONFLICT", "TABLE_NOT_FOUND", "TABLE_ALREADY_EXISTS"}
SETTINGS = {
    "spark.master": "local[1]",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m",
}


class Notes:
    """The notes of a process, one line for each begin and end: ``begin 3 transfer``, ``done 3``, ``lost 3``."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text().split("\n") if path.exists() else []
        self.begun = [line.split()[1:] for line in lines if line.startswith("begin")]
        self.ended = {line.split()[1]: line.split()[0] for line in lines if line.startswith(("done", "lost"))}

    def add(self, line: str) -> None:
        with open(self._path, "a") as out:
            out.write(line + "\n")

    def count(self, what: str) -> tuple[int, int]:
        """Return how often an action was done for certain, and how often at most."""
        ends = [self.ended.get(number) for number, name in self.begun if name == what]
        return ends.count("done"), ends.count("done") + ends.count(None)


class Worker:
    """The actions of a process on the tables of the soak test."""

    def __init__(self, session: Session, fmt: str, number: int, draw: random.Random) -> None:
        self._session, self._schema, self._number, self._draw = session, f"{fmt}.default", number, draw

    def transfer(self, step: int) -> None:
        """Move money between two accounts."""
        one, other = self._draw.sample(range(ACCOUNTS), 2)
        amount = self._draw.randint(1, 9)
        self._session.sql(
            f"MERGE INTO {self._schema}.accounts t USING (SELECT * FROM VALUES ({one}, -{amount}), ({other}, {amount}) "
            "AS s(id, d)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET balance = t.balance + s.d"
        )

    def increment(self, step: int) -> None:
        """Increment the counter that all processes share."""
        self._session.sql(f"UPDATE {self._schema}.counters SET n = n + 1 WHERE id = 0")

    def append(self, step: int) -> None:
        """Append a row to a plain table exactly once (L4)."""
        row = {"worker": pa.array([self._number], pa.int32()), "step": pa.array([step], pa.int32())}
        self._session.table(f"{self._schema}.events").append(pa.table(row), txn=(f"worker {self._number}", step))

    def upsert(self, step: int) -> None:
        """Upsert the newest step of this process."""
        row = {"worker": pa.array([self._number], pa.int32()), "step": pa.array([step], pa.int32())}
        self._session.table(f"{self._schema}.latest").upsert(pa.table(row))

    def read(self, step: int) -> None:
        """Check that the sum of all accounts is unchanged, whatever other processes do."""
        [row] = self._session.sql(f"SELECT sum(balance) s, count(*) n FROM {self._schema}.accounts").collect()
        if (row.s, row.n) != (TOTAL, ACCOUNTS):
            raise AssertionError(f"{row.n} accounts hold {row.s}")

    def change_other_table(self, step: int) -> None:
        """Append a row to a table that other processes drop and make."""
        self._session.table(f"{self._schema}.aside").append(pa.table({"k": pa.array([step], pa.int32())}))

    def compact(self, step: int) -> None:
        """Compact one of the tables, where needed or in full."""
        table = self._draw.choice(["accounts", "counters", "events", "latest"])
        self._session.table(f"{self._schema}.{table}").compact(full=self._draw.random() < 0.5)

    def vacuum(self, step: int) -> None:
        """Vacuum with a retention longer than any running statement."""
        table = self._draw.choice(["accounts", "counters", "events", "latest", "aside"])
        self._session.table(f"{self._schema}.{table}").vacuum("2 minutes")

    def alter(self, step: int) -> None:
        """Add a column to the accounts, or drop it again."""
        table = self._session.table(f"{self._schema}.accounts")
        extra = [c.name for c in table.definition.visible if c.name.startswith("extra")]
        if extra:
            table.drop_column(extra[0])
        else:
            table.add_column(Column(f"extra{step}", "int"))

    def remake(self, step: int) -> None:
        """Replace a table by a new one of the same name."""
        self._session.sql(f"DROP TABLE IF EXISTS {self._schema}.aside")
        self._session.sql(f"CREATE TABLE IF NOT EXISTS {self._schema}.aside (k INT)")


Action = Callable[[Worker, int], None]
ROLES: dict[str, Sequence[Action]] = {
    "writer": [Worker.transfer] * 4
    + [Worker.increment] * 4
    + [Worker.append] * 3
    + [Worker.upsert] * 2
    + [Worker.read] * 2
    + [Worker.change_other_table] * 2,
    "carer": [Worker.compact] * 5 + [Worker.vacuum] * 2 + [Worker.alter] * 2 + [Worker.remake] * 2 + [Worker.read] * 3,
}
"""The actions of each role, the frequent ones several times."""


def main(role: str, number: str, life: str, actions: str, warehouse: str, fmt: str, path: str) -> None:
    notes, draw = Notes(Path(path)), random.Random(f"{role} {number} {life}")
    steps = len(notes.begun)
    again = [int(step) for step, name in notes.begun if name == "append" and step not in notes.ended]
    with trinity.connect(warehouse, spark_settings=SETTINGS) as session:
        worker = Worker(session, fmt, int(number), draw)
        session.sql("SELECT 1").collect()
        for step in again:  # with its txn
            _act(worker.append, step, notes)
        for step in range(steps, int(actions)):
            action = draw.choice(ROLES[role])
            if draw.random() < 0.06:
                threading.Timer(draw.uniform(0, 2), _die).start()
            notes.add(f"begin {step} {action.__name__}")
            _act(partial(action, worker), step, notes)


def _act(action: Callable[[int], None], step: int, notes: Notes) -> None:
    try:
        action(step)
    except TrinityError as error:
        if error.code not in GONE:
            raise
        notes.add(f"lost {step} {error}")
    else:
        notes.add(f"done {step}")


def _die() -> None:
    os.killpg(0, signal.SIGKILL)  # with its JVM


if __name__ == "__main__":
    main(*sys.argv[1:])
