"""The laws that other systems are tested for, each with histories that test nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

from tests.support.oracles import accepted
from trinity_conformance.generate.histories import sample
from trinity_conformance.generate.profiles import DmlProfile
from trinity_conformance.generate.programs import programs
from trinity_conformance.model.programs import DmlModel, Effect
from trinity_conformance.model.shapes import Column, Shape
from trinity_conformance.model.statements import Statement
from trinity_conformance.model.values import POOLS, Json
from trinity_conformance.playing.traces import History, ReadPast, RowChangeStep, Step, Upsert

Asked = Callable[[Statement, Effect], bool]


@dataclass(frozen=True)
class Law:
    """A question to a system.

    Attributes:
        title: the law, as a sentence that is true where it is kept.
        rules: the ids of the rules of the semantics.
        draw: makes a history from a seed.
        asked: for programs of MERGE, UPDATE and DELETE: whether a statement with its effect is about the law.
    """

    title: str
    rules: tuple[str, ...]
    draw: Callable[[int], History]
    asked: Asked | None = None


_KEY: Final = Column("k", "int", nullable=False)
_VALUE: Final = Column("v", "bigint", nullable=False)
_MARK: Final = Column("w", "int")
_GONE: Final = Column("gone", "boolean")
_EQUAL: Final[Mapping[str, Sequence[Json]]] = {
    "double": ("0.0", "-0.0", "NaN"),
    "float": ("0.0", "-0.0", "NaN"),
    "char(3)": ("a", "a ", "b"),
    "string": ("a", "A", "\u00e4", "a\u0308"),
    "decimal(10,2)": ("1.50", "2.00"),
}
"""Type of a key -> values that are equal, or nearly."""


def _upserts(shape: Shape, *commits: Sequence[Mapping[str, Json]]) -> Iterator[Upsert]:
    for number, rows in enumerate(commits):
        numbered = [{"v": 10 * number + place, **row} for place, row in enumerate(rows)]
        yield Upsert((tuple(tuple(row[name] for name in shape.names) for row in numbered),), executor="local")


def _values(seed: int) -> History:
    kinds = sorted(POOLS)
    kind = kinds[seed % len(kinds)]
    chance, shape = Random(seed), Shape((_KEY, _VALUE, Column("p", kind)), ("k",))
    commits = [[{"k": k, "p": chance.choice((None, *POOLS[kind]))} for k in (1, 2)] for _ in range(3)]
    return History(shape, tuple(_upserts(shape, *commits)))


def _equal_keys(seed: int) -> History:
    kinds = sorted(_EQUAL)
    kind = kinds[seed % len(kinds)]
    chance, shape = Random(seed), Shape((Column("k", kind, nullable=False), _VALUE), ("k",))
    return History(shape, tuple(_upserts(shape, *([{"k": chance.choice(_EQUAL[kind])}] for _ in range(4)))))


def _one_commit(seed: int) -> History:
    chance, shape = Random(seed), Shape((_KEY, _VALUE), ("k",))
    commits = [[{"k": chance.choice((1, 2))} for _ in range(3)] for _ in range(2)]
    return History(shape, tuple(_upserts(shape, *commits)))


def _marked(marks: Sequence[Json], *, tombstones: bool = False, late: bool = True) -> Callable[[int], History]:
    """Return a generator of tables with a watermark, one row a commit: with these watermarks, or with growing ones."""

    def draw(seed: int) -> History:
        chance = Random(seed)
        columns = (_KEY, _VALUE, _MARK, *([_GONE] if tombstones else []))
        shape = Shape(columns, ("k",), watermark=("w",), tombstone="gone" if tombstones else None)
        rows: list[dict[str, Any]] = [{"k": chance.choice((1, 2)), "w": chance.choice(marks)} for _ in range(5)]
        for number, row in enumerate(rows):
            row |= {} if late else {"w": number}
            row |= {"gone": chance.random() < 0.4} if tombstones else {}
        return History(shape, tuple(_upserts(shape, *([row] for row in rows))))

    return draw


def _retry(seed: int) -> History:
    shape = Shape((_KEY, _VALUE), ("k",))
    first, second = _upserts(shape, *([{"k": k} for k in range(seed % 3 + 1)] for _ in range(2)))
    again = replace(first, txn=("loader", 1))
    return History(shape, (again, replace(second, txn=("loader", 2)), again))


def _past(seed: int) -> History:
    chance, shape = Random(seed), Shape((_KEY, _VALUE), ("k",))
    steps: list[Step] = list(_upserts(shape, *([{"k": chance.choice((1, 2))}] for _ in range(3))))
    back = [ReadPast(n, executor="local") for n in (1, 2)]
    return History(shape, (*steps, *back))


def narrowed(history: History, question: Asked) -> History:
    """Return the history with only the statements that are about a law."""
    model, kept = DmlModel(history.shape), list[Step]()
    for step in history.steps:
        if isinstance(step, RowChangeStep):
            if not question(step.statement, model.effect(step.statement)):
                continue
            model.change(step.statement)
        if isinstance(step, Upsert):
            model.upsert(step.rows, step.txn)
        kept.append(step)
    return replace(history, steps=tuple(kept))


def _program(seed: int) -> History:
    return sample(programs(DmlProfile()), seed)


def _once(statement: Statement, effect: Effect) -> bool:
    """Return whether a statement breaks no rule, and no row is matched by several source rows."""
    return accepted(statement, effect) and not (statement.kind == "MERGE" and statement.deletes_matches)


def _several(statement: Statement, effect: Effect) -> bool:
    return effect.codes == {"MERGE_TARGET_ROW_MULTIPLE_MATCHES"} and bool(effect.refused)


LAWS: Final = (
    Law("an upsert keeps every value of every type", ("L1",), _values),
    Law("equal keys are one key: -0.0 and 0.0, NaN, padding; others are not", ("K2",), _equal_keys),
    Law("of several rows of a key in one commit the last one wins", ("K4", "L2"), _one_commit),
    Law("a late row loses to a row with a larger watermark", ("U1",), _marked((1, 2, 3))),
    Law("a NULL watermark is legal, and smallest", ("U2",), _marked((None, 1, 2))),
    Law("a tombstone deletes, a newer row brings the key back", ("U3",), _marked((0,), tombstones=True, late=False)),
    Law("a deleted key stays deleted for late rows", ("U4",), _marked((1, 2, 3), tombstones=True)),
    Law("a commit whose transaction number is not above the recorded one is skipped", ("L4",), _retry),
    Law("earlier versions read as they did", ("L10",), _past),
    Law(
        "MERGE, UPDATE and DELETE change the rows that they select, and tell how many",
        ("M1", "M5"),
        _program,
        _once,
    ),
    Law(
        "a row that several source rows select is an error, by UPDATE ... FROM as by MERGE", ("M2",), _program, _several
    ),
)
