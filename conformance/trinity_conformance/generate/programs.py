"""Hypothesis strategies: programs of MERGE, UPDATE and DELETE over one table, with writes and maintenance in between.

A statement is drawn with the model at hand, which knows the present rows. Three statements out of five are then mended
until the model accepts them: source rows or target rows that break a rule are left out. So later steps stay meaningful.
The other statements must be refused whenever they break a rule.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, TypeVar

from hypothesis import strategies as st

from trinity_conformance.generate.predicates import Predicates, typed_pool
from trinity_conformance.generate.profiles import DmlProfile
from trinity_conformance.model.expressions import FALSE, Expression, all_of, call, column, is_in, literal
from trinity_conformance.model.programs import DmlModel, Fault
from trinity_conformance.model.shapes import Column, Shape
from trinity_conformance.model.statements import BY_SOURCE, MATCHED, NOT_MATCHED, Case, Statement, StatementSource
from trinity_conformance.model.values import Json, encode
from trinity_conformance.playing.traces import Compact, History, Resolve, RowChangeStep, Step, Upsert

_T = TypeVar("_T")
_MENDS: Final = 6
_ACTIONS: Final = {
    MATCHED: ("UPDATE", "UPDATE", "UPDATE", "DELETE", "DELETE", "DO NOTHING"),
    NOT_MATCHED: ("INSERT", "INSERT", "INSERT", "INSERT", "DO NOTHING"),
    BY_SOURCE: ("UPDATE", "DELETE", "DO NOTHING"),
}
_WHENS: Final = (MATCHED, MATCHED, MATCHED, NOT_MATCHED, NOT_MATCHED, BY_SOURCE)


def dml_shape(profile: DmlProfile) -> Shape:
    """Return the table of a profile."""
    payload = [Column("a", "int"), Column("b", "bigint"), Column("s", "string"), Column("n", "int", nullable=False)]
    if not profile.keyed:
        partition = ("a",) if profile.partitioned else ()
        return Shape((Column("k0", "int"), *payload), (), partition_by=partition)
    key = [Column("k0", "int", nullable=False), Column("k1", "int", nullable=False)][: 1 + profile.partitioned]
    watermark = [Column(f"w{i}", t) for i, t in enumerate(profile.watermark)]
    marks = [Column("gone", profile.tombstone[0])] if profile.tombstone else []
    return Shape(
        columns=(*payload[:2], *key, *watermark, *marks, *payload[2:]),
        key=tuple(c.name for c in key),
        partition_by=("k1",) if profile.partitioned else (),
        watermark=tuple(c.name for c in watermark),
        alias=profile.descending,
        descending=profile.descending,
        tombstone="gone" if profile.tombstone else None,
        tombstone_value=profile.tombstone[1] if profile.tombstone else None,
        properties={"row-change-paradigm": profile.paradigm},
    )


@dataclass
class _Author:
    """An author that draws statements and steps for one table.

    Attributes:
        draw: given by Hypothesis.
        model: the table as it is now.
    """

    draw: st.DrawFn
    model: DmlModel

    @property
    def shape(self) -> Shape:
        return self.model.shape

    def pick(self, *choices: _T) -> _T:
        return self.draw(st.sampled_from(choices))

    def named(self, name: str) -> Column:
        return self.shape.columns[self.shape.names.index(name)]

    # -- rows -------------------------------------------------------------------------------------------

    def cell(self, column_: Column, marks: bool) -> Json:
        """Draw a value of a stored row."""
        if column_.name == self.shape.tombstone:
            if not marks:
                return None
            value = self.shape.tombstone_value
            marked: tuple[Json, ...] = (None, False, True) if column_.type == "boolean" else (None, "N", value)
            return self.pick(*marked)
        pool = typed_pool(column_)
        return self.pick(*pool) if not column_.nullable else self.pick(*pool, None)

    def rows(self, least: int, most: int) -> tuple[tuple[Json, ...], ...]:
        count = self.draw(st.integers(least, most))
        return tuple(
            tuple(self.cell(c, self.draw(st.integers(0, 5)) == 0) for c in self.shape.columns) for _ in range(count)
        )

    def source_rows(self) -> tuple[tuple[Json, ...], ...]:
        """Draw rows of a source: like the table's rows, with more NULLs and duplicates."""
        rows = list(self.rows(4, 14)) if self.draw(st.integers(0, 9)) else []
        for at in range(len(rows)):
            kind = self.draw(st.integers(0, 7))
            if kind == 0:
                gap = self.draw(st.integers(0, len(self.shape.names) - 1))
                rows[at] = (*rows[at][:gap], None, *rows[at][gap + 1 :])
            elif kind <= 2:
                rows.append(self.again(rows[at], kind == 1))
        live = [tuple(encode(c.type, r[c.name]) for c in self.shape.columns) for r in self.model.merged().values()]
        if live and self.draw(st.integers(0, 3)) == 0:  # unchanged rows: updates that change nothing
            rows.append(self.pick(*live))
        return tuple(rows)

    def again(self, row: tuple[Json, ...], same: bool) -> tuple[Json, ...]:
        """Return the same row again, or draw another with its key."""
        other = row if same else self.rows(1, 1)[0]
        keys = self.shape.key or ("k0",)
        return tuple(r if n in keys else o for n, r, o in zip(self.shape.names, row, other, strict=True))

    def source(self) -> StatementSource:
        """Draw a source, now and then with a column more, or with its columns in another order than the table's."""
        turn, more = self.pick(1, 1, -1), self.pick((), (), ("more",))
        columns = (*self.shape.columns, *(Column(name, "int") for name in more))[::turn]
        if not more and self.draw(st.integers(0, 9)) == 0:
            return StatementSource(columns, target=True)
        return StatementSource(columns, tuple((*row, *(7 for _ in more))[::turn] for row in self.source_rows()))

    # -- cases ------------------------------------------------------------------------------------------

    def predicates(self, *sides: str) -> Predicates:
        return Predicates(self.draw, self.shape, sides)

    def case(self, when: str) -> Case:
        action = self.pick(*_ACTIONS[when])
        sides = {MATCHED: ("t", "s"), NOT_MATCHED: ("s",), BY_SOURCE: ("t",)}[when]
        condition = self.predicates(*sides).maybe()
        if condition is None and action == "DO NOTHING":
            action = "DELETE" if when != NOT_MATCHED else "INSERT"
        if action == "UPDATE":
            return Case(when, action, condition, self.sets(when, sides))
        return Case(when, action, condition, self.inserted() if action == "INSERT" else ())

    def sets(self, when: str, sides: tuple[str, ...]) -> tuple[tuple[str, Expression], ...] | None:
        """Draw assignments of an UPDATE; None for ``SET *``."""
        if when == MATCHED and "s" in sides and self.draw(st.integers(0, 3)) == 0:
            return None
        taken = [c for c in self.shape.columns if c.name not in (*self.shape.key, *self.shape.watermark)]
        names = self.draw(st.lists(st.sampled_from([c.name for c in taken]), max_size=3, unique=True))
        chosen = {c.name: self.value(c, sides) for c in taken if c.name in names}
        if self.draw(st.integers(0, 4)) == 0:  # each needs the other's old value
            chosen |= {"a": column("t", "n"), "n": call("coalesce", column("t", "a"), literal("int", 1))}
        chosen |= self.ordering(sides)
        if self.shape.key and (not chosen or self.draw(st.booleans())):
            moved = self.named(self.pick(*self.shape.key))
            chosen[moved.name] = self.moved(moved, sides)
        if not chosen:
            chosen["a"] = self.value(self.named("a"), sides)
        return tuple((n, chosen[n]) for n in self.draw(st.permutations(sorted(chosen))))

    def value(self, column_: Column, sides: tuple[str, ...]) -> Expression:
        if column_.name == self.shape.tombstone:
            side = self.pick(*sides)
            return self.pick(column(side, column_.name), self.predicates(*sides).literal(column_))
        return self.predicates(*sides).scalar(column_)

    def ordering(self, sides: tuple[str, ...]) -> dict[str, Expression]:
        """Draw assignments of all ordering columns from the source, of one computed, or none (M9)."""
        if not self.shape.watermark or self.draw(st.booleans()):
            return {}
        if "s" in sides and self.draw(st.booleans()):
            return {name: column("s", name) for name in self.shape.watermark}
        kind = self.named(self.pick(*self.shape.watermark))
        if kind.type == "string" or self.draw(st.booleans()):
            return {kind.name: self.predicates("t").literal(kind)}
        return {kind.name: call("+", column("t", kind.name), literal("int", self.pick(1, -1, -1)))}

    def moved(self, column_: Column, sides: tuple[str, ...]) -> Expression:
        """Draw a new value of a key column."""
        chance = self.predicates(*sides)
        own = column("t", column_.name)
        step = literal(column_.type, self.pick(1, 2, 20, -1))
        return self.pick(call("+", own, step), call("+", own, step), chance.literal(column_), chance.scalar(column_))

    def inserted(self) -> tuple[tuple[str, Expression], ...] | None:
        """Draw values of an INSERT; None for ``INSERT *``."""
        kind = self.draw(st.integers(0, 3))
        if kind == 0:
            return None
        names = list(self.shape.names)
        if kind == 1:
            must = {*self.shape.key, "n"}
            names = [n for n in self.draw(st.permutations(names)) if n in must or self.draw(st.booleans())]
        values = []
        for name in names:
            kind_ = self.named(name)
            same = name in self.shape.key or self.draw(st.integers(0, 2)) > 0
            values.append((name, column("s", name) if same else self.value(kind_, ("s",))))
        return tuple(values)

    # -- statements -------------------------------------------------------------------------------------

    def merge(self) -> Statement:
        kind = self.draw(st.integers(0, 4))
        if kind == 0:
            return self.upserting()
        if kind <= 2 and self.shape.watermark and self.model.merged():
            return self.refilling()
        whens = self.draw(st.lists(st.sampled_from(_WHENS), min_size=1, max_size=5))
        cases = tuple(_reachable(list(map(self.case, whens))))
        return Statement("MERGE", cases, self.source(), self.predicates("t", "s").on(), self.pick("spark", "trino"))

    def upserting(self) -> Statement:
        """Draw the MERGE of change data capture: delete, or take the source's row unchanged."""
        condition = self.predicates("s").boolean(1)
        cases = (
            Case(MATCHED, "DELETE", condition),
            Case(MATCHED, "UPDATE", None, None),
            Case(NOT_MATCHED, "INSERT", call("not", condition) if self.draw(st.booleans()) else None, None),
        )
        start = self.pick(0, 1, 1)
        return Statement(
            "MERGE", cases[start:], self.source(), self.predicates("t", "s").keys(), self.pick("spark", "trino")
        )

    def refilling(self) -> Statement:
        """Draw a MERGE that deletes rows or moves them away, and inserts rows under their keys, late ones too."""
        live = list(self.model.merged().values())
        leaving = self.draw(st.lists(st.sampled_from(range(len(live))), min_size=1, max_size=3, unique=True))
        old = [{c.name: encode(c.type, live[at][c.name]) for c in self.shape.columns} for at in leaving]
        drawn = [dict(zip(self.shape.names, row, strict=True)) for row in self.rows(len(old), len(old))]
        new = [{**row, **{k: was[k] for k in self.shape.key}} for row, was in zip(drawn, old, strict=True)]
        if self.draw(st.booleans()):
            new = [{**row, self.shape.watermark[0]: None} for row in new]  # late, unless the stored row has none either
        rows = [{**row, "n": 1} for row in old] + [{**row, "n": 2} for row in new]
        if self.shape.tombstone:
            rows = [{**row, self.shape.tombstone: None} for row in rows]
        source = StatementSource(self.shape.columns, tuple(tuple(row[n] for n in self.shape.names) for row in rows))
        away = ("k0", call("+", column("t", "k0"), literal("int", 20)))
        leave = self.pick(Case(MATCHED, "DELETE"), Case(MATCHED, "UPDATE", None, (away,)))
        on = call("and", self.predicates("t", "s").keys(), call("=", column("s", "n"), literal("int", 1)))
        return Statement("MERGE", (leave, Case(NOT_MATCHED, "INSERT", None, None)), source, on)

    def update(self) -> Statement:
        if self.draw(st.integers(0, 2)) == 0:
            source = self.source()
            where = all_of(self.predicates("t", "s").on(), self.predicates("t", "s").maybe())
            values = self.sets(MATCHED, ("t", "s")) or (("a", column("s", "a")),)
            return Statement("UPDATE", (Case(MATCHED, "UPDATE", where, values),), source)
        where = self.predicates("t").maybe()
        values = self.sets(MATCHED, ("t",)) or ()
        return Statement("UPDATE", (Case(MATCHED, "UPDATE", where, values),), dialect=self.pick("spark", "trino"))

    def delete(self) -> Statement:
        if self.draw(st.integers(0, 2)) == 0:
            where = all_of(self.predicates("t", "s").on(), self.predicates("t", "s").maybe())
            return Statement("DELETE", (Case(MATCHED, "DELETE", where),), self.source())
        where = self.predicates("t").boolean(2)
        return Statement("DELETE", (Case(MATCHED, "DELETE", where),), dialect=self.pick("spark", "trino"))

    def statement(self, legal: bool | None = None) -> Statement:
        """Draw a statement of any kind; ``legal`` mends it, None leaves that to chance."""
        kind = self.draw(st.integers(0, 7))
        found = self.merge() if kind < 5 else self.update() if kind < 7 else self.delete()
        mended = self.draw(st.integers(0, 4)) > 1 if legal is None else legal
        return self.mend(found, mended)

    def mend(self, statement: Statement, legal: bool) -> Statement:
        """Leave out what breaks a rule; of an illegal statement keep one fault, so that none hides another."""
        kept: Fault | None = None
        for number in range(_MENDS):
            found = self.model.effect(statement).faults
            # which of several rows under one key wins is open where the check of M4 may be skipped
            keepable = [f for f in found if not legal and not f.open]
            if number == 0 and keepable:
                kept = self.pick(*keepable)
            again = next((f for f in keepable if kept and (f.rule, f.why) == (kept.rule, kept.why)), None)
            faults = [f for f in found if f is not again]
            if not faults:
                return statement
            spared = again.sources if again else frozenset()
            sources = frozenset(n for f in faults for n in f.sources) - spared
            targets = frozenset(n for f in faults for n in f.targets if not f.sources)
            statement = self.without(statement, sources, targets)
        return statement if self.settled(statement) else self.idle(statement)

    def settled(self, statement: Statement) -> bool:
        """Return whether the rules determine the effect of the statement."""
        return not any(f.open for f in self.model.effect(statement).faults)

    def idle(self, statement: Statement) -> Statement:
        """Return the statement with no rows selected."""
        return replace(statement, cases=tuple(replace(c, condition=FALSE) for c in statement.cases))

    def without(self, statement: Statement, sources: frozenset[int], targets: frozenset[int]) -> Statement:
        source = statement.source
        if source is not None and not source.target and sources:
            kept = tuple(row for n, row in enumerate(source.rows) if n not in sources)
            return replace(statement, source=replace(source, rows=kept))
        return replace(statement, cases=tuple(self.narrowed(c, sources or targets) for c in statement.cases))

    def narrowed(self, case: Case, targets: frozenset[int]) -> Case:
        """Return the case without some target rows; if the source is the target, without those source rows."""
        side = "s" if case.when == NOT_MATCHED else "t"
        name = self.shape.key[0] if self.shape.key else "k0"
        rows = list(self.model.merged().values())
        values = sorted({rows[n][name] for n in targets if rows[n][name] is not None})
        if not values:
            return replace(case, condition=all_of(case.condition, call("not", call("is null", column(side, name)))))
        miss = call("not", is_in(column(side, name), "int", values))
        return replace(case, condition=all_of(case.condition, miss))

    def step(self) -> list[Step]:
        """Draw the next step, mostly a statement; apply it to the model."""
        kind = self.draw(st.integers(0, 9))
        if kind == 0:
            return [self.upsert(1, 6)]
        if kind == 1 and self.shape.key:
            return [self.draw(st.sampled_from((Compact(True), Compact(False), Resolve())))]
        statement = self.statement()
        self.model.change(statement)
        return [RowChangeStep(statement)]

    def upsert(self, least: int, most: int) -> Upsert:
        rows = self.rows(least, most)
        self.model.upsert(rows)
        return Upsert((rows,))


@st.composite
def statements(draw: st.DrawFn, model: DmlModel, legal: bool | None = None) -> Statement:
    """Draw a statement over the rows of a model.

    Args:
        draw: given by Hypothesis.
        model: the table as it is now.
        legal: True for statements that the model accepts; None makes three in five so.
    """
    return _Author(draw, model).statement(legal)


def _reachable(cases: list[Case]) -> list[Case]:
    """Return the cases that no unconditional case of the same kind precedes."""
    final = {c.when: n for n, c in reversed(list(enumerate(cases))) if c.condition is None}
    return [c for n, c in enumerate(cases) if n <= final.get(c.when, n)]


@st.composite
def programs(draw: st.DrawFn, profile: DmlProfile, min_steps: int = 3, max_steps: int = 6) -> History:
    """Draw a table and statements over it, one after the other.

    Args:
        draw: given by Hypothesis.
        profile: the kind of table.
        min_steps: least number of steps after the first rows.
        max_steps: greatest number of steps after the first rows.
    """
    shape = dml_shape(profile)
    author = _Author(draw, DmlModel(shape))
    first = author.upsert(12, 24)
    count = draw(st.integers(min_steps, max_steps))
    return History(shape, (first, *(step for _ in range(count) for step in author.step())))
