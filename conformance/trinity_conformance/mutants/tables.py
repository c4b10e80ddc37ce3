"""Proof that the suite finds faults: wrong models of tables, and the player that runs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from trinity.errors import TrinityError
from trinity_conformance.model.conditions import Condition
from trinity_conformance.model.engine_model import model_of
from trinity_conformance.model.functions import OutOfRange
from trinity_conformance.model.programs import Counts, DmlModel
from trinity_conformance.model.shapes import Shape
from trinity_conformance.model.statements import Statement
from trinity_conformance.model.tables import Changed, Key, Model, Row, Version
from trinity_conformance.model.values import Json, Value, order_form
from trinity_conformance.playing.faults import Injection
from trinity_conformance.playing.subject import LogRow, Outcome
from trinity_conformance.playing.traces import Executor, Fault, Upsert

_BEGINNING: Final = datetime(2024, 1, 1, tzinfo=UTC)


class ModelSubject:
    """A model, or a mutant of it, played as if it were an adapter. Needs no Spark."""

    durable = True

    def __init__(self, make: Callable[[Shape], Model] = model_of) -> None:
        self.left = Counter[str]()
        self._make = make
        self._model = make(Shape((), ()))

    def executed_by(self, executor: Executor) -> None:
        """Do nothing: there is one model."""

    def create(self, shape: Shape) -> None:
        self._model = self._make(shape)

    def upsert(self, step: Upsert) -> Outcome:
        rows = [row for split in self._model_splits(step) for row in split]
        done = self._model.upsert(rows, step.txn, step.names)
        return Outcome(len(self._model.commits), skipped=not done, files=sum(map(bool, step.splits)))

    def _model_splits(self, step: Upsert) -> Sequence[Sequence[Sequence[Json]]]:
        return self._model.splits(step.splits) if isinstance(self._model, _Splitting) else step.splits

    def delete(self, keys: Sequence[tuple[Json, ...]] | None, condition: Condition | None) -> Outcome:
        if condition is not None:
            self._model.delete_where(condition)
        else:
            self._model.delete_keys([self._model.key_form(k) for k in keys or ()])
        return Outcome(len(self._model.commits))

    def change(self, statement: Statement) -> Counts:
        assert isinstance(self._model, DmlModel), "a model of statements"
        effect = self._model.change(statement)
        if effect.refused:
            raise TrinityError(effect.faults[0].codes[0], effect.faults[0].why)
        return effect.counts

    def read_elsewhere(self) -> None:
        return None

    def wrong_statistics(self) -> None:
        return None

    def inject(self, fault: Fault) -> AbstractContextManager[Injection]:
        return nullcontext(Injection(fault))

    def another(self, how: int) -> ModelSubject:
        return _InPlace(self)

    def compact(self, full: bool) -> None:
        self._model.compact(full)

    def resolve(self) -> None:
        self._model.resolve()

    def vacuum(self) -> None:
        self._model.vacuum()

    def reopen(self) -> None:
        self._model.reopen()

    def read(
        self,
        version: Any = None,
        timestamp: datetime | None = None,
        condition: Condition | None = None,
        columns: Sequence[str] | None = None,
    ) -> list[Row]:
        if timestamp is not None:
            version = (timestamp - _BEGINNING) // timedelta(seconds=1)
        rows = self._model.query(condition) if condition else self._model.merged(version)
        found = [{n: row[n] for n in columns or row} for row in rows.values()]
        for key, row in zip(rows, found, strict=True):
            for name, value in row.items():
                if isinstance(value, OutOfRange):
                    raise TrinityError("NUMERIC_VALUE_OUT_OF_RANGE", f"{name} of {key} is {value.total}")
        return found

    def alter(self, kind: str, columns: Sequence[str]) -> None:
        self._model.alter(kind, columns)

    def log(self) -> list[LogRow]:
        commits = self._model.arrived()
        return [LogRow(v.row, n, (n, i)) for n, commit in enumerate(commits) for i, v in enumerate(commit)]

    def changes(self, after: Any) -> list[Changed]:
        return self._model.feed(after)

    def history(self) -> list[tuple[Any, datetime]]:
        return [(n, _BEGINNING + timedelta(seconds=n)) for n in range(len(self._model.commits) + 1)]


class _InPlace(ModelSubject):
    """Another engine on the table of a subject."""

    def __init__(self, subject: ModelSubject) -> None:
        self._model = subject._model

    def change(self, statement: Statement) -> Counts:
        assert isinstance(self._model, DmlModel), "a model of statements"
        effect = self._model.effect_in_place(statement)
        self._model.apply(effect)
        return effect.counts


class _Splitting(Model):
    """A model that sees the splits of a commit."""

    def splits(self, splits: Sequence[Sequence[Sequence[Json]]]) -> Sequence[Sequence[Sequence[Json]]]:
        """Return the rows that are stored."""
        return splits


# -- folds ----------------------------------------------------------------------------------------------


class TieToEarlier(Model):
    """A tie goes to the earlier arrival (against K4)."""

    def takes_over(self, later: Version, earlier: Version) -> bool:
        return self.compare(later.row, earlier.row) > 0 or not self.shape.watermark


class NullLargest(Model):
    """A NULL watermark is the largest (against K3)."""

    def compare_part(self, type_text: str, one: Value, other: Value) -> int:
        found = super().compare_part(type_text, one, other)
        return -found if one is None or other is None else found


class NanSmallest(Model):
    """NaN is smaller than every number (against K3)."""

    def compare_part(self, type_text: str, one: Value, other: Value) -> int:
        found = super().compare_part(type_text, one, other)
        return -found if (2,) in (order_form(type_text, one), order_form(type_text, other)) else found


class SortOrderIgnored(Model):
    """``sequence.field.sort-order`` has no effect (against U8)."""

    def compare_part(self, type_text: str, one: Value, other: Value) -> int:
        mine, theirs = order_form(type_text, one), order_form(type_text, other)
        return (mine > theirs) - (mine < theirs)


class FirstPartOnly(Model):
    """A composite watermark counts by its first column only (against K3)."""

    def compare(self, one: Row, other: Row) -> int:
        first = self.shape.watermark[:1]
        return self.compare_part(self.shape.type_of(first[0]), one[first[0]], other[first[0]]) if first else 0


class ArrivalOnly(Model):
    """The last arrival wins whatever its watermark (against U1)."""

    def compare(self, one: Row, other: Row) -> int:
        return 0


class SignedBytes(Model):
    """Binary compares by signed bytes (against K2)."""

    def compare_part(self, type_text: str, one: Value, other: Value) -> int:
        if type_text != "binary" or one is None or other is None:
            return super().compare_part(type_text, one, other)
        mine, theirs = ([b - 256 if b > 127 else b for b in v] for v in (one, other))
        sign = (mine > theirs) - (mine < theirs)
        return -sign if self.shape.descending else sign


class Utf16Strings(Model):
    """Strings compare by UTF-16 units (against K2)."""

    def compare_part(self, type_text: str, one: Value, other: Value) -> int:
        if type_text != "string" or one is None or other is None:
            return super().compare_part(type_text, one, other)
        mine, theirs = str(one).encode("utf-16-be"), str(other).encode("utf-16-be")
        sign = (mine > theirs) - (mine < theirs)
        return -sign if self.shape.descending else sign


class ZerosDiffer(Model):
    """-0.0 and 0.0 are two keys (against K2)."""

    def key_of(self, row: Row) -> Key:
        return tuple(
            str(row[n]) if isinstance(row[n], float) else k
            for n, k in zip(self.shape.key, super().key_of(row), strict=True)
        )


class FilledFromOlder(Model):
    """NULLs of the winner are filled from the version before (against U1)."""

    def winners(self, commits: int | None = None) -> dict[Key, Version]:
        kept = (self.shape.tombstone, *self.shape.watermark)
        last: dict[Key, Row] = {}
        for version in self.arrivals(commits):
            old = last.get(self.key_of(version.row), {})
            last[self.key_of(version.row)] = {
                n: old.get(n) if v is None and n not in kept else v for n, v in version.row.items()
            }
        return {
            key: Version(last[key], winner.deleted) if last[key]["v"] == winner.row["v"] else winner
            for key, winner in super().winners(commits).items()
        }


# -- tombstones -----------------------------------------------------------------------------------------


class TombstoneValueIgnored(Model):
    """Any non-NULL string is a tombstone although its value is defined (against U3)."""

    def is_tombstone(self, row: Row) -> bool:
        name = self.shape.tombstone
        if name is not None and self.shape.tombstone_value is not None:
            return row[name] is not None
        return super().is_tombstone(row)


class FalseIsTombstone(Model):
    """FALSE is a tombstone (against U3)."""

    def is_tombstone(self, row: Row) -> bool:
        return (self.shape.tombstone is not None and row[self.shape.tombstone] is False) or super().is_tombstone(row)


class AnyOlderTombstone(Model):
    """A deleted key never comes back (against U4)."""

    def takes_over(self, later: Version, earlier: Version) -> bool:
        return super().takes_over(later, earlier) and not self.is_deleted(earlier)


class RetractsShown(Model):
    """-U and -D rows are visible (against U8)."""

    def is_retract(self, row: Row) -> bool:
        return False


class DeleteWithoutWatermark(Model):
    """A writer's delete writes a NULL watermark, so that it loses (against U5)."""

    def _delete(self, rows: list[Row]) -> int:
        return super()._delete([{n: None if n in self.shape.watermark else v for n, v in row.items()} for row in rows])


class RenamedByName(Model):
    """After a rename older rows are read by the old name (against L3)."""

    def alter(self, kind: str, columns: Sequence[str]) -> None:
        super().alter(kind, columns)
        if kind == "swap":
            one, other = columns
            self.commits = [
                [replace(v, row={**v.row, one: v.row[other], other: v.row[one]}) for v in commit]
                for commit in self.commits
            ]


class DroppedComesBack(Model):
    """A column that is dropped and added again has its old values (against L3)."""

    def alter(self, kind: str, columns: Sequence[str]) -> None:
        """Remember everything."""


class DefaultOfNewRowsAlone(Model):
    """A new column with a DEFAULT is NULL in existing rows (against L3)."""

    def alter(self, kind: str, columns: Sequence[str]) -> None:
        super().alter("blank" if kind == "default" else kind, columns)


# -- writes and reads -----------------------------------------------------------------------------------


class TransactionsIgnored(Model):
    """A retry is appended again (against L4)."""

    def upsert(
        self,
        rows: Iterable[Sequence[Json]],
        txn: tuple[str, int] | None = None,
        names: tuple[str, ...] | None = None,
    ) -> bool:
        return super().upsert(rows, None, names)


class RetryReported(Model):
    """A retry is appended again, and reported as skipped (against L4)."""

    def upsert(
        self,
        rows: Iterable[Sequence[Json]],
        txn: tuple[str, int] | None = None,
        names: tuple[str, ...] | None = None,
    ) -> bool:
        listed = list(rows)
        done = super().upsert(listed, txn, names)
        if not done:
            super().upsert(listed, None, names)
        return done


class LastRowLost(_Splitting):
    """The last row of a split of five and more is lost (against L1)."""

    def splits(self, splits: Sequence[Sequence[Sequence[Json]]]) -> Sequence[Sequence[Sequence[Json]]]:
        return [s[:-1] if len(s) > 4 else s for s in splits]


class SplitsReversed(_Splitting):
    """Splits arrive in reverse order (against L2)."""

    def splits(self, splits: Sequence[Sequence[Sequence[Json]]]) -> Sequence[Sequence[Sequence[Json]]]:
        return splits[::-1]


class FilterBelowFold(Model):
    """Any predicate goes below the fold (against L9)."""

    def query(self, condition: Condition) -> dict[Key, Row]:
        kept = [[v for v in c if condition.holds(self.shape, v.row)] for c in self.commits]
        return replace(self, commits=kept).merged()


class TimeStandsStill(Model):
    """An earlier version reads like the newest (against L10)."""

    def merged(self, commits: int | None = None) -> dict[Key, Row]:
        return super().merged()


MUTANTS: Final[Mapping[str, type[Model]]] = {c.__name__: c for c in (
    TieToEarlier, NullLargest, NanSmallest, SortOrderIgnored, FirstPartOnly, ArrivalOnly, SignedBytes, Utf16Strings,
    ZerosDiffer, FilledFromOlder, TombstoneValueIgnored, FalseIsTombstone, AnyOlderTombstone, RetractsShown,
    DeleteWithoutWatermark,

    RenamedByName, DroppedComesBack, DefaultOfNewRowsAlone, TransactionsIgnored, RetryReported, LastRowLost,
    SplitsReversed, FilterBelowFold, TimeStandsStill,
)}  # fmt: skip
"""Name -> a model with one fault; its docstring names the rule that it breaks."""
