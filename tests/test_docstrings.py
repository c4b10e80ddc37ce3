"""The docstrings: each begins with its subject."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent
SUBJECTLESS: Final = {
    *("How", "It", "Of", "That", "Those", "What", "Whatever", "When", "Where", "Whether", "Which", "Who", "Why"),
}
"""Words that no docstring begins with: it begins with its subject."""


def docstrings(source: str) -> list[tuple[int, str]]:
    """Line and text of each docstring of a module: its own, and those of classes, functions and attributes."""
    bodies = [getattr(node, "body", None) for node in ast.walk(ast.parse(source))]
    said = [node for body in bodies if isinstance(body, list) for node in body if isinstance(node, ast.Expr)]
    values = [(node.lineno, node.value.value) for node in said if isinstance(node.value, ast.Constant)]
    return sorted((line, value) for line, value in values if isinstance(value, str))


def without_subject(source: str) -> list[str]:
    """Docstrings that do not begin with their subject, as ``line: first word``."""
    first = [(line, re.match(r"\w*", text.strip())) for line, text in docstrings(source)]
    return [f"{line}: {word[0]}" for line, word in first if word is not None and word[0] in SUBJECTLESS]


@pytest.mark.parametrize("package", ["trinity", "formats", "conformance/trinity_conformance"])
def test_docstrings_begin_with_their_subject(package: str) -> None:
    paths = sorted((ROOT / package).rglob("*.py"))
    assert paths
    found = {str(p.relative_to(ROOT)): without_subject(p.read_text()) for p in paths}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('"""What a module has."""', ["1: What"]),
        ('class A:\n    """Which it is."""', ["2: Which"]),
        ('class A:\n    x = 1\n    """Of the class."""', ["3: Of"]),
        ('async def f():\n    """\n    Whether it is."""', ["2: Whether"]),
        ('x: int = 1\n"""How many."""', ["2: How"]),
        ('"""Whose it is, nobody asks."""\nx = "What"\nf("What")\n', []),
        ('def f():\n    """True when the file lies below the folder."""', []),
    ],
)
def test_a_docstring_without_its_subject_is_found(source: str, found: list[str]) -> None:
    assert without_subject(source) == found
