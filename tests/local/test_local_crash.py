"""L6 without Spark: a process is killed at each storage operation in turn; the table reads as before or as after."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import trinity
from tests.support.crash import COMMIT, Crash, built_shim
from tests.support.crash_rows import (
    BATCH,
    FIRST,
    LATER,
    MERGE,
    PLAIN_MERGE,
    SECOND,
    Row,
    arrow,
    made_victim,
    merged,
    plainly_merged,
    values,
)
from tests.support.paths import TESTS
from tests.support.tables import ordered_rows
from trinity import Session, Table

LIVE = merged(FIRST, SECOND)


def low(row: Row) -> bool:
    """Return whether the statements apply to a row."""
    return row[0] < 20


@dataclass(frozen=True)
class Action:
    """An action that is killed.

    Attributes:
        word: the name of the action in the child's program.
        statement: the SQL text that it runs, with placeholders for the table's name and a source of rows.
        versions: the row versions that it appends to a keyed table.
        plain: the rows of a plain table afterwards; None for a keyed one.
    """

    word: str
    statement: str = ""
    versions: tuple[Row, ...] = ()
    plain: tuple[Row, ...] | None = None


UPDATE, DELETE = "UPDATE {table} SET v = 'changed' WHERE id < 20", "DELETE FROM {table} WHERE id < 20"
ACTIONS = {
    "upsert": Action("upsert", versions=tuple(BATCH)),
    "merge": Action("sql", MERGE, tuple(BATCH)),
    "update": Action("sql", UPDATE, tuple((*row[:3], "changed") for row in LIVE if low(row))),
    "delete": Action("sql", DELETE, tuple((*row[:2], True, row[3]) for row in LIVE if low(row))),
    "compact": Action("compact"),
    "resolve": Action("resolve"),
    "vacuum": Action("vacuum"),
    "plain merge": Action("sql", PLAIN_MERGE, plain=tuple(plainly_merged())),
    "plain update": Action("sql", UPDATE, plain=tuple((*r[:3], "changed") if low(r) else r for r in FIRST)),
    "plain delete": Action("sql", DELETE, plain=tuple(row for row in FIRST if not low(row))),
}


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_shim(tmp_path_factory.mktemp("shim"))


@pytest.fixture
def crash(shim: Path, tmp_path: Path, warehouse: Path) -> Crash:
    folder = tmp_path / "crash"
    folder.mkdir()
    pq.write_table(arrow(BATCH), folder / "batch.parquet")
    return Crash(shim, folder, warehouse, TESTS / "crash" / "in_process.py")


def victim(session: Session, catalog: str, name: str) -> Table:
    """Make a table of two commits, prepared so that the action has something to do."""
    plain = ACTIONS[name].plain is not None
    table = made_victim(session, f"{catalog}.default.victim", plain=plain, base=name == "resolve")
    if name == "vacuum":
        table.compact(full=True)
    return table


def words(name: str, crash: Crash, table: str) -> list[object]:
    """Return the child's arguments."""
    action = ACTIONS[name]
    what = (
        action.statement.format(table=table, rows=values(BATCH)) if action.statement else crash.folder / "batch.parquet"
    )
    return [action.word, crash.warehouse, table, what]


def check(table: Table, name: str, killed: bool, where: str) -> None:
    """Check that the state is as before or after the action, and that later rows fold, before and after compactions."""
    action, found = ACTIONS[name], ordered_rows(table)
    if action.plain is not None:
        assert found in ([sorted(FIRST), sorted(action.plain)] if killed else [sorted(action.plain)]), where
        table.append(arrow(LATER))
        assert ordered_rows(table) == sorted([*found, *LATER]), where
        return
    done = [FIRST, SECOND, list(action.versions)]
    assert found in ([LIVE, merged(*done)] if killed else [merged(*done)]), where
    if name == "upsert":
        table.upsert(arrow(BATCH), txn=("crash", 1))  # a retry leads to the state after, once
        found = ordered_rows(table)
        assert found == merged(*done), where
    state = done if found == merged(*done) else done[:2]
    table.upsert(arrow(LATER))
    for maintain in (lambda: None, lambda: table.compact("resolve"), lambda: table.compact(full=True), table.vacuum):
        maintain()
        assert ordered_rows(table) == merged(*state, LATER), where


def sweep(crash: Crash, catalog: str, name: str) -> int:
    """Check the table as a kill at each operation leaves it, and return the number of these states."""
    with trinity.connect(crash.warehouse, engine="local") as session:
        table = str(victim(session, catalog, name).name)
    reached = list[str]()
    for where in crash.states(words(name, crash, table)):
        with trinity.connect(crash.warehouse, engine="local") as session:
            check(session.table(table), name, where != "end", f"{catalog} {name} killed at {where}")
        reached.append(where)
    return len(reached)


def kill_around_commit(crash: Crash, catalog: str, name: str, at: int) -> None:
    with trinity.connect(crash.warehouse, engine="local") as session:
        table = str(victim(session, catalog, name).name)
    killed = crash.run(words(name, crash, table), at, COMMIT[catalog])
    where = f"{catalog} {name} at {at}: {crash.last_operation()}"
    assert killed or at > 1, f"{where}: the operation did not come"
    with trinity.connect(crash.warehouse, engine="local") as session:
        check(session.table(table), name, killed, where)


@pytest.mark.parametrize("name", ["merge", *(pytest.param(n, marks=pytest.mark.full) for n in ACTIONS if n != "merge")])
@pytest.mark.parametrize("at", [1, pytest.param(2, marks=pytest.mark.full)])
@pytest.mark.parametrize(
    "catalog", ["parquet", *(pytest.param(c, marks=pytest.mark.full) for c in COMMIT if c != "parquet")]
)
def test_killed_around_the_commit(crash: Crash, catalog: str, name: str, at: int) -> None:
    if name != "vacuum":  # it commits nothing
        kill_around_commit(crash, catalog, name, at)


@pytest.mark.parametrize(
    "name", ["compact", *(pytest.param(n, marks=pytest.mark.full) for n in ACTIONS if n != "compact")]
)
@pytest.mark.parametrize(
    "catalog", ["parquet", *(pytest.param(c, marks=pytest.mark.full) for c in COMMIT if c != "parquet")]
)
def test_killed_at_every_operation(crash: Crash, catalog: str, name: str) -> None:
    assert sweep(crash, catalog, name) >= 3
