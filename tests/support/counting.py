"""Calls of functions and methods, counted while they do what they always do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pytest


@contextmanager
def counted(owner: Any, *names: str, by: Callable[..., Hashable] | None = None) -> Iterator[Counter[Any]]:
    """Count the calls of methods of a class or an object, or of functions of a module.

    Args:
        owner: the class, the object, or the module.
        names: names of the methods or functions.
        by: makes of a call's arguments, without options, what it is counted under; by default that is the name.
    """
    found: Counter[Any] = Counter()

    def counting(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def called(*arguments: Any, **options: Any) -> Any:
            found[by(*arguments) if by else name] += 1
            return call(*arguments, **options)

        return called

    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setattr(owner, name, counting(name, getattr(owner, name)))
        yield found
