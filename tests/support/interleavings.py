"""Actions that run wholly within another one: a serial order must explain the result, or one of them failed (L7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

import pyarrow as pa

import trinity
from trinity.errors import TrinityError
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.race_actions import FIRST, definition, write

_CHECK: Final = "concurrency"
_CODES: Final = ("TRANSACTION_CONFLICT", "TABLE_NOT_FOUND")
_COMMITS: Final = (
    "finish_insert", "finish_merge", "finish_rewrite", "finish_replace", "truncate", "alter_table", "vacuum",
    "create_table",
)  # fmt: skip
_ROWS: Final = ((1, 10), (3, 30))


@dataclass(frozen=True)
class World:
    """The state that a reader can see: rows of (k, n), sorted, and the added columns."""

    rows: tuple[tuple[int, int], ...] = ()
    columns: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Action:
    """An action of a user on a table of k and n.

    Attributes:
        run: does the action, given the session, the table's name and a column that no other action adds.
        effect: returns the world after it, given whether the table is keyed, the world before it and the column.
        spark: whether it needs Spark jobs.
    """

    run: Callable[[trinity.Session, str, str], object]
    effect: Callable[[bool, World, str], World]
    spark: bool = True


def _remake(session: trinity.Session, name: str, _: str) -> None:
    keyed = session.table(name).definition.keyed
    session.sql(f"DROP TABLE {name}")
    session.sql(f"CREATE TABLE {name} {definition(keyed)}")


def _replace(session: trinity.Session, name: str, _: str) -> None:
    rows = pa.table({"k": pa.array([9], pa.int32()), "n": pa.array([90], pa.int32())})
    session.create_table(name, rows, primary_key=session.table(name).definition.primary_key, replace=True)


_MERGE: Final = """MERGE INTO {name} t USING (SELECT * FROM VALUES (1, 5), (4, 4) AS s(k, n)) s ON t.k = s.k
WHEN MATCHED THEN UPDATE SET n = t.n + s.n WHEN NOT MATCHED THEN INSERT (k, n) VALUES (s.k, s.n)"""


def _sql(text: str) -> Callable[[trinity.Session, str, str], object]:
    return lambda session, name, column: session.sql(text.format(name=name, column=column))


def _appended(keyed: bool, world: World, _: str) -> World:
    rows = (*world.rows, *_ROWS)
    return replace(world, rows=tuple(sorted(dict(rows).items() if keyed else rows)))


def _updated(_: bool, world: World, __: str) -> World:
    return replace(world, rows=tuple(sorted((k, n * 2 + 1 if k == 1 else n) for k, n in world.rows)))


def _merged(_: bool, world: World, __: str) -> World:
    rows = [(k, n + {1: 5, 4: 4}.get(k, 0)) for k, n in world.rows]
    rows += [(k, n) for k, n in ((1, 5), (4, 4)) if k not in dict(world.rows)]
    return replace(world, rows=tuple(sorted(rows)))


def _deleted(_: bool, world: World, __: str) -> World:
    return replace(world, rows=tuple(row for row in world.rows if row[0] != 1))


def _altered(_: bool, world: World, column: str) -> World:
    return replace(world, columns=world.columns | {column})


def _copied(keyed: bool, world: World, _: str) -> World:
    rows = [*world.rows, *((k, n + 100) for k, n in world.rows if k == 1)]
    return replace(world, rows=tuple(sorted(dict(rows).items() if keyed else rows)))


def _same(_: bool, world: World, __: str) -> World:
    return world


ACTIONS: Final[Mapping[str, Action]] = {
    "append": Action(lambda session, name, _: write(session.table(name), _ROWS), _appended, spark=False),
    "insert own": Action(_sql("INSERT INTO {name} (k, n) SELECT k, n + 100 AS n FROM {name} WHERE k = 1"), _copied),
    "update": Action(_sql("UPDATE {name} SET n = n * 2 + 1 WHERE k = 1"), _updated),
    "merge": Action(_sql(_MERGE), _merged),
    "delete": Action(_sql("DELETE FROM {name} WHERE k = 1"), _deleted),
    "truncate": Action(_sql("TRUNCATE TABLE {name}"), lambda _, world, __: replace(world, rows=()), spark=False),
    "compact": Action(lambda session, name, _: session.table(name).compact(), _same),
    "full compact": Action(lambda session, name, _: session.table(name).compact(full=True), _same),
    "vacuum": Action(lambda session, name, _: session.table(name).vacuum("0 seconds"), _same, spark=False),
    "alter": Action(_sql("ALTER TABLE {name} ADD COLUMN {column} INT"), _altered, spark=False),
    "replace": Action(_replace, lambda *_: World(((9, 90),)), spark=False),
    "remake": Action(_remake, lambda *_: World(), spark=False),
}
"""All actions by name; compaction and vacuum change nothing that a reader sees (L3)."""


def cheap() -> list[tuple[str, str]]:
    """Return the pairs of actions whose second needs no Spark job."""
    within = [name for name, action in ACTIONS.items() if not action.spark]
    return list(product(ACTIONS, within))


def interleave(session: trinity.Session, name: str, names: Sequence[str], *, keyed: bool) -> None:
    """Run the first action, and the others in sequence within it, right before it commits.

    Raises:
        NonConformance: no serial order explains the rows, or an error is not one of a lost race.
    """
    session.sql(f"CREATE TABLE {name} {definition(keyed)}")
    for row in FIRST:  # a log of two files
        write(session.table(name), [row])
    done: dict[int, bool] = {}

    def act(number: int) -> None:
        try:
            ACTIONS[names[number]].run(session, name, f"c{number}")
            done[number] = True
        except TrinityError as error:
            if error.code not in _CODES:
                raise NonConformance(_CHECK, f"{_story(names, keyed)}: {names[number]} failed: {error}") from error
            done[number] = False

    def others() -> None:
        for number in range(1, len(names)):
            act(number)

    with _BeforeCommit(session.table(name).connector.metadata, others):
        act(0)
    if len(done) < len(names):  # the first action had nothing to commit
        others()
    _compare(_final_world(session, name), names, done, keyed)


class _BeforeCommit:
    """A patch that calls a function once, right before the next commit of an adapter's metadata."""

    def __init__(self, metadata: Any, happens: Callable[[], object]) -> None:
        self._metadata, self._happens = metadata, happens

    def __enter__(self) -> None:
        for call in _COMMITS:
            setattr(self._metadata, call, self._wrapped(getattr(self._metadata, call)))

    def _wrapped(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def and_before(*arguments: Any, **options: Any) -> Any:
            self._restore()
            self._happens()
            return method(*arguments, **options)

        return and_before

    def _restore(self) -> None:
        for call in _COMMITS:
            vars(self._metadata).pop(call, None)

    def __exit__(self, *_: object) -> None:
        self._restore()


def _final_world(session: trinity.Session, name: str) -> World:
    rows = [(row.k, row.n) for row in session.sql(f"SELECT k, n FROM {name}").collect()]
    columns = {column.name for column in session.table(name).definition.visible}
    return World(tuple(sorted(rows)), frozenset(columns - {"k", "n"}))


def _compare(seen: World, names: Sequence[str], done: Mapping[int, bool], keyed: bool) -> None:
    """Compare with every order that keeps the sequence of the actions within; a failed one did nothing."""
    within = [number for number in range(1, len(names)) if done[number]]
    orders = [within]
    if done[0]:
        orders = [[*within[:at], 0, *within[at:]] for at in range(len(within) + 1)]
    worlds = []
    for order in orders:
        world = World(FIRST)
        for number in order:
            world = ACTIONS[names[number]].effect(keyed, world, f"c{number}")
        worlds.append(world)
    if seen not in worlds:
        failed = ", ".join(names[number] for number, well in done.items() if not well) or "none"
        raise NonConformance(
            _CHECK,
            f"{_story(names, keyed)} (failed: {failed}): the table is {seen}; a serial order would leave "
            f"{' or '.join(map(str, worlds))}",
        )


def _story(names: Sequence[str], keyed: bool) -> str:
    return f"{' and '.join(names[1:])} within {names[0]} of a {'keyed' if keyed else 'plain'} table"
