"""The rows that Paimon returned, compared with the model and the prediction, value by value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.paimon.play import Answer
from tests.paimon.prediction import ALL, Failure, Paimon
from trinity_conformance.model.engine_model import EngineModel, model_of
from trinity_conformance.model.shapes import DEDUPLICATE, Shape
from trinity_conformance.model.tables import Key, Model, Row
from trinity_conformance.playing.differences import cell_form
from trinity_conformance.playing.traces import History, Upsert

_PRESENCE: Final = "(row)"
"""The name of a pseudo-column: whether there is a row."""
_UNORDERED: Final = ("merge_map", "collect", "nested_update")
Cells = Mapping[tuple[Key, str], Any]


@dataclass
class Comparison:
    """The result of comparing one history or several.

    Attributes:
        same: the number of values that equal the model's.
        explained: difference -> the number of values that it explains.
        unexplained: the values without an explanation, as lines.
    """

    same: int = 0
    explained: Counter[str] = field(default_factory=Counter)
    unexplained: list[str] = field(default_factory=list)

    def add(self, other: Comparison) -> None:
        """Add the counts of another comparison."""
        self.same += other.same
        self.explained.update(other.explained)
        self.unexplained += other.unexplained


def compared(name: str, history: History, answer: Answer, model: type[EngineModel] = EngineModel) -> Comparison:
    """Compare Paimon's rows with the model's, and with the model's under the known differences.

    Args:
        name: the table's name in messages.
        history: the history.
        answer: Paimon's answer to it.
        model: the model, or one with a fault.
    """
    found = Comparison()
    if answer.rows is None:
        found.unexplained.append(f"{name}: Paimon failed: {answer.error}")
        return found
    oracle = played(history, model)
    keys = Counter(oracle.key_of(row) for row in answer.rows)
    found.unexplained += [f"{name}: key {key} has {count} rows" for key, count in keys.items() if count > 1]
    wanted = _cells(history.shape, oracle.merged())
    got = _cells(history.shape, {oracle.key_of(row): row for row in answer.rows})
    parts = _Predictions(history, model)
    for place in sorted({*wanted, *got}, key=str):
        paimon, trinity = got.get(place), wanted.get(place)
        if paimon == trinity:
            found.same += 1
        elif place[1] == _PRESENCE or (place[0], _PRESENCE) in got:  # a missing row is reported once
            predicted = parts.cells(ALL).get(place)
            if paimon == predicted:
                found.explained.update(parts.responsible(place, trinity))
            elif _sorted(history.shape, place[1], paimon) == _sorted(history.shape, place[1], predicted):
                found.explained["element-order"] += 1
            else:
                found.unexplained.append(
                    f"{name} key {place[0]} {place[1]}: Paimon {paimon}, the model {trinity}, predicted {predicted}"
                )
    return found


def played(history: History, model: type[EngineModel] = EngineModel) -> Model:
    """Return the model after a history."""
    oracle = model_of(history.shape) if history.shape.engine == DEDUPLICATE else model(history.shape)
    for step in history.steps:
        if isinstance(step, Upsert):
            oracle.upsert(step.rows, None, step.names)
    return oracle


def _cells(shape: Shape, rows: Mapping[Key, Row]) -> Cells:
    return dict(_listed(shape, rows))


def _listed(shape: Shape, rows: Mapping[Key, Row]) -> Iterator[tuple[tuple[Key, str], Any]]:
    for key, row in rows.items():
        yield (key, _PRESENCE), True
        for name in shape.names:
            yield (key, name), cell_form(shape, name, row[name])


def _sorted(shape: Shape, name: str, form: Any) -> Any:
    """Return a value without the order of its elements, if Paimon orders them by hash."""
    unordered = name != _PRESENCE and shape.function_of(name) in _UNORDERED and isinstance(form, tuple)
    return Counter(form) if unordered else form


@dataclass
class _Predictions:
    """Paimon's predicted values under sets of differences, computed when needed."""

    history: History
    model: type[EngineModel]
    made: dict[frozenset[str], Cells] = field(default_factory=dict)

    def cells(self, differences: frozenset[str]) -> Cells:
        """Return the values that Paimon would return if these differences held; none where it would fail."""
        if differences not in self.made:
            try:
                rows = Paimon(self.history, self.model, differences).merged()
            except Failure:
                rows = {}
            self.made[differences] = _cells(self.history.shape, rows)
        return self.made[differences]

    def responsible(self, place: tuple[Key, str], wanted: Any) -> list[str]:
        """Return the differences without which the value would change; if there are none, each that changes it."""
        whole = self.cells(ALL).get(place)
        needed = [d for d in sorted(ALL) if self.cells(ALL - {d}).get(place) != whole]
        return needed or [d for d in sorted(ALL) if self.cells(frozenset({d})).get(place) != wanted]
