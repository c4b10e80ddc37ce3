"""The capabilities that tables and steps of a history need."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from trinity.spi import Capability, DataType, parse_type
from trinity_conformance.model.shapes import DEDUPLICATE, Shape
from trinity_conformance.playing.traces import Alter, Delete, ReadPast, Resolve, RowChangeStep, Step

_T = TypeVar("_T")
_TYPES: Final = {c.value: c for c in Capability}
_ALTERATIONS: Final[Mapping[str, frozenset[Capability]]] = {
    "swap": frozenset((Capability.RENAME_COLUMN,)),
    "move": frozenset((Capability.MOVE_COLUMN,)),
    "widen": frozenset((Capability.WIDEN_COLUMN,)),
    "extra": frozenset((Capability.ADD_COLUMN, Capability.DROP_COLUMN)),
    "blank": frozenset((Capability.ADD_COLUMN, Capability.DROP_COLUMN)),
    "default": frozenset((Capability.ADD_COLUMN, Capability.DROP_COLUMN, Capability.ROW_CHANGES)),
}


def of_shape(shape: Shape) -> frozenset[Capability]:
    """Return the capabilities that a table needs."""
    needs = {*_of_types(column.type for column in shape.columns)}
    needs |= {Capability(shape.engine)} if shape.engine != DEDUPLICATE else set()
    needs |= {Capability.PARTITION_BY_VALUE} if shape.partition_by else set()
    return frozenset(needs | ({Capability.TIME_TRAVEL} if shape.producer != "none" else set()))


def _of_types(types: Iterable[str]) -> frozenset[Capability]:
    """Return the capabilities that columns of these types need."""
    return frozenset(capability for text in types for capability in _of_type(parse_type(text)))


def with_types(
    choices: Iterable[_T], types: Callable[[_T], Iterable[str]], capabilities: Collection[Capability]
) -> Sequence[_T]:
    """Return the choices whose types an adapter has, in their order."""
    return [choice for choice in choices if _of_types(types(choice)) <= set(capabilities)]


def _of_type(kind: DataType) -> Iterator[Capability]:
    if found := _TYPES.get(f"type {kind.name}"):
        yield found
    for child in kind.children:
        yield from _of_type(child)


def of_alteration(kind: str) -> frozenset[Capability]:
    """Return the capabilities that an :class:`~trinity_conformance.playing.traces.Alter` of a kind needs."""
    return _ALTERATIONS[kind]


def of_step(step: Step) -> frozenset[Capability]:
    """Return the capabilities that a step needs."""
    if isinstance(step, Alter):
        return of_alteration(step.kind)
    needs = {
        Resolve: Capability.RESOLVE,
        RowChangeStep: Capability.ROW_CHANGES,
        Delete: Capability.ROW_CHANGES,
        ReadPast: Capability.TIME_TRAVEL,
    }
    return frozenset(capability for kind, capability in needs.items() if isinstance(step, kind))
