"""What modules import, out of their text."""

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


_ROLE: Final = re.compile(r":(?:func|class|meth|attr|data|mod):`~?([\w.]+)`")


@cache
def _names(path: Path) -> frozenset[str]:
    """Names of what a module defines or imports, at any depth."""
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
    """References in a module's docstrings to what neither it nor its package has, nor the module that they name."""
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
