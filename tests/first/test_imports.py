"""First imports by several threads at once: none waits for another one that waits for it.

Python loads the package above before a module, and a package's own module may load those below. A thread that loads the
package and one that starts with a module below then wait for each other, and one of them fails.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.test_house import PACKAGES, reach

PRODUCT = [name for name in PACKAGES if name != "trinity_conformance"]


def loaded(tree: ast.AST) -> Iterator[str]:
    """The modules, and the names of modules, that a module imports as it is loaded itself."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                continue
            case ast.If(ast.Name("TYPE_CHECKING"), _, otherwise):
                yield from (name for part in otherwise for name in loaded(ast.Module([part], [])))
            case ast.Import(names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield from (module, *(f"{module}.{alias.name}" for alias in names))
            case _:
                yield from loaded(node)


def sources() -> dict[str, str]:
    """Module -> its text, for those of the product but the command line's, which is a program of one thread."""
    found = {}
    for package in PRODUCT:
        for path in PACKAGES[package].rglob("*.py"):
            parts = (package, *path.relative_to(PACKAGES[package]).with_suffix("").parts)
            found[".".join(parts).removesuffix(".__init__")] = path.read_text()
    return {name: text for name, text in found.items() if not name.startswith("trinity.cli")}


def passed_by(texts: dict[str, str]) -> dict[str, list[str]]:
    """Module that its package loads -> modules elsewhere that import it by itself, now or later."""
    trees = {name: ast.parse(text) for name, text in texts.items()}
    loads = {name: set(loaded(tree)) & trees.keys() - {name} for name, tree in trees.items()}
    named = {name: set(_anywhere(tree)) & trees.keys() for name, tree in trees.items()}
    found: dict[str, list[str]] = {}
    for package in trees:
        for module in (other for other in reach(package, loads) if other.startswith(f"{package}.")):
            outside = [n for n in trees if module in named[n] and not f"{n}.".startswith(f"{package}.")]
            found |= {module: outside} if outside else {}
    return found


def _anywhere(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        yield from loaded(ast.Module([node], [])) if isinstance(node, ast.Import | ast.ImportFrom) else ()


def test_trinity_itself_loads_none_of_its_modules() -> None:
    """Every import of one waits for it."""
    root = ast.parse((PACKAGES["trinity"] / "__init__.py").read_text())
    assert [name for name in loaded(root) if name.startswith("trinity")] == []


def test_what_a_package_loads_is_imported_from_the_package() -> None:
    assert passed_by(sources()) == {}


PAST = ("from p.inner import x", "import p.inner", "def f():\n    from p import inner", "class A:\n    import p.inner")


@pytest.mark.parametrize("line", PAST)
def test_an_import_past_a_package_is_found(line: str) -> None:
    assert passed_by({"p": "from p.inner import x", "p.inner": "", "q": line}) == {"p.inner": ["q"]}


def test_an_import_of_what_no_package_loads_passes() -> None:
    late = "def f():\n    from p.inner import x"
    assert passed_by({"p": late, "p.inner": "", "q": "from p.inner import x"}) == {}


DOORS = (
    "import trinity.spi", "import trinity.dbapi", "import trinity.cdc", "import trinity.storage",
    "import trinity.journal", "import trinity.applying", "import trinity.errors", "import trinity.memory",
    "import trinity.merge.functions", "import trinity_parquet", "import trinity_delta", "import trinity_iceberg",
    "from trinity import connect", "from trinity import Table", "from trinity import TableName",
    "import trinity; trinity.cdc.follow",
)  # fmt: skip


def test_every_package_is_imported_by_a_thread_of_its_own() -> None:
    """The first imports of a process, all at once."""
    code = f"""
import sys, threading
start, failed = threading.Barrier({len(DOORS)}), []
def run(line):
    start.wait()
    try:
        exec(line)
    except BaseException as error:
        failed.append((line, repr(error)))
threads = [threading.Thread(target=run, args=(line,)) for line in {DOORS}]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(failed)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"
