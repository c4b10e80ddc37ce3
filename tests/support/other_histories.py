"""Histories in which another engine takes some of the steps, as far as docs/other-engines.md defines their effect.

- Rows that others change in place are those of the merged read: a full compaction precedes. Tables whose compaction
  keeps row versions beside the folded rows are not changed.
- Before others rewrite rows that others added, a full compaction precedes, as no order of these rows is recorded.
- Where others rewrite, a commit has one row of each key: which of two equal ones came last is lost.
- A row of others has all columns (P1).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection
from dataclasses import replace
from random import Random
from typing import Final

from tests.support.oracles import said_by_formats
from trinity.merge.properties import canonical_properties
from trinity.merge.spec import merge_spec
from trinity.spi import Column, TableDefinition
from trinity_conformance.model.engine_model import model_of
from trinity_conformance.model.programs import Effect
from trinity_conformance.model.shapes import DEDUPLICATE, Shape
from trinity_conformance.model.statements import MATCHED, Statement
from trinity_conformance.playing.traces import (
    Alter,
    Compact,
    Delete,
    History,
    Log,
    Other,
    Read,
    Resolve,
    RowChangeStep,
    Step,
    Upsert,
    Vacuum,
)

WAYS: Final = frozenset({"upsert", "change", "compact", "vacuum", "alter"})
"""The kinds of steps that other engines take."""
TYPES: Final = frozenset(
    {"int", "bigint", "double", "string", "boolean", "date", "timestamp", "binary", "decimal(10,2)", "decimal(38,10)"}
)
"""Types that every writer has, with the same meaning."""


def mixed(history: History, ways: Collection[str] = WAYS) -> History:
    """Return the history with steps of other engines between those of Trinity.

    Args:
        history: any history.
        ways: the kinds of steps that other engines take.
    """
    mixer = _Mixer(history.shape, ways, Random(history.id))
    for step in history.steps:
        mixer.take(step)
    mixer.rewrite(1.0)
    return History(history.shape, tuple(mixer.steps))


class _Mixer:
    def __init__(self, shape: Shape, ways: Collection[str], chance: Random) -> None:
        self.shape = shape
        self.ways = ways
        self.chance = chance
        self.model = model_of(shape)
        self.steps: list[Step] = []
        self.folded = False
        """Whether the stored rows are those of the merged read."""
        self.added = False
        """Whether others have added rows that no compaction has folded."""

    def likely(self, way: str, share: float) -> bool:
        return way in self.ways and self.chance.random() < share

    def other(self, step: Step) -> None:
        self.steps.append(Other(step, self.chance.randrange(1000)))

    def take(self, step: Step) -> None:
        if isinstance(step, Resolve):
            return  # external tables and some formats have no resolve
        if isinstance(step, Upsert):
            self.upsert(step)
        elif isinstance(step, RowChangeStep):
            self.change(step)
        elif isinstance(step, Delete):
            self.delete(step)
        elif isinstance(step, Alter):
            self.alter(step)
        elif isinstance(step, Compact):
            self.compact(step)
        elif isinstance(step, Vacuum) and self.likely("vacuum", 0.5):
            self.other(step)
        elif not (isinstance(step, Log) and "compact" in self.ways):
            self.steps.append(step)
        if isinstance(step, Upsert | Delete | RowChangeStep | Compact):
            self.rewrite(0.2)
            if self.likely("vacuum", 0.1):
                self.other(Vacuum())

    def upsert(self, step: Upsert) -> None:
        if "compact" in self.ways and self.shape.key:
            step = self.single(step)
        plain = step.names is None and {c.type for c in self.shape.columns} <= TYPES
        if plain and self.likely("upsert", 0.4):
            step = replace(step, txn=None)
            self.other(step)
            self.added = True
        else:
            self.steps.append(step)
        self.folded = False
        self.model.upsert(step.rows, step.txn, step.names)

    def single(self, step: Upsert) -> Upsert:
        """Return the commit with only the last row of each key."""
        shape, names = self.shape, step.names or self.shape.names
        last = {self.model.key_of(shape.decode_row(row, names)): n for n, row in enumerate(step.rows)}
        kept, numbers = set(last.values()), itertools.count()
        return replace(step, splits=tuple(tuple(r for r in split if next(numbers) in kept) for split in step.splits))

    def delete(self, step: Delete) -> None:
        if step.condition is not None:
            self.model.delete_where(step.condition)
        else:
            self.model.delete_keys(self.model.key_form(key) for key in step.keys or ())
        self.steps.append(step)
        self.folded = False

    def change(self, step: RowChangeStep) -> None:
        effect = self.model.effect_in_place(step.statement)
        if self.in_place(step.statement, effect) and self.likely("change", 0.7):
            self.fold()
            self.rewrite(0.3)
            self.other(step)
            self.model.apply(effect)
            self.folded = False
            if self.shape.key and effect.counts.inserted:
                self.steps.append(Read())
                self.fold()
        elif not any(fault.open for fault in self.model.effect(step.statement).faults):
            self.model.change(step.statement)
            self.steps.append(step)
            self.folded = False

    def in_place(self, statement: Statement, effect: Effect) -> bool:
        """Return whether another engine may run a statement, and its effect is known."""
        if not said_by_formats(statement, effect) or not effect.counts.affected or self.model.overflows():
            return False
        if statement.kind == "DELETE" and re.search("<>|NOT ", statement.sql("t", Shape((), ()), "spark")):
            return False  # Iceberg's DELETE also deletes rows for which such a comparison is NULL
        rows = list(self.model.merged().values())
        matched = [target for kind, target, _, _ in self.model.join(statement, rows) if kind == MATCHED]
        if len(set(matched)) < len(matched):  # Delta counts matches that no WHEN selects
            return False
        if not self.shape.key:
            return True
        new = [self.model.key_of(version.row) for version in effect.commit]
        stays = self.model.merged().keys() - effect.taken
        return len(set(new)) == len(new) and stays.isdisjoint(new) and not _keeps_aside(self.shape)

    def alter(self, step: Alter) -> None:
        if step.kind == "default":  # the formats' own writers do not fill it in existing rows
            step = Alter("blank", step.columns)
        widened = step.kind == "widen" and self.shape.type_of(step.columns[0]) != "int"
        if self.shape.engine != DEDUPLICATE and step.kind == "blank":
            return
        if not widened and self.likely("alter", 0.6):
            self.other(step)
        else:
            self.steps.append(step)
        self.model.alter(step.kind, step.columns)

    def compact(self, step: Compact) -> None:
        self.steps.append(step)
        if step.full:
            self.folded, self.added = not self.model.overflows(), False

    def fold(self) -> None:
        """Compact in full where needed, so that the stored rows are those of the merged read."""
        if self.shape.key and not self.folded:
            self.compact(Compact(full=True))

    def rewrite(self, share: float) -> None:
        """Let another engine rewrite files, with some probability."""
        if not self.likely("compact", share):
            return
        if self.added and self.shape.key:
            self.folded = False
            self.fold()
        self.other(Compact())


def _keeps_aside(shape: Shape) -> bool:
    """Return whether compaction keeps row versions beside the folded rows, or late rows change single columns."""
    columns = tuple(Column(c.name, c.type, c.nullable) for c in shape.columns)
    draft = TableDefinition("default", "t", columns, shape.key)
    spec = merge_spec(draft.with_properties(canonical_properties(shape.options())))
    return spec.keeps_history or (spec.by_column and bool(spec.ordering))
