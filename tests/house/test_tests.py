"""The rules of the tests themselves: what fixtures and helpers are called."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.support.paths import ROOT

MODULES = [
    path
    for folder in (ROOT / "tests", ROOT / "conformance/tests", *sorted(ROOT.glob("formats/*/tests")))
    for path in sorted(folder.rglob("*.py"))
]


def functions(path: Path) -> Iterator[ast.FunctionDef]:
    """Yield the functions of a module, but not those within others."""
    yield from (node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef))


def kind(fixture: ast.FunctionDef) -> str:
    """Return what a fixture gives to a test; an adapter's connector is a connector."""
    match fixture.returns:
        case None:
            return "not annotated"
        case ast.Subscript(value=ast.Name(id="Iterator" | "Generator"), slice=ast.Tuple(elts=[found, *_]) | found):
            return re.sub(r"^(?:Parquet|Delta|Iceberg)(?=Connector$)", "", ast.unparse(found))
        case found:
            return re.sub(r"^(?:Parquet|Delta|Iceberg)(?=Connector$)", "", ast.unparse(found))


def test_a_fixture_is_one_kind_of_thing() -> None:
    """Whoever reads its name in a test knows what it is, whatever the test's module."""
    kinds = defaultdict[str, set[str]](set)
    for path in MODULES:
        for function in functions(path):
            if any(re.search(r"\bfixture\b", ast.unparse(decorator)) for decorator in function.decorator_list):
                kinds[function.name].add(kind(function))
    assert len(kinds) > 100
    assert {name: found for name, found in kinds.items() if len(found) > 1 or "not annotated" in found} == {}


def test_a_helper_is_written_once() -> None:
    """Helpers of more than two lines with the same body are one, in tests/support/ or a conftest.py."""
    places = defaultdict[str, list[str]](list)
    for path in MODULES:
        for function in functions(path):
            body = function.body[1:] if ast.get_docstring(function) else function.body
            lines = (function.end_lineno or 0) - body[0].lineno + 1 if body else 0
            if lines > 2 and not function.name.startswith("test_"):
                places[ast.unparse(ast.Module(body, []))].append(f"{path.relative_to(ROOT)}:{function.name}")
    assert len(places) > 500
    assert [found for found in places.values() if len(found) > 1] == []
