"""``python -m docs.readability PAGE…`` says what school grade a page's prose asks for, by Flesch and Kincaid.

Prose is what is neither code, table nor heading. A name in code counts as one short word.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

import pyphen

LIMIT: Final = 10.0
"""The highest grade that a page may have."""
_FENCED: Final = re.compile(r"^( *`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
_LEFT_OUT: Final = re.compile(r"^ *(?:[|#<]|===|!!!|\?\?\?|!\[).*$", re.MULTILINE)
_WORD: Final = re.compile(r"[^\W\d_][\w'-]*")
_END: Final = re.compile(r"[.!?]+(?=\s|$)")
_HYPHENS: Final = pyphen.Pyphen(lang="en_US")
"""A dictionary of hyphenation, which splits words into syllables."""
_ITEM: Final = re.compile(r"^ *(?:[-*]|\d+\.) ", re.MULTILINE)


def prose(text: str) -> str:
    """Return the sentences of a page, a paragraph or an item of a list each in a line of its own."""
    text = _LEFT_OUT.sub("", _FENCED.sub("", text))
    text = re.sub(r"\s*\(\[`?[A-Z]\d+`?\]\([^)]*\)\)", "", text)  # the rule behind a sentence
    text = re.sub(r"`[^`]+`", "code", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text))
    paragraphs = (" ".join(part.split()) for part in re.split(r"\n\s*\n", _ITEM.sub("\n\n", text)))
    return "\n".join(part if part.endswith((".", "!", "?")) else f"{part.rstrip(':')}." for part in paragraphs if part)


def grade(page: Path) -> float:
    """Return the grade of a page; 0 for one with little prose."""
    found = prose(page.read_text())
    words = _WORD.findall(found)
    if len(words) <= 50:
        return 0.0
    syllables = sum(len(_HYPHENS.positions(word)) + 1 for word in words)
    return 0.39 * len(words) / len(_END.findall(found)) + 11.8 * syllables / len(words) - 15.59


def main(pages: list[str]) -> int:
    """Print the grades of pages.

    Returns:
        how many are too hard.
    """
    grades = {page: grade(Path(page)) for page in pages}
    for page, found in grades.items():
        print(f"{found:5.1f}  {page}")
    return sum(found > LIMIT for found in grades.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
