"""The part of the suite that a function needs, as the text of one module: all that it uses directly or indirectly."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Final, TypeAlias

_SUITE: Final = "trinity_conformance."
_Defined: TypeAlias = tuple[str, str]
"""A module, and a name that it defines."""


@dataclass(frozen=True)
class _SuiteModule:
    """A module of the suite.

    Attributes:
        text: its text.
        order: the names that it defines, in order.
        nodes: name -> the statement that defines it.
        imported: name -> (module, its name there; empty for the module itself).
    """

    text: str
    order: tuple[str, ...]
    nodes: dict[str, ast.stmt] = field(repr=False)
    imported: dict[str, _Defined] = field(repr=False)

    def lines(self, name: str) -> str:
        """Return the text that defines a name, with its decorators."""
        node = self.nodes[name]
        first = min(part.lineno for part in (node, *getattr(node, "decorator_list", ())))
        return "\n".join(self.text.splitlines()[first - 1 : node.end_lineno])


@cache
def _suite_module(module: str) -> _SuiteModule:
    text = inspect.getsource(import_module(module))
    nodes, imported = dict[str, ast.stmt](), dict[str, _Defined]()
    for node in ast.parse(text).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                nodes[name] = node
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                nodes[name] = node
            case ast.Assign(targets=[ast.Tuple(elts=several)]):
                nodes.update({one.id: node for one in several if isinstance(one, ast.Name)})
            case ast.Import(names=names):
                imported.update({found.asname or found.name: (found.name, "") for found in names})
            case ast.ImportFrom(module=str(origin), names=names):
                imported.update({found.asname or found.name: (origin, found.name) for found in names})
    return _SuiteModule(text, tuple(nodes), nodes, imported)


class Bundle:
    """Definitions of the suite that an expression needs, without its annotations, in an order in which they can be run.

    Args:
        given: names that the program defines already, whatever they mean in the suite.
    """

    def __init__(self, given: Collection[str]) -> None:
        self._given = given
        self._modules = dict[str, set[str]]()
        """Module -> its names that are included."""
        self._begun = set[_Defined]()
        self._imports = set[str]()
        self._owners = dict[str, _Defined]()

    def add(self, expression: str, module: str) -> None:
        """Add the definitions that an expression needs when it is evaluated in a module of the suite."""
        self._follow(ast.parse(expression), module)

    @property
    def imports(self) -> str:
        """The imports from outside the suite."""
        return "\n".join(sorted(self._imports))

    @property
    def definitions(self) -> str:
        """The definitions."""
        modules = ((_suite_module(module), self._modules[module]) for module in self._in_order())
        texts = (found.lines(name) for found, names in modules for name in found.order if name in names)
        return "\n\n\n".join(dict.fromkeys(texts))  # a text that defines several names comes once

    def _in_order(self) -> list[str]:
        """Return the modules, each after those that it imports."""
        found = list[str]()

        def add(module: str) -> None:
            for origin, _ in _suite_module(module).imported.values():
                if origin in self._modules and origin not in found:
                    add(origin)
            if module not in found:
                found.append(module)

        for module in self._modules:
            add(module)
        return found

    def _follow(self, node: ast.AST, module: str) -> None:
        for name in _used(node):
            if name not in self._given:
                self._include(name, module)

    def _include(self, name: str, module: str) -> None:
        found = _suite_module(module)
        if name in found.imported:
            origin, there = found.imported[name]
            if origin.startswith(_SUITE):
                self._include(there, origin)
                self._claim_name(name, (origin, there))
            else:
                self._claim_name(name, (origin, there))
                self._imports.add(_import(name, origin, there))
        elif name in found.nodes and (module, name) not in self._begun:
            self._begun.add((module, name))
            self._claim_name(name, (module, name))
            self._follow(found.nodes[name], module)
            self._modules.setdefault(module, set()).add(name)

    def _claim_name(self, name: str, defined: _Defined) -> None:
        if self._owners.setdefault(name, defined) != defined:
            raise ValueError(f"'{name}' means two things in a program: {self._owners[name]} and {defined}")


def _import(name: str, origin: str, there: str) -> str:
    renamed = "" if name == (there or origin) else f" as {name}"
    return f"from {origin} import {there}{renamed}" if there else f"import {origin}{renamed}"


def _used(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node reads; annotations are text, as in all modules of the suite."""
    if isinstance(node, ast.Name):
        yield node.id
    for part, value in ast.iter_fields(node):
        if part not in ("annotation", "returns"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _used(child)
