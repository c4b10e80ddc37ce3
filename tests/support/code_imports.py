"""The imports of modules, found in their text."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Final

from tests.support.paths import ROOT

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
    """Return (module, full name) of each import in a module, at any depth; equal for the import of a whole module."""
    found: list[tuple[str, str]] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += ((alias.name, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += ((node.module, f"{node.module}.{alias.name}") for alias in node.names)
    return tuple(found)


def modules_imported(package: str) -> dict[str, set[str]]:
    """Return module -> the modules of its package that it imports, nested imports and imports for types too."""
    folder = PACKAGES[package]
    paths = {".".join((package, *p.relative_to(folder).with_suffix("").parts)): p for p in folder.rglob("*.py")}
    paths = {name.removesuffix(".__init__"): path for name, path in paths.items()}
    found: dict[str, set[str]] = {}
    for name, path in paths.items():
        wanted = {full if full in paths else module for module, full in imports(path)}
        found[name] = wanted & paths.keys() - {name}
    return found


def circles(imported: dict[str, set[str]]) -> list[set[str]]:
    """Return the groups of modules that import each other, directly or indirectly."""
    reached = {name: reach(name, imported) for name in imported}
    found = {frozenset(other for other in reached[name] if name in reached[other]) for name in imported}
    return [set(circle) for circle in found if circle]


def reach(name: str, imported: dict[str, set[str]]) -> set[str]:
    """Return the modules that a module imports, directly or indirectly."""
    waiting, found = [*imported[name]], set[str]()
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += imported[module]
    return found


_ROLE: Final = re.compile(r":(?:func|class|meth|attr|data|mod):`~?([\w.]+)`")


@cache
def _names(path: Path) -> frozenset[str]:
    """Return the names that a module defines or imports, at any depth."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.Attribute(attr=name, ctx=ast.Store()):
                found.add(name)
            case ast.ImportFrom(names=names) | ast.Import(names=names):
                found |= {alias.asname or alias.name for alias in names}
    return frozenset(found)


def missing_references(path: Path) -> list[str]:
    """Return the references in a module's docstrings to names that no module or package has."""
    found = []
    for name in _ROLE.findall(path.read_text()):
        first, *parts = name.split(".")
        place = PACKAGES.get(first)
        if place is None:
            known = _names(path) | _names(path.parent / "__init__.py")
            parts = [first]
        else:
            while parts and (place / parts[0]).is_dir():
                place, parts = place / parts[0], parts[1:]
            module = place / f"{parts[0]}.py" if parts else place
            known, parts = (_names(module), parts[1:]) if module.is_file() else (_names(place / "__init__.py"), parts)
        found += [] if set(parts[:1]) <= known else [name]
    return found
