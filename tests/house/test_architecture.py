"""The tables of docs/architecture.md, compared with the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.support.code_imports import imports
from tests.support.paths import ROOT

PAGE: Final = (ROOT / "docs/architecture.md").read_text()
TRINITY: Final = ROOT / "trinity"
SIDES: Final = ("local", "spark")


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(text: str) -> Iterator[list[str]]:
    """Yield the cells of the rows of tables, without their heads."""
    for table in re.findall(r"\|[-|]+\|\n((?:\|.*\n)+)", text):
        for line in table.splitlines():
            yield [cell.strip() for cell in line.strip("|").split("|")]


def folders_of_executors() -> dict[Path, set[str]]:
    """Return folder with executors -> its files, as ``local/…`` and ``spark/…``."""
    sides = [path for side in SIDES for path in TRINITY.rglob(f"*/{side}")]
    found: dict[Path, set[str]] = {path.parent: set() for path in sides}
    for path in sides:
        found[path.parent] |= {f"{path.name}/{file.name}" for file in path.glob("*.py") if file.stem != "__init__"}
    return found


def test_files_of_the_executors_are_twins_or_say_why_not() -> None:
    tree = {
        f"{folder.relative_to(TRINITY)}/{name}" for folder, names in folders_of_executors().items() for name in names
    }
    twins, alone = set[str](), set[str]()
    for first, second in rows(section("Two executors")):
        name = first.strip("`")
        if name.endswith("/") and second.startswith("`"):
            twins |= {f"{name}{side}/{file}" for side in SIDES for file in re.findall(r"`([^`]+)`", second)}
        else:
            assert len(second) > 10, f"{name}: no reason"
            alone |= {path for path in tree if path == name or (name.endswith("/") and path.startswith(name))} or {name}
    of_both = {path for path in tree if re.sub(r"/(local|spark)/", other_side, path) in tree}
    assert len(of_both) > 20
    assert twins == of_both
    assert alone == tree - of_both


def other_side(found: re.Match[str]) -> str:
    return "/spark/" if found[1] == "local" else "/local/"


def test_the_engine_names_classes_of_spark_in_folders_of_spark() -> None:
    naming = {
        str(path.relative_to(ROOT))
        for path in (TRINITY / "engine").rglob("*.py")
        if path.parent.name != "spark" and "trinity.spark_names" in {module for module, _ in imports(path)}
    }
    said = section("Two executors").rpartition("In other modules")[2]
    assert naming == set(re.findall(r"`(trinity/[\w/]+\.py)`", said))


def test_functions_are_in_the_files_that_are_named_with_them() -> None:
    named = re.findall(r"`(\w+)(?:\.(\w+))?` in `((?:trinity|formats)/[\w/]+\.py)`", PAGE)
    assert len(named) > 8
    missing = [(name, path) for name, method, path in named if not defines(ROOT / path, name, method)]
    assert missing == []


def defines(path: Path, name: str, method: str) -> bool:
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            within = {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
            return not method or method in within
    return False
