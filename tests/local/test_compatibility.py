"""docs/compatibility.md says what formats' tables can do, and what is refused, as it is found by trying."""

from __future__ import annotations

from tests.support.compatibility import PAGE, page


def test_the_page_says_what_trying_finds() -> None:
    assert page() == PAGE.read_text(), "python -m tests.support.compatibility"
