"""Proof that histories of merge engines find faults: aggregate functions with one fault each (A3, A4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trinity_conformance.model.engine_model import FOLDS, EngineModel
from trinity_conformance.model.functions import (
    FirstValue,
    Function,
    LastValue,
    Listagg,
    Max,
    OutOfRange,
    Product,
    Sum,
)
from trinity_conformance.model.nested_functions import (
    Collect,
    MergeMap,
    MergeMapWithKeytime,
    NestedPartialUpdate,
    NestedUpdate,
)
from trinity_conformance.model.sketches import Rbm32, ThetaSketch
from trinity_conformance.model.values import Value, order_form


class SumIsNullWhenOutOfRange(Sum):
    """A sum that does not fit reads NULL (against A4)."""

    def result(self, acc: Any) -> Value:
        found = super().result(acc)
        return None if isinstance(found, OutOfRange) else found


class SumOfNothing(Sum):
    """A retract of nothing yet is nothing (against A3)."""

    def retract(self, acc: Any, value: Value) -> Any:
        return None if acc is None else super().retract(acc, value)


class ProductRoundsDown(Product):
    """A retract of a product rounds down, not toward zero (against A3)."""

    def retract(self, acc: Any, value: Value) -> Any:
        whole = isinstance(acc, int) and value is not None
        return acc // value if whole else super().retract(acc, value)


class MaxWithoutNan(Max):
    """NaN is not above every number (against K3)."""

    def order(self, value: Value) -> tuple[Any, ...]:
        found = order_form(self.type, value)
        return (0,) if found == (2,) else found


class FirstValueSkipsNull(FirstValue):
    """first_value skips NULL (against A3)."""

    def add(self, acc: Any, value: Value) -> Any:
        return acc if value is None else super().add(acc, value)


class LastValueSkipsNull(LastValue):
    """last_value skips NULL (against A3)."""

    def add(self, acc: Any, value: Value) -> Any:
        return acc if value is None else value


class LastIsFirst(LastValue):
    """last_value is the first value (against A3)."""

    def add(self, acc: Any, value: Value) -> Any:
        return value if acc is None else acc


class ListaggKeepsBlank(Listagg):
    """listagg takes blank texts (against A3)."""

    def add(self, acc: Any, value: Value) -> Any:
        if value is not None and not value.strip():
            return value if acc is None else acc + self.options.get("list-agg-delimiter", ",") + value
        return super().add(acc, value)


class CollectRemovesAll(Collect):
    """A retract of collect removes every occurrence (against A3)."""

    def retract(self, acc: Any, value: Value) -> Any:
        return acc if acc is None or value is None else [e for e in acc if not self.has(value, e)]


class CollectSorted(Collect):
    """collect sorts its elements (against A3)."""

    def result(self, acc: Any) -> Value:
        return None if acc is None else sorted(acc, key=lambda e: (e is not None, e))


class MapKeyMoves(MergeMap):
    """A later value moves its key to the end (against A3)."""

    def add(self, acc: Any, value: Value) -> Any:
        return acc if value is None else super().add(self.retract(acc, value), value)


class KeytimeTieReplaces(MergeMapWithKeytime):
    """The later row wins among equal times (against A3)."""

    def newer(self, entry: Value, stored: Value) -> bool:
        return self.text(entry) >= self.text(stored)


class KeytimeByNumber(MergeMapWithKeytime):
    """Times compare as numbers, not as text (against A3)."""

    def newer(self, entry: Value, stored: Value) -> bool:
        return int(self.time(entry)) > int(self.time(stored))


class NestedSequenceIgnored(NestedUpdate):
    """nested-sequence-field has no effect (against A3)."""

    def replaces(self, row: Value, stored: Value) -> bool:
        return True


class NestedLimitIgnored(NestedUpdate):
    """count-limit has no effect (against A3)."""

    def is_full(self, acc: list[Value]) -> bool:
        return False


class NestedNullOverwrites(NestedPartialUpdate):
    """A NULL field overwrites the one of its row (against A3)."""

    def add(self, acc: Any, value: Value) -> Any:
        found = list(acc or ())
        for row in self.rows_of(value or ()):
            place = self.place_of(found, row)
            found = [*found, row] if place is None else [*found[:place], row, *found[place + 1 :]]
        return acc if value is None else found


class BitmapReplaced(Rbm32):
    """rbm32 keeps the last bitmap (against A3)."""

    def union(self, one: bytes, other: bytes) -> bytes:
        return other


class SketchReplaced(ThetaSketch):
    """theta_sketch keeps the first sketch (against A3)."""

    def union(self, one: bytes, other: bytes) -> bytes:
        return one


_FAULTS: Final[tuple[tuple[str, type[Function]], ...]] = (
    ("sum", SumIsNullWhenOutOfRange),
    ("sum", SumOfNothing),
    ("product", ProductRoundsDown),
    ("max", MaxWithoutNan),
    ("first_value", FirstValueSkipsNull),
    ("last_value", LastValueSkipsNull),
    ("last_value", LastIsFirst),
    ("listagg", ListaggKeepsBlank),
    ("collect", CollectRemovesAll),
    ("collect", CollectSorted),
    ("merge_map", MapKeyMoves),
    ("merge_map_with_keytime", KeytimeTieReplaces),
    ("merge_map_with_keytime", KeytimeByNumber),
    ("nested_update", NestedSequenceIgnored),
    ("nested_update", NestedLimitIgnored),
    ("nested_partial_update", NestedNullOverwrites),
    ("rbm32", BitmapReplaced),
    ("theta_sketch", SketchReplaced),
)


def _computing(name: str, fault: type[Function]) -> type[EngineModel]:
    """Return a model in which one function has a fault."""
    folds = {
        engine: type(fold.__name__, (fold,), {"functions": {**fold.functions, name: fault}})
        for engine, fold in FOLDS.items()
    }
    return type(fault.__name__, (EngineModel,), {"__doc__": fault.__doc__, "folds": folds})


FUNCTION_MUTANTS: Final[Mapping[str, type[EngineModel]]] = {f.__name__: _computing(n, f) for n, f in _FAULTS}
"""Name -> a model with one faulty function; its docstring names the rule that it breaks."""
