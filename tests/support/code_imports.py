"""What modules import, out of their text."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from tests.support.paths import ROOT

__all__ = ["PACKAGES", "circles", "imports", "modules_imported", "reach"]

PACKAGES = {
    "trinity": ROOT / "trinity",
    "pyspark_trinity": ROOT / "pyspark_trinity",
    "trinity_parquet": ROOT / "formats/parquet/trinity_parquet",
    "trinity_delta": ROOT / "formats/delta/trinity_delta",
    "trinity_iceberg": ROOT / "formats/iceberg/trinity_iceberg",
    "trinity_conformance": ROOT / "conformance/trinity_conformance",
}


@cache
def imports(path: Path) -> tuple[tuple[str, str], ...]:
    """(module, full name) of each import of a module, anywhere in it; both are one for a module as a whole."""
    found: list[tuple[str, str]] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += ((alias.name, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += ((node.module, f"{node.module}.{alias.name}") for alias in node.names)
    return tuple(found)


def modules_imported(package: str) -> dict[str, set[str]]:
    """Module -> the package's modules that it imports, anywhere in it and for types alone too."""
    folder = PACKAGES[package]
    paths = {".".join((package, *p.relative_to(folder).with_suffix("").parts)): p for p in folder.rglob("*.py")}
    paths = {name.removesuffix(".__init__"): path for name, path in paths.items()}
    found: dict[str, set[str]] = {}
    for name, path in paths.items():
        wanted = {full if full in paths else module for module, full in imports(path)}
        found[name] = wanted & paths.keys() - {name}
    return found


def circles(imported: dict[str, set[str]]) -> list[set[str]]:
    """Groups of modules that import each other, directly or by way of others."""
    reached = {name: reach(name, imported) for name in imported}
    found = {frozenset(other for other in reached[name] if name in reached[other]) for name in imported}
    return [set(circle) for circle in found if circle]


def reach(name: str, imported: dict[str, set[str]]) -> set[str]:
    """The modules that a module imports, and those that they import, and so on."""
    waiting, found = [*imported[name]], set[str]()
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += imported[module]
    return found
