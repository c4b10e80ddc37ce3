"""Hypothesis draws of UPDATE and DELETE on tables of the merge engines (P1, M9, M11)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from hypothesis import strategies as st

from trinity_conformance.generate.engine_values import pool_of
from trinity_conformance.model.engine_model import EngineModel
from trinity_conformance.model.expressions import Expression, all_of, call, column, is_in, literal
from trinity_conformance.model.shapes import Column
from trinity_conformance.model.statements import MATCHED, Case, Statement
from trinity_conformance.model.values import Json, encode

_SPELLED: Final = ("int", "bigint", "string", "boolean")
_TRIES: Final = 3


@dataclass
class EngineStatements:
    """A generator of statements over the rows of a table.

    Attributes:
        draw: given by Hypothesis.
        model: the table as it is now.
    """

    draw: st.DrawFn
    model: EngineModel

    def statement(self) -> Statement | None:
        """Draw an UPDATE or a DELETE; about four in five break no rule, the others must be refused. None: none fits."""
        odd = self.draw(st.integers(0, 9)) == 0 and bool(self.settable(True))
        update = self.draw(st.integers(0, 2)) > 0 and bool(self.settable(False))
        found = self.update(odd) if odd or update else self.delete()
        return self.mended(found, odd or self.draw(st.integers(0, 4)) == 0)

    def delete(self) -> Statement:
        """Draw a DELETE of some rows."""
        return Statement("DELETE", (Case(MATCHED, "DELETE", self.where()),), dialect=self.dialect())

    def update(self, odd: bool) -> Statement:
        """Draw an UPDATE of one to three columns; with ``odd``, of columns that it may not set (M11)."""
        kinds = self.settable(odd)
        chosen = self.draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=3, unique=True))
        values = tuple((c.name, self.value(c)) for c in chosen)
        return Statement("UPDATE", (Case(MATCHED, "UPDATE", self.where(), values),), dialect=self.dialect())

    def dialect(self) -> str:
        return self.draw(st.sampled_from(("spark", "trino")))

    def settable(self, with_function: bool) -> list[Column]:
        """Return the columns that an UPDATE may set, or that it may not set because of their function."""
        shape = self.model.shape
        allowed = (None, "last_non_null_value")
        return [
            c
            for c in shape.columns
            if c.name not in (*shape.key, shape.row_kind, "v")
            and c.type in _SPELLED
            and (shape.function_of(c.name) not in allowed) == with_function
        ]

    def value(self, kind: Column) -> Expression:
        """Draw a constant, NULL, another column, or the column plus one."""
        choice = self.draw(st.integers(0, 5))
        if choice <= 1 and kind.type in ("int", "bigint"):
            return call("+", column("t", kind.name), literal("int", 1))
        if choice == 2:
            alike = [c.name for c in self.model.shape.columns if c.type == kind.type]
            return column("t", self.draw(st.sampled_from(alike)))
        pool = pool_of(self.model.shape, kind.name)
        return literal(kind.type, self.draw(st.sampled_from((*pool, None))))

    def where(self) -> Expression:
        """Draw a condition that selects rows by their key, present or not."""
        kind = self.key()
        pool = self.values_of(kind, self.model.merged().values()) or [self.other(kind)]
        values = self.draw(st.lists(st.sampled_from(pool), min_size=1, max_size=4, unique=True))
        found = is_in(column("t", kind.name), kind.type, values)
        return call("not", found) if self.draw(st.integers(0, 3)) == 0 else found

    def key(self) -> Column:
        """Return the first key column whose type has SQL literals here."""
        shape = self.model.shape
        return next(c for c in shape.columns if c.name in shape.key and c.type in _SPELLED)

    def other(self, kind: Column) -> Json:
        """Return a key that no row has."""
        return "none such" if kind.type == "string" else 99

    def values_of(self, kind: Column, rows: Iterable[dict[str, object]]) -> list[Json]:
        """Return the encoded values of a column."""
        return sorted({encode(kind.type, row[kind.name]) for row in rows}, key=str)

    # -- mending ----------------------------------------------------------------------------------------

    def mended(self, statement: Statement, illegal: bool) -> Statement | None:
        """Return the statement without rows that break a rule; ``illegal`` keeps them if the outcome is settled."""
        for _ in range(_TRIES):
            faults = self.model.effect(statement).faults
            if not faults or (illegal and not any(f.open for f in faults)):
                return statement
            targets = {n for f in faults for n in f.targets}
            if not targets:
                return None
            statement = self.without(statement, targets)
        return None

    def without(self, statement: Statement, targets: set[int]) -> Statement:
        """Return the statement without some target rows."""
        rows, kind = list(self.model.merged().values()), self.key()
        values = self.values_of(kind, [rows[n] for n in targets])
        miss = call("not", is_in(column("t", kind.name), kind.type, values))
        cases = tuple(replace(c, condition=all_of(c.condition, miss)) for c in statement.cases)
        return replace(statement, cases=cases)
