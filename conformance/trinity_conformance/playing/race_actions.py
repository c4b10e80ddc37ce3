"""The actions of writers in a race, and their effects on a table that nobody else writes to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import pyarrow as pa

import trinity
from trinity.spi import Capability

FIRST: Final = ((1, 0), (2, 0))
"""The first rows of (k, n) of a table, one commit each."""
_TXN: Final = ("loader", 1)

Result: TypeAlias = Any
"""The result of an action: counts, rows, or None, in a form that can be compared."""


@dataclass(frozen=True)
class World:
    """The visible state of a table.

    Attributes:
        keyed: whether it has a key.
        rows: rows of (k, n), sorted.
        columns: the columns that were added.
        loaded: whether the transaction is recorded.
    """

    keyed: bool
    rows: tuple[tuple[int, int], ...] = FIRST
    columns: frozenset[str] = frozenset()
    loaded: bool = False

    @property
    def words(self) -> str:
        """The visible state, in words."""
        more = f", and the columns {', '.join(sorted(self.columns))}" if self.columns else ""
        return f"the rows {', '.join(map(str, self.rows)) or 'none'}{more}"

    def plus(self, *rows: tuple[int, int]) -> World:
        """Return the state with further rows, which replace the rows of the same keys."""
        found = (*self.rows, *rows)
        return self.having(dict(found).items() if self.keyed else found)

    def having(self, rows: Any) -> World:
        """Return the state with other rows in place of its own."""
        return replace(self, rows=tuple(sorted(rows)))


@dataclass(frozen=True)
class RaceAction:
    """An action of a writer.

    Attributes:
        words: the action in words, in which ``{mark}`` is a number that no other action has.
        run: does the action, given the session, the table's name and the mark; returns its result.
        effect: returns the world after it and its result, given the world before it and the mark.
        needs: the capabilities that it needs.
    """

    words: str
    run: Callable[[trinity.Session, str, int], Result]
    effect: Callable[[World, int], tuple[World, Result]]
    needs: frozenset[Capability] = frozenset()


def mark(writer: int, number: int) -> int:
    """Return the number that identifies an action of a writer."""
    return 100 * (writer + 1) + number


def definition(keyed: bool) -> str:
    """Return columns and options of a race's table, as CREATE TABLE has them."""
    key = ", PRIMARY KEY (k) NOT ENFORCED) TBLPROPERTIES ('merge-engine' = 'deduplicate')" if keyed else ")"
    return f"(k INT, n INT{key}"


def write(table: Any, rows: Sequence[tuple[int, int]], **options: Any) -> Any:
    """Upsert rows, or append them to a plain table."""
    k, n = zip(*rows, strict=True)
    data = pa.table({"k": pa.array(k, pa.int32()), "n": pa.array(n, pa.int32())})
    return (table.upsert if table.definition.keyed else table.append)(data, **options)


def _append(session: trinity.Session, name: str, number: int) -> None:
    write(session.table(name), [(1, number), (3, number)])


def _load(session: trinity.Session, name: str, number: int) -> bool:
    return bool(write(session.table(name), [(5, number)], txn=_TXN).skipped)


def _loaded(world: World, number: int) -> tuple[World, bool]:
    return (world, True) if world.loaded else (replace(world.plus((5, number)), loaded=True), False)


def _changing(text: str) -> Callable[[trinity.Session, str, int], tuple[int, int, int]]:
    def run(session: trinity.Session, name: str, number: int) -> tuple[int, int, int]:
        [row] = session.sql(text.format(t=name, mark=number)).to_arrow().to_pylist()
        return row["num_updated_rows"], row["num_deleted_rows"], row["num_inserted_rows"]

    return run


def _added(world: World, _: int) -> tuple[World, tuple[int, int, int]]:
    hit = sum(k == 1 for k, _ in world.rows)
    return world.having((k, n + (k == 1)) for k, n in world.rows), (hit, 0, 0)


def _deleted(world: World, _: int) -> tuple[World, tuple[int, int, int]]:
    kept = [row for row in world.rows if row[0] != 2]
    return world.having(kept), (0, len(world.rows) - len(kept), 0)


def _merged(world: World, number: int) -> tuple[World, tuple[int, int, int]]:
    source = {1: 5, 4: number}
    rows = [(k, n + source.get(k, 0)) for k, n in world.rows]
    new = [(k, n) for k, n in source.items() if k not in dict(world.rows)]
    return world.having([*rows, *new]), (sum(k in source for k, _ in world.rows), 0, len(new))


def _read(session: trinity.Session, name: str, _: int) -> tuple[tuple[int, int], ...]:
    rows = session.table(name).to_arrow(["k", "n"]).to_pylist()
    return tuple(sorted((row["k"], row["n"]) for row in rows))


def _alter(session: trinity.Session, name: str, number: int) -> None:
    session.sql(f"ALTER TABLE {name} ADD COLUMN c{number} INT")


def _untold(_: object) -> None:
    """Ignore a result, as it is not compared."""


def _same(world: World, _: int) -> tuple[World, None]:
    return world, None


_ADD: Final = "UPDATE {t} SET n = n + 1 WHERE k = 1"
_DELETE: Final = "DELETE FROM {t} WHERE k = 2"
_MERGE: Final = (
    "MERGE INTO {t} USING (SELECT * FROM VALUES (1, 5), (4, {mark}) AS s(k, n)) s ON {t}.k = s.k "
    "WHEN MATCHED THEN UPDATE SET n = {t}.n + s.n WHEN NOT MATCHED THEN INSERT (k, n) VALUES (s.k, s.n)"
)
_ROW_CHANGES: Final = frozenset((Capability.ROW_CHANGES,))

RACE_ACTIONS: Final[Mapping[str, RaceAction]] = {
    "append": RaceAction(
        "write the rows (1, {mark}) and (3, {mark})",
        _append,
        lambda world, number: (world.plus((1, number), (3, number)), None),
    ),
    "load": RaceAction(f"write the row (5, {{mark}}) as transaction {_TXN[1]} of {_TXN[0]!r}", _load, _loaded),
    "add": RaceAction(_ADD.replace("{t}", "t"), _changing(_ADD), _added, _ROW_CHANGES),
    "delete": RaceAction(_DELETE.replace("{t}", "t"), _changing(_DELETE), _deleted, _ROW_CHANGES),
    "merge": RaceAction(
        _MERGE.replace("INTO {t}", "INTO t").replace("{t}.", "t."), _changing(_MERGE), _merged, _ROW_CHANGES
    ),
    "truncate": RaceAction(
        "TRUNCATE TABLE t",
        lambda session, name, _: _untold(session.sql(f"TRUNCATE TABLE {name}")),
        lambda world, _: (world.having(()), None),
        frozenset((Capability.TRUNCATE,)),
    ),
    "compact": RaceAction(
        "compact the table into its base",
        lambda session, name, _: _untold(session.table(name).compact(full=True)),
        _same,
    ),
    "vacuum": RaceAction(
        "vacuum, and keep what is younger than a week",
        lambda session, name, _: _untold(session.table(name).vacuum()),
        _same,
    ),
    "alter": RaceAction(
        "ALTER TABLE t ADD COLUMN c{mark} INT",
        _alter,
        lambda world, number: (replace(world, columns=world.columns | {f"c{number}"}), None),
        frozenset((Capability.ADD_COLUMN,)),
    ),
    "read": RaceAction("read the table", _read, lambda world, _: (world, world.rows)),
}
"""All actions by name."""
