"""Terms of the glossary: a page links each of them where it uses it first."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs import terms
from docs.site import DOCS, ROOT, pages

EXEMPT = {
    DOCS / "glossary.md": "it defines them",
    DOCS / "conformance.md": "it is written by a program",
    ROOT / "CHANGELOG.md": "it is a list, of which each release is read alone",
}
# a notebook is read where it is run, and its links would have no targets there
WRITTEN = [
    page
    for page in (ROOT / "README.md", *pages())
    if page not in EXEMPT and page.parent.name not in ("api", "reference") and page.suffix != ".ipynb"
]
PAGE = """# A tombstone

A row is `tombstone`.

```text
a tombstone
```

| sidecar |
|---|
| the [sidecar]({glossary}) |

A [row version]({glossary}#row-version) and a {tombstone} of the sidecar. One more tombstone.
"""


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_term_is_used_before_it_is_linked(page: Path) -> None:
    text = page.read_text()
    assert [text[use.start : use.end] for use in terms.unlinked(page)] == [], f"python -m docs.terms --write {page}"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "page.md"


def written(page: Path, tombstone: str) -> Path:
    page.write_text(PAGE.format(glossary=terms.GLOSSARY, tombstone=tombstone))
    return page


def test_a_term_that_is_not_linked_is_found_where_it_is_first_prose(path: Path) -> None:
    (found,) = terms.unlinked(written(path, "tombstone"))
    assert (found.term.anchor, path.read_text()[: found.start].endswith("and a ")) == ("tombstone", True)


def test_it_is_linked_by_its_line_of_the_glossary_or_by_a_page_that_this_names(path: Path) -> None:
    for target in (f"{terms.GLOSSARY}#tombstone", str(DOCS / "concepts/late-rows.md#deletes")):
        assert terms.unlinked(written(path, f"[tombstone]({target})")) == []
    (found,) = terms.unlinked(written(path, f"[tombstone]({DOCS / 'sql.md'})"))
    assert path.read_text()[: found.start].endswith("One more ")


def test_links_are_written(path: Path) -> None:
    written(path, "tombstone").write_text(terms.linked(path))
    assert "tombstone](" in path.read_text()
    assert terms.unlinked(path) == []


def test_every_term_has_an_anchor_and_those_that_need_no_link_are_terms() -> None:
    lines = terms.GLOSSARY.read_text().count("\n| <a id=")
    assert lines == len(terms.terms()) + len(terms.COMMON)
