"""The prose of the pages is easy enough to read."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.readability import LIMIT, grade, prose
from docs.site import DOCS, ROOT

WRITTEN = [page for page in sorted(DOCS.rglob("*.md")) if page.parent.name not in ("api", "reference")]
HARD = (
    "The interdependence of heterogeneous synchronisation mechanisms necessitates considerable administrative "
    "deliberation, notwithstanding the organisational prerequisites that characterise contemporary infrastructures.\n"
)


@pytest.mark.parametrize("page", [ROOT / "README.md", *WRITTEN], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_is_easy_to_read(page: Path) -> None:
    assert grade(page) <= LIMIT


def test_hard_prose_is_found_and_code_is_none(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(HARD * 3)
    assert grade(page) > LIMIT
    page.write_text(f"# {HARD}\n```text\n{HARD}```\n\n| {HARD.strip()} |\n" + "A row is read. " * 30)
    assert grade(page) < 2


def test_items_of_a_list_are_sentences_without_their_rules() -> None:
    assert prose("Two things:\n\n- one `a.b` ([U4](semantics.md#u4))\n- the [other](x.md)\n") == (
        "Two things.\none code.\nthe other."
    )
