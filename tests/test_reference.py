"""docs/api: as the docstrings are, with every public name."""

from __future__ import annotations

import importlib

import pytest

from docs.reference import FOLDER, PACKAGES, pages, undocumented


def test_pages_are_up_to_date() -> None:
    assert {p.name: p.read_text() for p in FOLDER.glob("*.md")} == pages(), "make docs"


def test_every_public_name_has_a_docstring() -> None:
    assert undocumented() == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_has_an_entry(package: str) -> None:
    entries = (FOLDER / f"{package}.md").read_text().splitlines()
    assert [name for name in importlib.import_module(package).__all__ if f"## {name}" not in entries] == []
