"""What Paimon 0.9.0 is expected to read: the folds of the model, with the known differences built in.

Paimon folds runs of rows: each commit when it is written, all files when they are compacted, and the remaining runs
when the table is read. All behaviour without a difference is the model's, so a fault of the model shows here, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, cast

from tests.paimon.differences import DIFFERENCES
from trinity_conformance.model.engine_fold import Fold, PartialUpdateFold
from trinity_conformance.model.engine_model import EngineModel
from trinity_conformance.model.functions import Function
from trinity_conformance.model.shapes import DEDUPLICATE, Shape
from trinity_conformance.model.tables import Key, Row, Version
from trinity_conformance.model.values import Json, Value
from trinity_conformance.playing.traces import Compact, History, Upsert

ALL: Final = frozenset(d.name for d in DIFFERENCES if not d.by_hand)
"""Names of the differences that generated histories show."""


class Failure(Exception):
    """A table that Paimon could not read.

    Attributes:
        record: the row version at which it would fail.
    """

    def __init__(self, reason: str, record: Record) -> None:
        super().__init__(reason)
        self.record = record


@dataclass(frozen=True)
class Record(Version):
    """A row version, or several folded ones; Paimon keeps the kind outside of the row.

    Attributes:
        kind: +I, +U, -U or -D.
        place: (number of the step, number of the row) of its first row.
    """

    kind: str = "+I"
    place: tuple[int, int] = (0, 0)

    @property
    def retract(self) -> bool:
        """Whether the kind is -U or -D."""
        return self.kind in ("-U", "-D")


# -- functions ------------------------------------------------------------------------------------------


class _ProductOfNothing(Function):
    def retract(self, acc: Any, value: Value) -> Any:
        return value if acc is None else super().retract(acc, value)


class _BlankTexts(Function):
    def add(self, acc: Any, value: Value) -> Any:
        delimiter = self.options.get("list-agg-delimiter", ",")
        return value if acc is None else acc if value is None else acc + delimiter + value


_OTHER_FUNCTIONS: Final[tuple[tuple[str, str, type[Function]], ...]] = (
    ("product-of-nothing", "product", _ProductOfNothing),
    ("blank-texts", "listagg", _BlankTexts),
)
"""(difference, its function, Paimon's version of it)."""


def _functions(known: Mapping[str, Any], differences: frozenset[str]) -> dict[str, Any]:
    found = dict(known)
    for name, function, mixin in _OTHER_FUNCTIONS:
        if name in differences:
            found[function] = type(mixin.__name__, (mixin, found[function]), {})
    return found


# -- folds ----------------------------------------------------------------------------------------------


class _Run:
    """The common part of Paimon's folds, mixed into a fold of the model.

    Attributes:
        differences: the names of the differences that hold.
    """

    differences: ClassVar[frozenset[str]] = ALL

    def __init__(self, shape: Shape) -> None:
        self.so_far: dict[str, Any] = {}
        self.initialized: set[str] = set()
        self.deleted = False
        super().__init__(shape)  # type: ignore[call-arg]

    @property
    def _fold(self) -> Fold:
        return cast(Fold, self)

    def kind_of(self, version: Version) -> str:
        return version.kind if isinstance(version, Record) else super().kind_of(version)  # type: ignore[misc]

    def passes(self, version: Version) -> bool:
        """Return whether a row version is skipped. Raise Failure for an add after a -D that deletes the row."""
        assert isinstance(version, Record)
        if self.deleted and not version.retract:
            raise Failure("an add after remove-record-on-delete", version)
        self.deleted = self.deleted or self._fold.removes_row(version)
        return super().passes(version)  # type: ignore[misc,no-any-return]

    def contribute(self, name: str, verb: str, value: Value, *order: Any) -> None:
        super().contribute(name, verb, value, *order)  # type: ignore[misc]
        function = self._fold.function(name)
        if verb == "retract":
            if not function.switch("ignore-retract"):
                self.so_far[name] = function.retract(self.so_far.get(name), value)
        elif order and self.is_late(name, order[0]):
            self.so_far[name] = self.before(name, function, value)
        else:
            self.so_far[name] = self.after(name, function, value)

    def is_late(self, name: str, sequence: Any) -> bool:
        """Return whether a row is older than its sequence group."""
        group, fold = self._fold.shape.group_of(name), self._fold
        return group is not None and isinstance(fold, PartialUpdateFold) and not fold.accepts(group, sequence)

    def after(self, name: str, function: Function, value: Value) -> Any:
        """Return the accumulator after a row. A first_* function records separately that it has a value."""
        kind = self._fold.shape.function_of(name) or ""
        if kind.startswith("first_"):
            return self.first(name, kind, self.so_far.get(name), value)
        return function.add(self.so_far.get(name), value)

    def before(self, name: str, function: Function, value: Value) -> Any:
        """Return the accumulator after a late row, with the arguments of the function exchanged."""
        kind, acc = self._fold.shape.function_of(name) or "", self.so_far.get(name)
        if kind.startswith("first_"):
            return self.first(name, kind, value, acc)
        if kind == "collect" and "ignore-retract" not in function.options:
            return function.add(acc, value)
        return function.add(function.add(None, value), acc)

    def first(self, name: str, kind: str, one: Value, other: Value) -> Value:
        """Return the accumulator of first_value and first_non_null_value."""
        if name in self.initialized or (other is None and kind != "first_value"):
            return one
        self.initialized.add(name)
        return other

    def read(self, name: str) -> Value:
        kind = self._fold.shape.function_of(name)
        if kind is None or "by-arrival" not in self.differences:
            return super().read(name)  # type: ignore[misc]
        acc = self.so_far.get(name)
        return acc if kind.startswith("first_") else self._fold.function(name).result(acc)


@dataclass(frozen=True)
class _PaimonShape(Shape):
    """The shape of a table, with the functions that Paimon adds to columns without one."""

    differences: frozenset[str] = ALL

    def function_of(self, name: str) -> str | None:
        found = super().function_of(name)
        if self.engine != "aggregation" or name in self.key or found is not None:
            return found
        difference = "kind-column" if name == self.row_kind else "sequence-column"
        return (self.default_function or "last_non_null_value") if difference in self.differences else None


class Paimon:
    """A table of Paimon, in which the known differences hold.

    Args:
        history: the upserts and compactions.
        model: the model for all other behaviour.
        differences: the differences that hold.

    Raises:
        Failure: Paimon fails in a merge.
    """

    def __init__(
        self, history: History, model: type[EngineModel] = EngineModel, differences: frozenset[str] = ALL
    ) -> None:
        self.shape = _PaimonShape(**vars(history.shape), differences=differences)
        self.differences = differences
        self.model = model(self.shape)
        self.folds = {engine: self._mixed(fold) for engine, fold in model.folds.items()}
        self.runs: dict[Key, list[Record]] = {}
        for number, step in enumerate(history.steps):
            if isinstance(step, Upsert):
                self._upsert(number, step)
            elif isinstance(step, Compact) and "compaction-folds" in differences:
                self.runs = {key: self._compacted(runs) for key, runs in self.runs.items()}

    def _mixed(self, fold: type[Fold]) -> type[Fold]:
        functions = _functions(fold.functions, self.differences)
        return type(fold.__name__, (_Run, fold), {"functions": functions, "differences": self.differences})

    def merged(self) -> dict[Key, Row]:
        """Return the merged rows by key."""
        found = {key: self._merged(runs) for key, runs in self.runs.items()}
        return {key: record.row for key, record in found.items() if record is not None and not record.retract}

    def _upsert(self, number: int, step: Upsert) -> None:
        arrived: dict[Key, list[Record]] = {}
        for row_number, row in enumerate(step.rows):
            record = self._record(number, row_number, row, step.names)
            if not (self.shape.ignore_delete and record.retract):
                arrived.setdefault(self.model.key_of(record.row), []).append(record)
        for key, records in arrived.items():
            runs = self.runs.setdefault(key, [])
            if "commits-fold" in self.differences:
                merged = self._merged(records)
                runs += [merged] if merged else []
            else:
                runs += records

    def _record(self, number: int, row_number: int, row: tuple[Json, ...], names: tuple[str, ...] | None) -> Record:
        values = self.shape.decode_row(row, names)
        kind = (values[self.shape.row_kind] or "+I") if self.shape.row_kind else "+I"
        named = None if names is None or "omitted-null" in self.differences else frozenset(names)
        return Record(values, named=named, kind=kind, place=(number, row_number))

    def _compacted(self, runs: list[Record]) -> list[Record]:
        merged = self._merged(runs)
        if merged is None or (merged.retract and "compacted-deletes" in self.differences):
            return []
        return [merged]

    def _merged(self, records: list[Record]) -> Record | None:
        """Fold the records of a key in one pass; return None where no row is left."""
        if not records:
            return None
        ordered = cast(list[Record], self.model.fold_order(cast(list[Version], records)))
        if self.shape.engine == DEDUPLICATE:
            return ordered[-1]
        if len(ordered) == 1 and ("lone-row" in self.differences or ordered[0].retract):
            return ordered[0]
        return self._folded(ordered)

    def _folded(self, records: list[Record]) -> Record | None:
        fold = self.folds[self.shape.engine](self.shape)
        fold.fold(records)
        if getattr(fold, "deleted", False):
            return None
        if not fold.visible and self.shape.engine == "partial-update":
            raise Failure("a merge without an add", records[-1])
        kind = "+I" if fold.visible or "retracts-show" in self.differences else "-D"
        return Record(fold.row(), kind=kind, place=records[0].place)


def readable(history: History) -> History:
    """Return the history with the kinds of some rows changed, so that Paimon 0.9.0 can read it."""
    while True:
        try:
            Paimon(history).merged()
        except Failure as failure:
            history = _mended(history, *failure.record.place)
        else:
            return history


def _mended(history: History, number: int, row_number: int) -> History:
    """Change the kind of one row: without groups an add to -U, and a -U to -D; with groups a retract to an add."""
    shape, step = history.shape, history.steps[number]
    assert isinstance(step, Upsert)
    place = (step.names or shape.names).index(shape.row_kind or "")
    row = step.rows[row_number]
    kind = "+I" if shape.groups else "-D" if row[place] == "-U" else "-U"
    rows = (*step.rows[:row_number], (*row[:place], kind, *row[place + 1 :]), *step.rows[row_number + 1 :])
    steps = (*history.steps[:number], replace(step, splits=(rows,)), *history.steps[number + 1 :])
    return replace(history, steps=steps)
