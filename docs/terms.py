"""``python -m docs.terms [--write] PAGE…`` says which terms of the glossary a page uses before it links them.

A term is linked where a reader meets it first: to its line of the glossary, or to a page that this line names. Code,
tables and headings are passed over, and so is a page that defines the term. ``--write`` makes the links.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from docs.site import DOCS, ROOT

GLOSSARY: Final = DOCS / "glossary.md"
COMMON: Final = frozenset({
    "attempt", "bucket-of-a-store", "catalog", "checkpoint-of-a-log", "checkpoint-of-a-stream", "claim", "commit",
    "comparison", "compaction-interval", "data-file", "dropped-table", "executor", "handle", "image", "level",
    "mark-of-deletion", "moment", "page", "plan", "position", "predicate", "property", "run", "schema", "scope",
    "snapshot", "statement", "store", "stored-changes", "version", "winner", "worker",
})  # fmt: skip
"""Terms of the code, or that mean here what they mean in databases and in Spark: a page need not link them."""
_FORMS: Final = {
    "base": r"base(?! class)",
    "bucket-of-a-key": r"buckets? of (?:the|a) base",
    "changelog": r"changelogs?(?! view|\.md)",
    "fold": r"fold(?:s|ed|ing)?",
    "ingest": r"ingest(?:s|ed)?",
    "log": r"(?:(?<=the\s)|(?<=\ba\s)|(?<=long\s))log(?!\s(?:file|line|position))|log(?=\srows?)",
    "resolve": r"resolve",
    "retract": r"retract(?:s|ed)?",
    "split": r"(?<=a )split|splits",
    "tier": r"(?<!short )(?<!long )tiers?",
    "vacuum": r"vacuum(?:s|ed)?",
}
"""Term -> pattern of its forms, where they are more than a final ``s``, or where other senses are excluded."""
_ROW: Final = re.compile(r'^\| <a id="([\w-]+)"></a>(.+?) \| (.+) \|$', re.MULTILINE)
_CODE: Final = re.compile(r"^( *`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
_HIDDEN: Final = re.compile(
    rf"{_CODE.pattern}|^ *(?:[|#<]|===|!!!|\?\?\?).*?$|!\[[^\]]*\]\([^)]*\)|`(?:[^`\n]|\n(?!\n))+`|<!--.*?-->",
    re.MULTILINE | re.DOTALL,
)
_LINK: Final = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Term:
    """A term of the glossary.

    Attributes:
        anchor: the anchor of its line.
        form: the pattern of its form in a text.
        pages: the pages that define it.
    """

    anchor: str
    form: re.Pattern[str]
    pages: frozenset[Path]


@dataclass(frozen=True)
class Use:
    """The first use of a term on a page, which is no link.

    Attributes:
        term: the term.
        start: its position.
        end: the position after it.
    """

    term: Term
    start: int
    end: int


@cache
def terms() -> tuple[Term, ...]:
    """Return the terms that pages link, the longest first."""
    rows = [row for row in _ROW.findall(GLOSSARY.read_text()) if row[0] not in COMMON]
    return tuple(
        Term(anchor, _form(anchor, names), _pages(meaning)) for anchor, names, meaning in sorted(rows, key=_length)
    )


def _length(row: tuple[str, str, str]) -> int:
    return -len(row[1].partition(" (")[0])


def _form(anchor: str, names: str) -> re.Pattern[str]:
    words = (name.replace("-", "[- ]").replace(" ", r"\s+") + "s?" for name in names.partition(" (")[0].split(", "))
    return re.compile(rf"(?<![\w-])(?:{_FORMS.get(anchor) or '|'.join(words)})(?![\w-])", re.IGNORECASE)


def _pages(meaning: str) -> frozenset[Path]:
    targets = (target.partition("#")[0] for _, target in _LINK.findall(meaning))
    return frozenset(
        {GLOSSARY, *(_target(GLOSSARY, target) for target in targets if not target.startswith("semantics"))}
    )


def _target(page: Path, target: str) -> Path:
    return Path(os.path.normpath(page.parent / target.partition("#")[0]))


def unlinked(page: Path) -> list[Use]:
    """Return the terms that a page uses before it links them."""
    text = page.read_text()
    hidden = _HIDDEN.sub(_blank, text)
    links = list(_LINK.finditer(_CODE.sub(_blank, text)))
    free = _LINK.sub(_blank, hidden)
    found: list[Use] = []
    for term in terms():
        if page in term.pages:
            continue
        use = next((use for use in term.form.finditer(free) if not use[0].isupper()), None)  # VACUUM is Delta's
        if use and not any(link.start() < use.start() for link in links if _links(page, link, term)):
            found.append(Use(term, use.start(), use.end()))
            free = free[: use.start()] + _blank(use) + free[use.end() :]
    return sorted(found, key=lambda use: use.start)


def _links(page: Path, link: re.Match[str], term: Term) -> bool:
    named = term.form.search(link[1]) is not None or term.anchor in (link[1].lower(), link[2].partition("#")[2])
    return named and _target(page, link[2]) in term.pages


def linked(page: Path) -> str:
    """Return a page's text with each of these uses as a link."""
    text = page.read_text()
    glossary = os.path.relpath(GLOSSARY, page.parent)
    for use in reversed(unlinked(page)):
        text = f"{text[: use.start]}[{text[use.start : use.end]}]({glossary}#{use.term.anchor}){text[use.end :]}"
    return text


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def main(arguments: list[str]) -> int:
    """Say which terms the pages that are named use before they link them.

    Returns:
        how many.
    """
    pages = [Path(name).absolute() for name in arguments if name != "--write"]
    count = 0
    for page in pages:
        text = page.read_text()
        for use in unlinked(page):
            count += 1
            print(f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, use.start) + 1}: {text[use.start : use.end]}")
        if "--write" in arguments:
            page.write_text(linked(page))
    return count


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
