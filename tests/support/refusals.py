"""Expected errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from trinity import TrinityError


@contextmanager
def refused(code: str, *named: str) -> Iterator[pytest.ExceptionInfo[TrinityError]]:
    """Expect a TrinityError of a code, whose message contains these words."""
    with pytest.raises(TrinityError) as caught:
        yield caught
    assert caught.value.code == code, str(caught.value)
    assert [n for n in named if n not in caught.value.message] == [], caught.value.message
