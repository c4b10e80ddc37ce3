"""docs/compatibility.md: the capabilities and refusals of each format, as they are found by trying."""

from __future__ import annotations

from tests.support.compatibility import PAGE, page


def test_the_page_says_what_trying_finds() -> None:
    assert page() == PAGE.read_text(), "python -m tests.support.compatibility"
