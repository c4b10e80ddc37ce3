"""Expected errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from trinity import TrinityError


@contextmanager
def refused(code: str, *named: str) -> Iterator[pytest.ExceptionInfo[TrinityError]]:
    """Expect a TrinityError of a code, whose message contains these words."""
    with pytest.raises(TrinityError) as caught:
        yield caught
    assert caught.value.code == code, str(caught.value)
    assert [n for n in named if n not in caught.value.message] == [], caught.value.message


def refusal(code: str, call: Any, says: str | None = None) -> str:
    """Return the message of the error with which a call is refused, in which a pattern is found."""
    with pytest.raises(TrinityError, match=says or None) as caught:
        call()
    assert caught.value.code == code, caught.value.message
    return caught.value.message
