"""docs/api lists every public name with its docstring; docs/reference lists the program's options."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator

import pytest

from docs.program import program_pages
from docs.reference import FOLDER, INNER, OF_PROGRAM, PACKAGES, pages, undocumented
from trinity.merge.properties import TABLE_PROPERTIES, changelog_producer, commit_timeout_s, keeps_versions, syncs_files
from trinity.merge.spec import merge_spec
from trinity.spi import Column, TableDefinition

pytestmark = pytest.mark.inner


def test_pages_are_up_to_date() -> None:
    assert {p.name: p.read_text() for p in FOLDER.glob("*.md")} == pages(), "make docs"
    assert {p.name: p.read_text() for p in OF_PROGRAM.glob("*.md")} == program_pages(), "make docs"


def test_every_public_name_has_a_docstring() -> None:
    assert undocumented() == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_has_an_entry(package: str) -> None:
    entries = (FOLDER / f"{package}.md").read_text().splitlines()
    assert [name for name in importlib.import_module(package).__all__ if f"## {name}" not in entries] == []


def meaning(properties: dict[str, str]) -> list[object]:
    """Return the values that are computed from the properties of a table with a key and a sequence."""
    columns = (Column("id", "int", nullable=False), Column("ts", "int"), Column("v", "string"))
    table = TableDefinition("default", "t", columns, primary_key=("id",), properties={"sequence.field": "ts"})
    given = table.with_properties({**table.properties, **properties})
    parts = (changelog_producer, commit_timeout_s, keeps_versions, syncs_files)
    return [merge_spec(given), *(part(given.properties) for part in parts)]


@pytest.mark.parametrize("name", [name for name, option in TABLE_PROPERTIES.items() if option.default])
def test_a_default_means_what_no_value_does(name: str) -> None:
    assert meaning({name: TABLE_PROPERTIES[name].default}) == meaning({})


def exported(package: str) -> dict[str, type]:
    """Return the classes that a package exports."""
    module = importlib.import_module(package)
    found = {name: getattr(module, name) for name in module.__all__}
    return {name: value for name, value in found.items() if inspect.isclass(value)}


def members(package: str) -> Iterator[str]:
    """Yield the public methods and properties of a package's classes as ``Class.method``, without public bases' own."""
    public = {owner for other in PACKAGES for owner in exported(other).values()}
    for name, owner in exported(package).items():
        for base in owner.__mro__:
            if (base is not owner and base in public) or not base.__module__.startswith("trinity"):
                continue
            for member, value in vars(base).items():
                named = not member.startswith("_") and INNER not in (inspect.getdoc(value) or "")
                if named and (inspect.isroutine(value) or isinstance(value, property)):
                    yield f"{name}.{member}"


@pytest.mark.parametrize("package", PACKAGES)
def test_every_member_of_a_class_has_an_entry(package: str) -> None:
    entries = (FOLDER / f"{package}.md").read_text().splitlines()
    assert [name for name in members(package) if f"### {name}" not in entries] == []
