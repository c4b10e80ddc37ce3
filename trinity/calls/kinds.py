"""Makes checks of values out of annotations, once for each parameter."""

from __future__ import annotations

import operator
import types
from collections import abc
from collections.abc import Callable, Mapping
from typing import Any, Final, ForwardRef, Literal, NoReturn, Union, get_args, get_origin

from trinity.calls.spark import STOPPED, is_stopped

__all__ = ["Check", "Unfit", "checks_of"]

Check = Callable[[Any], Any]
"""Returns the value that the callee gets, a numpy scalar as a Python one. Raises :class:`Unfit`."""


class Unfit(Exception):
    """A value that its annotation does not allow.

    Attributes:
        place: where it is within the argument: ``[1]``; empty for the argument itself.
        why: what is wrong with it.
    """

    def __init__(self, place: str, why: str) -> None:
        super().__init__(why)
        self.place, self.why = place, why


class _OtherKind(Unfit):
    """A value of another type, so that another part of a union may still allow it."""


class _ByName(type):
    """A class that need not be loaded: instances are recognised by class name and package."""

    package = "pyspark."

    def __instancecheck__(cls, value: object) -> bool:
        return any(c.__name__ == cls.__name__ and c.__module__.startswith(cls.package) for c in type(value).__mro__)


_SPARK: Final = {
    "DataFrame": _ByName("DataFrame", (), {}),
    "SparkColumn": _ByName("Column", (), {}),
    "SparkSession": _ByName("SparkSession", (), {}),
    "StructType": _ByName("StructType", (), {}),
}
"""Spark's classes in annotations, by name, since importing Trinity must not import Spark."""

_RESULT: Final[Any] = _ByName("Result", (), {"package": "trinity.result"})
"""Trinity's own result, which is taken where a DataFrame is."""

_RUNNING: Final = (_SPARK["DataFrame"], _SPARK["SparkSession"])
"""Those whose instances work only while their Spark runs."""

_WORDS: Final = {
    "Path": "a path",
    "datetime": "a datetime",
    "timedelta": "a timedelta, as '7 days' or timedelta(days=7)",
    "DataFrame": "a Spark DataFrame",
    "Schema": "an Arrow schema",
}


def checks_of(annotations: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Check]:
    """Return parameter -> check of its values, for parameters whose annotation restricts them.

    Args:
        annotations: parameter -> annotation, or its text.
        names: name in such texts -> its meaning, except Spark's.

    Raises:
        TypeError: for an annotation that is not understood.
    """
    found = {name: _check(annotation, names) for name, annotation in annotations.items()}
    return {name: check for name, (check, _) in found.items() if check is not _any_value}


def _check(annotation: Any, names: Mapping[str, Any]) -> tuple[Check, str]:
    """Return the check of an annotation, and in words what it allows."""
    if isinstance(annotation, ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        annotation = eval(annotation, dict(_SPARK), names)
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return _one_of([_check(a, names) for a in arguments])
    if origin is Literal:
        return _literal(arguments)
    if origin in (abc.Sequence, list) or annotation is abc.Sequence:
        return _sequence(*_check(arguments[0] if arguments else Any, names))
    if origin in (abc.Mapping, dict) or annotation is abc.Mapping:
        return _mapping([_check(a, names) for a in arguments or (Any, Any)])
    if origin is abc.Iterable:
        return _iterable, "a sequence"
    if origin is abc.Callable:
        return _instance(abc.Callable, "a function")
    if origin is tuple:  # the callee describes wrong parts better
        return _any_value, "anything"
    if getattr(annotation, "_is_protocol", False):
        return _any_value, "anything"
    if annotation in _RUNNING:
        return _of_spark(annotation, _WORDS.get(annotation.__name__, f"a {annotation.__name__}"))
    if isinstance(annotation, type):
        return _instance(annotation, _WORDS.get(annotation.__name__, f"a {annotation.__name__}"))
    raise TypeError(f"annotation {annotation!r} is not understood")


def _refuse(words: str, value: object) -> NoReturn:
    shown = "None" if value is None else f"of type {type(value).__name__}"
    raise _OtherKind("", f"is to be {words}, and is {shown}")


# -- plain values ---------------------------------------------------------------------------------------


def _any_value(value: Any) -> Any:
    return value


def _none(value: Any) -> None:
    if value is not None:
        _refuse("None", value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        _refuse("text", value)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Unfit("", "holds half of a surrogate pair, which is no character") from None
    return value


def _any_value_or_text(value: Any) -> Any:
    return _text(value) if isinstance(value, str) else value


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if not _of_numpy(value, "bool"):
        _refuse("True or False", value)
    return bool(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not (isinstance(value, int) or _of_numpy(value, "int", "uint")):
        _refuse("a whole number", value)
    found = operator.index(value)
    if not -(2**63) <= found < 2**63:
        raise Unfit("", "is a number of more than 64 bits")
    return found


def _number(value: Any) -> float:
    if isinstance(value, float) or _of_numpy(value, "float"):
        return float(value)
    return _whole(value)


def _of_numpy(value: object, *kinds: str) -> bool:
    return type(value).__module__ == "numpy" and type(value).__name__.rstrip("_0123456789") in kinds


def _iterable(value: Any) -> Any:
    """Check that a value is iterable, without consuming it: it may be iterable only once."""
    try:
        iter(value)
    except TypeError:
        _refuse("a sequence", value)
    return value


_PLAIN: Final[dict[Any, tuple[Check, str]]] = {
    Any: (_any_value, "anything"),
    object: (_any_value, "anything"),
    None: (_none, "None"),
    type(None): (_none, "None"),
    str: (_text, "text"),
    bool: (_flag, "True or False"),
    int: (_whole, "a whole number"),
    float: (_number, "a number"),
}

# -- made of others -------------------------------------------------------------------------------------


def _of_spark(kind: _ByName, words: str) -> tuple[Check, str]:
    def check(value: Any) -> Any:
        if kind is _SPARK["DataFrame"] and isinstance(value, _RESULT):
            value = value.to_df()
        if not isinstance(value, kind):
            _refuse(words, value)
        if is_stopped(value):
            raise Unfit("", STOPPED)
        return value

    return check, words


def _instance(kind: type, words: str) -> tuple[Check, str]:
    def check(value: Any) -> Any:
        if not isinstance(value, kind):
            _refuse(words, value)
        return value

    return check, words


def _literal(values: tuple[Any, ...]) -> tuple[Check, str]:
    words = f"one of {', '.join(map(repr, values))}"

    def check(value: Any) -> Any:
        if not isinstance(value, str) or value not in values:
            _refuse(words, value)
        return value

    return check, words


def _one_of(parts: list[tuple[Check, str]]) -> tuple[Check, str]:
    if any(check is _any_value for check, _ in parts):  # a text must be valid even so
        return (_any_value_or_text if any(check is _text for check, _ in parts) else _any_value), "anything"
    words = " or ".join(words for _, words in parts)

    def check(value: Any) -> Any:
        for part, _ in parts:
            try:
                return part(value)
            except _OtherKind as error:
                if error.place:  # the value has this type, but one of its parts does not fit
                    raise
        _refuse(words, value)

    return check, words


def _sequence(item: Check, words: str) -> tuple[Check, str]:
    words = "a list" if item is _any_value else f"a list of {words}"

    def check(value: Any) -> Any:
        if isinstance(value, (str, bytes, bytearray)) or not isinstance(value, abc.Sequence):
            _refuse(words, value)
        return value if item is _any_value else [_within(f"[{n}]", item, v) for n, v in enumerate(value)]

    return check, words


def _mapping(parts: list[tuple[Check, str]]) -> tuple[Check, str]:
    (key, keys), (item, values) = parts
    words = "a mapping" if item is _any_value else f"a mapping of {keys} to {values}"

    def check(value: Any) -> Any:
        if not isinstance(value, abc.Mapping):
            _refuse(words, value)
        return {_within(" (a key)", key, k): _within(f"[{k!r:.60}]", item, v) for k, v in value.items()}

    return check, words


def _within(place: str, check: Check, value: Any) -> Any:
    try:
        return check(value)
    except Unfit as error:
        raise type(error)(place + error.place, error.why) from None
