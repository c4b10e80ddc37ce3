"""``@public``: the decorator of functions and classes that users call, and the work of such a call.

The annotations of a function become the checks of its arguments, once for each parameter.
"""

from __future__ import annotations

import datetime as dt
import functools
import inspect
import itertools
import operator
import sys
import time
import types
from collections import abc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, Final, ForwardRef, Literal, NoReturn, TypeVar, Union, get_args, get_origin

from trinity.calls.causes import as_trinity
from trinity.calls.spark import STOPPED, is_stopped
from trinity.clock import now
from trinity.errors import TrinityError
from trinity.messages import value_text
from trinity.secrets import scrub

Check = Callable[[Any], Any]
"""A function that returns the value for the callee, a numpy scalar as a Python one, or raises :class:`_Unfit`."""


class _Unfit(Exception):
    """A value that its annotation does not allow.

    Attributes:
        path: where it is within the argument: ``[1]``; empty for the argument itself.
        why: what is wrong with it.
    """

    def __init__(self, path: str, why: str) -> None:
        super().__init__(why)
        self.path, self.why = path, why


class _OtherKind(_Unfit):
    """The value has the wrong type; another member of a union may still allow it."""


class _ByName(type):
    """Metaclass of stand-ins for classes that are not loaded: instances are recognised by class name and package."""

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
"""Trinity's own result, which may be given in place of a DataFrame."""

_RUNNING: Final = (_SPARK["DataFrame"], _SPARK["SparkSession"])
"""The stand-ins of classes whose instances work only while their Spark runs."""

_WORDS: Final = {
    "Path": "a path",
    "datetime": "a datetime",
    "timedelta": "a timedelta, as '7 days' or timedelta(days=7)",
    "DataFrame": "a Spark DataFrame",
    "Schema": "an Arrow schema",
}


def _checks_of(annotations: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Check]:
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
    if isinstance(annotation, TypeVar) or getattr(annotation, "_is_protocol", False):
        return _any_value, "anything"
    if annotation in _RUNNING:
        return _of_spark(annotation, _WORDS.get(annotation.__name__, f"a {annotation.__name__}"))
    if isinstance(annotation, type):
        return _instance(annotation, _WORDS.get(annotation.__name__, f"a {annotation.__name__}"))
    raise TypeError(f"annotation {annotation!r} is not understood")


_CHOICE: Final = "one of "
"""What the words begin with for a text that must be one of some."""


def _refuse(words: str, value: object) -> NoReturn:
    if isinstance(value, str) and words.startswith(_CHOICE):
        shown = value_text(value)
    else:
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
            raise _Unfit("", "holds half of a surrogate pair, which is no character") from None
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
        raise _Unfit("", "is a number of more than 64 bits")
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

# -- checks that consist of others ----------------------------------------------------------------------


def _of_spark(kind: _ByName, words: str) -> tuple[Check, str]:
    def check(value: Any) -> Any:
        if kind is _SPARK["DataFrame"] and isinstance(value, _RESULT):
            value = value.to_df()
        if not isinstance(value, kind):
            _refuse(words, value)
        if is_stopped(value):
            raise _Unfit("", STOPPED)
        return value

    return check, words


def _instance(kind: type, words: str) -> tuple[Check, str]:
    def check(value: Any) -> Any:
        if not isinstance(value, kind):
            _refuse(words, value)
        return value

    return check, words


def _literal(values: tuple[Any, ...]) -> tuple[Check, str]:
    words = _CHOICE + ", ".join(map(repr, values))

    def check(value: Any) -> Any:
        if not isinstance(value, str) or value not in values:
            _refuse(words, value)
        return value

    return check, words


def _one_of(parts: list[tuple[Check, str]]) -> tuple[Check, str]:
    if any(check is _any_value for check, _ in parts):  # any value passes, but a text must be valid Unicode
        return (_any_value_or_text if any(check is _text for check, _ in parts) else _any_value), "anything"
    words = " or ".join(words for _, words in parts)

    def check(value: Any) -> Any:
        for part, _ in parts:
            try:
                return part(value)
            except _OtherKind as error:
                if error.path:  # the value has this type, but one of its parts does not fit
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


def _within(path: str, check: Check, value: Any) -> Any:
    try:
        return check(value)
    except _Unfit as error:
        raise type(error)(path + error.path, error.why) from None


@dataclass
class Work:
    """The work of one public call, or of one micro-batch.

    Attributes:
        began: when it began, by :func:`time.perf_counter`.
        moment: date and time at which it began, the value of CURRENT_TIMESTAMP in all of it.
        executor: ``spark`` once Spark has taken a part in it; else ``local``.
        attempts: attempts at a commit, since the last one that took effect.
    """

    began: float = field(default_factory=time.perf_counter)
    moment: dt.datetime = field(default_factory=now)
    executor: str = "local"
    attempts: int = 0


_current: ContextVar[Work | None] = ContextVar("trinity work", default=None)


@contextmanager
def work() -> Iterator[Work]:
    """Begin a piece of work, which lasts as long as the block."""
    begun = Work()
    token = _current.set(begun)
    try:
        yield begun
    finally:
        _current.reset(token)


def current_work() -> Work:
    """Return the innermost work under way; a new one where there is none."""
    return _current.get() or Work()


_Public = TypeVar("_Public", bound=Callable[..., Any])


class CallError(TrinityError, TypeError):
    """A call with arguments that the signature does not have, or does not allow. Also a TypeError, as Python raises."""


def public(target: _Public) -> _Public:
    """Make a callable check its arguments by their annotations, and raise all its errors as TrinityErrors.

    For a class this holds for every public method and property, and for its constructor. Signatures and help stay as
    they are. A value that its annotation does not allow is INVALID_ARGUMENTS; a numpy scalar becomes a Python one.
    """
    return _public(target, as_trinity)


def translated_by(translate: Callable[[Exception], Exception]) -> Callable[[_Public], _Public]:
    """Return :func:`public` with another translation of errors."""
    return lambda target: _public(target, translate)


def _public(target: _Public, translate: Callable[[Exception], Exception]) -> _Public:
    if not isinstance(target, type):
        return _guarded(target, translate)  # type: ignore[return-value]
    for name, member in list(vars(target).items()):
        if not name.startswith("_") or (name == "__init__" and isinstance(member, FunctionType)):
            setattr(target, name, _member(member, translate))
    return target


def _member(member: Any, translate: Callable[[Exception], Exception]) -> Any:
    """Return a guarded method or property; another member of a class as it is."""
    if isinstance(member, property):
        read, write = (f and _guarded(f, translate) for f in (member.fget, member.fset))
        return property(read, write, doc=member.__doc__)
    if isinstance(member, (classmethod, staticmethod)):
        return type(member)(_guarded(member.__func__, translate))
    return _guarded(member, translate) if isinstance(member, FunctionType) else member


def _guarded(function: Callable[..., Any], translate: Callable[[Exception], Exception]) -> Callable[..., Any]:
    arguments = _Arguments(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            positional, named = arguments.checked(args, kwargs)
            with work():
                return function(*positional, **named)
        except Exception as error:
            failed = error
        found = translate(_call_error(function, failed) or failed)
        if found is not failed:
            found.__cause__ = failed
        scrub(found)  # outside the except block, which would attach the handled error as context again
        try:
            raise found
        finally:
            del failed, found  # they refer to this frame

    return call


def _call_error(function: Callable[..., Any], error: Exception) -> CallError | None:
    """Return a CallError for a TypeError of the call itself, which the callee did not raise; else None."""
    if not isinstance(error, TypeError) or error.__traceback__ is None or error.__traceback__.tb_next is not None:
        return None
    message = f"{error}.".replace(".__init__()", "()")
    taken = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
    if "unexpected keyword argument" in message:
        message += f" It takes {', '.join(taken)}." if taken else " It takes none."
    return CallError("INVALID_ARGUMENTS", message)


class _Arguments:
    """The checks of a function's arguments. The first call makes them, since annotations may not resolve earlier."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._positional: list[tuple[str, Check | None]] | None = None
        self._by_name: dict[str, Check] = {}
        self._rest: tuple[str, Check | None] = ("", None)
        self._options: Check | None = None

    def checked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the checked arguments for the function. Raises INVALID_ARGUMENTS, naming the argument."""
        positional = self._positional if self._positional is not None else self._prepared()
        parameters = (
            positional if len(args) <= len(positional) else itertools.chain(positional, itertools.repeat(self._rest))
        )
        given = zip(parameters, args, strict=False)
        found = [value if check is None else self._checked(name, check, value) for (name, check), value in given]
        named = {
            name: self._checked(name, check, value) if (check := self._by_name.get(name, self._options)) else value
            for name, value in kwargs.items()
        }
        return found, named

    def _checked(self, name: str, check: Check, value: Any) -> Any:
        try:
            return check(value)
        except _Unfit as error:
            called = self._function.__qualname__.removesuffix(".__init__")
            message = f"{called}(): {name}{error.path} {error.why}."
            raise CallError("INVALID_ARGUMENTS", message) from None

    def _prepared(self) -> list[tuple[str, Check | None]]:
        parameters = inspect.signature(self._function).parameters.values()
        given = {p.name: p.annotation for p in parameters if p.annotation is not inspect.Parameter.empty}
        checks = _checks_of(given, _Names(self._function))
        by_kind = {p.kind: (p.name, checks.pop(p.name, None)) for p in parameters if p.kind in _FURTHER}
        self._rest = by_kind.get(inspect.Parameter.VAR_POSITIONAL, ("", None))
        self._options = by_kind.get(inspect.Parameter.VAR_KEYWORD, ("", None))[1]
        self._by_name = checks
        self._positional = [(p.name, checks.get(p.name)) for p in parameters if p.kind in _POSITIONAL]
        return self._positional


class _Names(dict[str, Any]):
    """The names in a function's annotations: those of its module; else of its package, for type-checking imports."""

    def __init__(self, function: Callable[..., Any]) -> None:
        function = inspect.unwrap(function)  # the module of another decorator does not have the names
        super().__init__(function.__globals__)
        self._package = sys.modules[function.__globals__["__package__"]]

    def __missing__(self, name: str) -> Any:
        try:
            return getattr(self._package, name)  # the package may load it now
        except AttributeError:
            raise KeyError(name) from None


_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_FURTHER: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
