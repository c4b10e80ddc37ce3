"""First imports by several threads at once, without a deadlock.

Python loads a package before its modules, and a package's own module may load those modules. A thread that loads the
package and one that starts with a module in it then wait for each other, and one of them fails.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.code_imports import PACKAGES, reach

PRODUCT = [name for name in PACKAGES if name != "trinity_conformance"]


def loaded(tree: ast.AST) -> Iterator[str]:
    """Yield the modules, and the names in modules, that a module imports when it is loaded."""
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


def at_run_time(tree: ast.AST) -> Iterator[str]:
    """Yield the modules that a module imports when it is loaded or later, without imports for types alone."""
    for_types = {id(n) for part in ast.walk(tree) if _is_for_types(part) for n in ast.walk(part)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in for_types:
            yield from loaded(ast.Module([node], []))


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def sources() -> dict[str, str]:
    """Return module -> source of the product, without the command line, which has one thread."""
    found = {}
    for package in PRODUCT:
        for path in PACKAGES[package].rglob("*.py"):
            parts = (package, *path.relative_to(PACKAGES[package]).with_suffix("").parts)
            found[".".join(parts).removesuffix(".__init__")] = path.read_text()
    return {name: text for name, text in found.items() if not name.startswith("trinity.cli")}


def passed_by(texts: dict[str, str]) -> dict[str, list[str]]:
    """Return module that its package loads -> modules outside of the package that import it directly."""
    trees = {name: ast.parse(text) for name, text in texts.items()}
    loads = {name: set(loaded(tree)) & trees.keys() - {name} for name, tree in trees.items()}
    named = {name: set(at_run_time(tree)) & trees.keys() for name, tree in trees.items()}
    found: dict[str, list[str]] = {}
    for package in trees:
        for module in (other for other in reach(package, loads) if other.startswith(f"{package}.")):
            outside = [n for n in trees if module in named[n] and not f"{n}.".startswith(f"{package}.")]
            found |= {module: outside} if outside else {}
    return found


def test_trinity_itself_loads_none_of_its_modules() -> None:
    """Every import of a module of Trinity waits for ``trinity`` itself."""
    root = ast.parse((PACKAGES["trinity"] / "__init__.py").read_text())
    assert [name for name in loaded(root) if name.startswith("trinity")] == []


def test_what_a_package_loads_is_imported_from_the_package() -> None:
    assert passed_by(sources()) == {}


def test_obstore_is_loaded_before_its_parts() -> None:
    """It loads ``obstore.store`` itself: a thread that began with ``obstore.store`` would make another thread fail."""
    found = {name for name, text in sources().items() if "obstore.store" in at_run_time(ast.parse(text))}
    assert found == set()


OF_SPARK = {
    "trinity.spark_names": "the place for it",
    "trinity.calls.spark": "quietens pyspark's logger, around what Spark does",
    "trinity.datasource.source": "Spark loads it, in processes of its own",
    "trinity.engine.writing.spark.run_sinks": "in a task of Spark's",
    "trinity.engine.reading.spark.fold_by_column": "registers a function in a running Spark",
    "trinity.spark.class_lookups": "changes a Spark that was just started",
    "trinity.spark.jars": "while Spark is started, under its lock",
}
"""Modules that import pyspark directly -> why that is not its first import in one of several threads."""


def test_pyspark_is_imported_in_one_place() -> None:
    texts = {name: text for name, text in sources().items() if name.startswith("trinity.")}
    found = {name for name, text in texts.items() if any(map(_is_of_spark, at_run_time(ast.parse(text))))}
    assert found == set(OF_SPARK)


def _is_of_spark(name: str) -> bool:
    return name.partition(".")[0] == "pyspark"


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
    "import trinity; trinity.cdc.follow", "import trinity.engine.reading.arrow_read",
)  # fmt: skip


SPARK_DOORS = (
    "import trinity.sql.statements", "import trinity.engine.reading.spark.merged_read",
    "import trinity.engine.changing.writer_delete", "import trinity.engine.compacting.compact",
    "import trinity.engine.feed.spark.change_feed", "import trinity.applying.spark.history",
    "import trinity.journal.backends.warehouse.backend", "from trinity.spark_names import SparkContext",
)  # fmt: skip
"""Modules that calls of a session load at first, each of which needs pyspark."""


@pytest.mark.parametrize("lines", [DOORS, SPARK_DOORS], ids=["without pyspark", "with pyspark"])
def test_every_thread_imports_something_else_first(lines: tuple[str, ...]) -> None:
    """All threads do the first imports of the process at once."""
    code = f"""
import threading
start, failed = threading.Barrier({len(lines)}), []
def run(line):
    start.wait()
    try:
        exec(line)
    except BaseException as error:
        failed.append((line, repr(error)))
threads = [threading.Thread(target=run, args=(line,)) for line in {lines}]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(failed)
"""
    assert printed(code) == "[]"


@pytest.mark.parametrize("first", ["pyspark", "pyspark.sql"])
def test_pyspark_is_imported_by_a_thread_of_the_users_meanwhile(first: str) -> None:
    """The other thread begins as soon as this one is importing pyspark."""
    code = f"""
import sys, threading
failed = []
def run():
    try:
        import trinity.engine.reading.spark.scan
    except BaseException as error:
        failed.append(repr(error))
class Meanwhile:
    def find_spec(self, name, path=None, target=None):
        if name == "pyspark.util":
            sys.meta_path.remove(self)
            other.start()
other = threading.Thread(target=run)
sys.meta_path.insert(0, Meanwhile())
import {first}
other.join()
print(failed)
"""
    assert printed(code) == "[]"


def printed(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
