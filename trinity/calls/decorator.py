"""``@public``: the decorator of functions and classes that users call, and the work of such a call."""

from __future__ import annotations

import datetime as dt
import functools
import inspect
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType
from typing import Any, Final, TypeVar

from trinity.calls.causes import as_trinity
from trinity.calls.kinds import Check, Unfit, checks_of
from trinity.errors import TrinityError
from trinity.secrets import scrub

__all__ = ["CallError", "Work", "current_work", "public", "translated_by", "work"]


@dataclass
class Work:
    """The work of one public call, or of one micro-batch.

    Attributes:
        began: when it began, by :func:`time.perf_counter`.
        moment: when it began, by the calendar: what CURRENT_TIMESTAMP is in all of it.
        executor: ``spark`` once Spark has taken a part in it; else ``local``.
        attempts: attempts at a commit, since the last one that took effect.
    """

    began: float = field(default_factory=time.perf_counter)
    moment: dt.datetime = field(default_factory=partial(dt.datetime.now, dt.UTC))
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
            places, names = arguments.checked(args, kwargs)
            with work():
                return function(*places, **names)
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
        self._by_place: list[tuple[str, Check | None]] | None = None
        self._by_name: dict[str, Check] = {}
        self._rest: tuple[str, Check | None] = ("", None)
        self._options: Check | None = None

    def checked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the checked arguments for the function. Raises INVALID_ARGUMENTS, naming the argument."""
        by_place = self._by_place if self._by_place is not None else self._prepared()
        places = by_place if len(args) <= len(by_place) else itertools.chain(by_place, itertools.repeat(self._rest))
        given = zip(places, args, strict=False)
        found = [value if check is None else self._one(name, check, value) for (name, check), value in given]
        named = {
            name: self._one(name, check, value) if (check := self._by_name.get(name, self._options)) else value
            for name, value in kwargs.items()
        }
        return found, named

    def _one(self, name: str, check: Check, value: Any) -> Any:
        try:
            return check(value)
        except Unfit as error:
            message = f"{_called(self._function)}(): {name}{error.place} {error.why}."
            raise CallError("INVALID_ARGUMENTS", message) from None

    def _prepared(self) -> list[tuple[str, Check | None]]:
        parameters = inspect.signature(self._function).parameters.values()
        given = {p.name: p.annotation for p in parameters if p.annotation is not inspect.Parameter.empty}
        checks = checks_of(given, _Names(self._function))
        by_kind = {p.kind: (p.name, checks.pop(p.name, None)) for p in parameters if p.kind in _FURTHER}
        self._rest = by_kind.get(inspect.Parameter.VAR_POSITIONAL, ("", None))
        self._options = by_kind.get(inspect.Parameter.VAR_KEYWORD, ("", None))[1]
        self._by_name = checks
        self._by_place = [(p.name, checks.get(p.name)) for p in parameters if p.kind in _POSITIONAL]
        return self._by_place


def _called(function: Callable[..., Any]) -> str:
    return function.__qualname__.removesuffix(".__init__")


class _Names(dict[str, Any]):
    """Names in a function's annotations: those of its module, else of its package, for imports only for types."""

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
