"""The rules of the house: layers of packages, light imports, files through the seam."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.code_imports import PACKAGES, circles, imports, missing_references, modules_imported
from tests.support.paths import ROOT
from trinity import hidden, storage

ADAPTERS = [PACKAGES[f"trinity_{name}"] for name in ("parquet", "delta", "iceberg")]


OPEN: Final = ("trinity.errors", "trinity.spi", "trinity.storage")
"""Modules of ``trinity`` that an adapter may import: the names in their ``__all__``."""
FOR_OWN_ADAPTERS: Final = re.compile(
    r"trinity\.(storage\.\w+|arrays|clock|limits|loggers|merge\.properties|options|secrets|syntax\.quoting)\.[A-Za-z]\w*"
)
"""Names that Trinity's own adapters also import; they may change in any release."""
STRANGERS: Final = sorted((ROOT / "tests/plugins").iterdir())
"""Third-party adapters."""


def modules() -> list[Path]:
    """Return the modules of the packages and of their tests."""
    tests = (ROOT / "tests", ROOT / "conformance/tests", *sorted(ROOT.glob("formats/*/tests")))
    return [p for folder in (*PACKAGES.values(), *tests) for p in sorted(folder.rglob("*.py"))]


def _names_in(text: str) -> set[str]:
    return {name for module in OPEN for name in importlib.import_module(module).__all__} & set(
        re.findall(r"`(\w+)`", text)
    )


def test_the_guide_for_authors_has_the_names_that_adapters_import() -> None:
    """It begins with those of the least adapter, which is the template."""
    text = (ROOT / "docs/authors.md").read_text().split("### Names you need")[1].split("\n### ")[0]
    first, others = map(_names_in, text.split("The others"))
    imported = {
        folder.name: {
            name.rpartition(".")[2]
            for path in folder.rglob("*.py")
            if "tests" not in path.relative_to(folder).parts
            for _, name in imports(path)
            if name.startswith(OPEN)
        }
        for folder in STRANGERS
    }
    assert first <= imported["acme"]
    assert not first & (others - {"VersionedMetadata", "TableVersion"})
    assert {name: found - first - others for name, found in imported.items() if found - first - others} == {}


def test_lazy_names_of_storage_have_a_place() -> None:
    """Type checkers read the imports, programs the places: an export is written in both, and in ``__all__``."""
    assert sorted(name for names in storage._PLACES.values() for name in names) == sorted(storage.__all__)
    assert [name for name in storage.__all__ if not hasattr(storage, name)] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_import_downwards_only(package: str) -> None:
    others = set(PACKAGES) - {package, "trinity"}
    for path in PACKAGES[package].rglob("*.py"):
        wrong = {name for name, _ in imports(path) if name.split(".")[0] in others}
        assert not wrong, f"{path.relative_to(ROOT)} imports {wrong}"


@pytest.mark.parametrize(
    "folder",
    [*ADAPTERS, *STRANGERS],
    ids=lambda folder: folder.name,
)
def test_adapters_import_what_a_stranger_may(folder: Path) -> None:
    """Trinity's own adapters also import some modules that are not for others."""
    public = {f"{module}.{name}" for module in OPEN for name in importlib.import_module(module).__all__}
    paths = [path for path in folder.rglob("*.py") if "tests" not in path.relative_to(folder).parts]
    found = {(path.name, name) for path in paths for _, name in imports(path) if name.split(".")[0] == "trinity"}
    assert found
    inner = {name for _, name in found if folder in ADAPTERS and FOR_OWN_ADAPTERS.fullmatch(name)}
    assert {(path, name) for path, name in found if name not in public | inner} == set()


def test_no_test_module_imports_another() -> None:
    """Helpers of several tests are in tests/support/."""
    tests = [path for path in modules() if path.name.startswith("test_")]
    wrong = [(path.name, name) for path in tests for name, _ in imports(path) if re.search(r"(^|\.)test_\w+$", name)]
    assert tests
    assert wrong == []


APPLICATIONS: Final = {"trinity.cli.main", "trinity.memory"}
"""Modules that users reach otherwise than by importing a name."""


def test_tests_of_inner_modules_say_so() -> None:
    """A test that imports an inner module may change with it; all other tests are promises."""
    folder = PACKAGES["trinity"]
    paths = {
        path: ".".join(("trinity", *path.relative_to(folder).with_suffix("").parts)) for path in folder.rglob("*.py")
    }
    inner = {name.removesuffix(".__init__") for path, name in paths.items() if "\n__all__" not in path.read_text()}
    tests = [path for path in modules() if path.name.startswith("test_") and path.is_relative_to(ROOT / "tests")]
    looking = {path.name for path in tests if {name for name, _ in imports(path)} & (inner - APPLICATIONS)}
    marked = {path.name for path in tests if "pytest.mark.inner" in path.read_text()} - {Path(__file__).name}
    assert looking == marked
    assert looking


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_refer_to_what_there_is(package: str) -> None:
    found = {path.name: missing_references(path) for path in sorted(PACKAGES[package].rglob("*.py"))}
    assert {name: missing for name, missing in found.items() if missing} == {}


def test_a_reference_to_nothing_is_found(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").touch()
    module = tmp_path / "m.py"
    roles = ":func:`f`, :func:`gone`, :func:`~trinity.errors.nearest`, :func:`trinity.errors.gone`"
    module.write_text(f"'''{roles}'''\ndef f(): ...")
    assert missing_references(module) == ["gone", "trinity.errors.gone"]


def test_an_import_of_something_inner_is_found(tmp_path: Path) -> None:
    module = tmp_path / "m.py"
    module.write_text("import trinity.merge\ndef f():\n    from trinity.storage.store import ObjectStore\n")
    store = "trinity.storage.store"
    assert set(imports(module)) == {("trinity.merge", "trinity.merge"), (store, f"{store}.ObjectStore")}


def test_the_spi_depends_on_pyarrow_only() -> None:
    allowed = {"pyarrow", "__future__", *sys.stdlib_module_names}
    below = {"trinity.spi", "trinity.errors", "trinity.calls", "trinity.hidden", "trinity.display"}
    for path in (ROOT / "trinity/spi").glob("*.py"):
        names = {name for name, _ in imports(path) if name.split(".")[0] not in allowed}
        wrong = {name for name in names if not any(f"{name}.".startswith(f"{known}.") for known in below)}
        assert wrong <= {"pyspark.sql"}, f"{path.name} imports {wrong}"  # a type in ConnectorContext, never at run time


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_run_in_no_circle(package: str) -> None:
    assert circles(modules_imported(package)) == []


def folder_of(module: str) -> str:
    """Return the package of a module; that of a package is itself."""
    package, *parts = module.split(".")
    return module if PACKAGES[package].joinpath(*parts).is_dir() else module.rpartition(".")[0]


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_import_in_no_circle(package: str) -> None:
    """A package with two executors is the exception: what all three need, and what chooses, is one operation's."""
    imported = defaultdict[str, set[str]](set)
    for module, wanted in modules_imported(package).items():
        imported[folder_of(module)] |= {folder_of(other) for other in wanted} - {folder_of(module), package}
    found = circles({name: imported[name] for name in [*imported]})
    executing = [{above, f"{above}.local", f"{above}.spark"} for above in imported]
    assert [circle for circle in found if circle not in executing] == []


def test_the_two_executors_know_nothing_of_each_other() -> None:
    """What both need is in the package around them."""
    sides = {".local": ".spark", ".spark": ".local"}
    crossing = [
        (name, other)
        for name, wanted in modules_imported("trinity").items()
        for side, opposite in sides.items()
        if (package := folder_of(name)).endswith(side)
        for other in wanted
        if folder_of(other) == package.removesuffix(side) + opposite
    ]
    assert crossing == []


_Part = str | tuple[str, ...]
LAYERS: Final[dict[str, tuple[tuple[_Part, ...], ...]]] = {
    "trinity": (
        (
            (
                *("arrays", "calls", "clock", "conversions", "depth", "display", "errors", "hidden", "limits"),
                *("loggers", "messages", "names", "options", "rows", "secrets", "spark_names", "zones"),
            ),
        ),
        ("spi",),
        ("syntax", "target"),
        ("merge", "predicates"),
        ("storage",),
        ("memory", "spark"),
        ("creation", "definition", "descriptions", "result", ("buckets", "catalogs")),
        ("engine", "external"),
        ("datasource",),
        (("builder", "session", "table"),),
        ("applying", "cdc", "dlt", "sql"),
        ("connecting",),
        ("demo", ("dbapi", "journal")),
        ("cli", "sqlalchemy"),
    ),
    "trinity.engine": (
        ("executes", "program", "time_travel", "writing"),
        ("expressions", "sql_permissions"),
        ("reading",),
        ("feed", "values"),
        ("compacting",),
        ("appending",),
        ("changing", "streaming"),
    ),
    "trinity.sql": (
        ("parsing",),
        ("queries",),
        ("local", "show"),
        ("changing", "maintenance"),
        ("defining",),
        ("statements",),
    ),
    "trinity_conformance": (
        ("model",),
        ("playing",),
        ("generate", "shrink"),
        ("mutants", "suite"),
        ("report",),
        ("command",),
        ("__main__", "plugin"),
    ),
}
"""What lies below what in a package: a module imports from its own part, and from the layers before it.

A part is a package or a module, or several of them, between which any order will do that has no circle. Of two that
fit a module, the longer one counts. Parts of one layer know nothing of each other.
"""


def place(package: str, module: str) -> tuple[int, tuple[str, ...]]:
    """Return the number of a module's layer, and its part there."""
    layers = [[(part,) if isinstance(part, str) else part for part in layer] for layer in LAYERS[package]]
    names = [(name, number, part) for number, layer in enumerate(layers) for part in layer for name in part]
    _, number, part = max((len(e), n, p) for e, n, p in names if f"{module}.".startswith(f"{e}."))
    return number, part


@pytest.mark.parametrize("package", LAYERS)
def test_no_part_of_a_package_imports_upwards(package: str) -> None:
    above = f"{package}."
    upwards = []
    for name, wanted in modules_imported(package.split(".")[0]).items():
        for other in wanted if name.startswith(above) else ():
            if not other.startswith(above):
                continue
            (own, part), (below, of) = (place(package, module.removeprefix(above)) for module in (name, other))
            if part != of and below >= own:
                upwards.append((name, other))
    assert upwards == []


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": {"b"}, "e": {"a"}}) == [{"b", "c", "d"}]


_ASKS: Final = re.compile(r"\.engine .* '(local|spark)'$|^(runs_alone|who_executes)\(|\.(spark_is_given|local_bytes)$")
_ASK_OF_ENGINES: Final = {
    "session.py": "what a session without Spark has: no Spark, no views of it, a time zone of its own",
    "engine/reading/explain.py": "it prints who would execute",
    "demo/readers.py": "a session without Spark has no readers that are Spark's",
}
"""Module that asks for a session's engine -> why that decides nothing."""


def test_who_executes_is_decided_in_one_module() -> None:
    """Other modules hand it their work, and ask for nothing of a session that it goes by."""
    asking = {
        str(path.relative_to(ROOT / "trinity")): ast.unparse(node)
        for path in (ROOT / "trinity").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Compare | ast.Call | ast.Attribute) and _ASKS.search(ast.unparse(node))
    }
    assert asking.keys() == {"engine/executes.py", *_ASK_OF_ENGINES}, asking


def test_import_trinity_is_light() -> None:
    heavy = "pyspark", "py4j", "hypothesis", "pytest", "pyiceberg", "deltalake", "pandas"
    code = f"import sys, trinity; print([m for m in {heavy} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"


@pytest.mark.parametrize(
    "page",
    [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("formats/*/*.md"), ROOT / "conformance/README.md"],
    ids=lambda p: p.name,
)
def test_pages_name_files_that_are_there(page: Path) -> None:
    named = set(
        re.findall(r"(?<![\w/.-])(?:trinity|formats|conformance|tests|benchmarks)/[\w/]+\.\w+", page.read_text())
    )
    assert [name for name in sorted(named) if not (ROOT / name).exists() and page.name != "CHANGELOG.md"] == []


def test_functions_that_one_module_alone_names_are_private() -> None:
    """A name without an underscore is an offer to other modules; packages for strangers list theirs."""
    words = {
        path: set(re.findall(r"\w+", path.read_text())) for path in ROOT.rglob("*.py") if ".venv" not in path.parts
    }
    files = Counter(word for found in words.values() for word in found)
    inner = [p for folder in PACKAGES.values() for p in folder.rglob("*.py")]
    alone = [
        (str(path.relative_to(ROOT)), node.name)
        for path in inner
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef)
        and not node.name.startswith(("_", "pytest_"))
        and files[node.name] < 2
        and not node.decorator_list  # the result of a command, read by its caller
    ]
    assert len(inner) > 100
    assert alone == []


def test_only_what_strangers_import_from_has_an_all() -> None:
    """Those are packages, the modules of the reference, and the one that names Spark's classes."""
    public = {"trinity.errors", "trinity.dlt", "trinity.spark_names"}
    found = {
        ".".join(path.relative_to(folder.parent).with_suffix("").parts): "__all__" in path.read_text()
        for folder in (*PACKAGES.values(), *STRANGERS, ROOT / "tests/world")
        for path in folder.rglob("*.py")
        if path.name not in ("__init__.py", "conftest.py")
    }
    assert public <= found.keys()
    assert {name for name, has_one in found.items() if has_one} == public


def test_loggers_tell_no_secrets() -> None:
    """A module gets its own logger from trinity.loggers; those of libraries are named."""
    calls = [
        (str(path.relative_to(ROOT)), ast.unparse(node))
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("getLogger")
    ]
    assert calls
    own = [(path, call) for path, call in calls if "__name__" in call or "'trinity" in call or call.endswith("()")]
    assert own == []


HIDDEN_NAME: Final = re.compile(rf"(?<!\w){hidden.HIDDEN_PREFIX}(?:\w|\{{\}})+")


def _hidden_names(tree: ast.AST) -> list[str]:
    """Return the hidden names in the texts of a module, without the prefix itself; ``{}`` is a value in an f-string."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    f_strings = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    of_f_strings = {id(part) for node in f_strings for part in node.values}
    texts = ["".join(map(_shown_part, node.values)) for node in f_strings]
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings | of_f_strings:
            texts.append(node.value)
    return [name for text in texts for name in HIDDEN_NAME.findall(text)]


def _shown_part(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    is_prefix = isinstance(part, ast.FormattedValue) and ast.unparse(part.value) == "HIDDEN_PREFIX"
    return hidden.HIDDEN_PREFIX if is_prefix else "{}"


def test_hidden_names_are_found_in_texts() -> None:
    text = """
def f():
    '''Add _trinity_a.'''
    g(f"x.{x} AS _trinity_b", f"_trinity_c_{n}", f"{HIDDEN_PREFIX}d", "_trinity_e OR _trinity_f")
    g("_trinity_", "a_trinity_b", f"{HIDDEN_PREFIX}")
"""
    wanted = ["_trinity_b", "_trinity_c_{}", "_trinity_d", "_trinity_e", "_trinity_f"]
    assert sorted(_hidden_names(ast.parse(text))) == wanted


def test_hidden_columns_are_named_once() -> None:
    """This holds within one query of one module, too."""
    shared = [value for value in vars(hidden).values() if str(value).startswith(hidden.HIDDEN_PREFIX)]
    assert len(shared) == len(set(shared)) > 10
    columns = {name: value for name, value in vars(hidden).items() if value in shared and name != "HIDDEN_PREFIX"}
    assert {name: hidden.HIDDEN_PREFIX + name.lower() for name in columns} == columns
    said = defaultdict[str, list[str]](list)
    for path in sorted((ROOT / "trinity").rglob("*.py")):
        for name in _hidden_names(ast.parse(path.read_text())):
            said[name].append(str(path.relative_to(ROOT)))
    assert set(columns.values()) <= said.keys()
    assert {name: paths for name, paths in said.items() if len(paths) > 1} == {}


NAMING_FORMATS: Final = {
    "trinity/cdc/__init__.py": "change feeds of Delta and Iceberg as row versions",
    "trinity/connecting.py": "the catalogs of a warehouse, and which of them a bucket can have",
    "trinity/demo/readers.py": "other engines read the demo's tables",
    "trinity/demo/run.py": "the demo has a table of each format",
    "trinity/engine/appending/evolving.py": "rows of such a feed are refused, and the error says what reads them",
    "trinity/engine/compacting/health.py": "advice about checkpoints, which only Delta's log has",
    "trinity/loggers.py": "the loggers of the adapters",
    "trinity/merge/properties.py": "'delta commits' as Paimon calls appends",
    "trinity/spark/reach.py": "names under which Spark reads files",
}
"""Module of the core with the name of a format -> reason."""


def test_the_core_names_formats_only_where_it_must() -> None:
    """All else an adapter says of itself. Names in docstrings do not count; Parquet is the files of all formats."""
    found = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "trinity").rglob("*.py")
        for tree in [ast.parse(path.read_text())]
        for docstrings in [{id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}]
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and id(node) not in docstrings and isinstance(node.value, str)
        if re.search(r"(?<![a-z])(delta|iceberg)(?![a-z])", node.value)
    }
    assert found == set(NAMING_FORMATS)


PARSERS: Final = {"parse_one", "parse_into", "tokenize", "parser"}
"""Methods, and functions of sqlglot, that read SQL."""


def test_sql_is_read_by_the_package_of_syntax() -> None:
    """So one text has one meaning: each dialect is defined there, with what sqlglot lacks."""
    found = [
        (str(path.relative_to(ROOT)), name)
        for path in sorted((ROOT / "trinity").rglob("*.py"))
        if ROOT / "trinity/syntax" not in path.parents
        for node in ast.walk(ast.parse(path.read_text()))
        for name in (
            [a.name for a in node.names] if isinstance(node, ast.ImportFrom) and node.module == "sqlglot"
            else [node.func.attr] if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else []
        )
        if name in PARSERS
    ]  # fmt: skip
    assert found == []


FAMILIES: Final = ({"tinyint", "smallint"}, {"float", "double"}, {"char", "varchar"}, {"timestamp", "timestamp_ntz"})
"""Names of types of which code that lists one lists the other, because both are of a family."""


def test_families_of_types_are_named_once() -> None:
    """Code asks a type for its family. A mapping of types says something of each, and may name them all."""
    found = [
        (str(path.relative_to(ROOT)), ast.unparse(node))
        for folder in (ROOT / "trinity", ROOT / "pyspark_trinity", *ADAPTERS)
        for path in sorted(folder.rglob("*.py"))
        if path != ROOT / "trinity/spi/types.py" and "tests" not in path.relative_to(folder).parts
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Tuple | ast.Set | ast.List)
        for listed in [{part.value for part in node.elts if isinstance(part, ast.Constant)}]
        if any(family <= listed for family in FAMILIES)
    ]
    assert found == [("trinity/spark/remote_texts.py", SIZED_TYPES)]


SIZED_TYPES: Final = "{'char', 'dec', 'decimal', 'numeric', 'time', 'varchar'}"
"""Words that may stand before a parenthesis in an expression."""
CALENDAR: Final = re.compile(r"\btime\.time(_ns)?\(|\bdatetime\.(now|utcnow)\b")
"""How Python is asked for the time of day."""
NO_LIMITS: Final = {"METADATA_VERSION", "CHECKS"}
"""Constants that tests set to play another release: the version of metadata, the checks of the suite."""


def test_the_time_of_day_is_asked_of_the_clock() -> None:
    paths = [
        path for name, folder in PACKAGES.items() if name != "trinity_conformance" for path in folder.rglob("*.py")
    ]
    assert [str(p.relative_to(ROOT)) for p in paths if CALENDAR.search(p.read_text())] == ["trinity/clock.py"]


def test_limits_and_the_clock_are_set_and_not_patched() -> None:
    """A limit that a test needs small is a :class:`trinity.limits.Limit`, and the time is :mod:`trinity.clock`'s."""
    patched = [
        (path.name, argument.value)
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "setattr"
        for argument in node.args[:2]
        if isinstance(argument, ast.Constant)
        and re.fullmatch(r"(.*\.)?(_?[A-Z][A-Z0-9_]+|time|time_ns|monotonic)", str(argument.value))
    ]
    assert [(path, name) for path, name in patched if name not in NO_LIMITS] == []
    assert patched


LOCAL_DISK: Final = {
    "trinity/catalogs.py": "asks when folders of the Python path have changed",
    "trinity/cli/files.py": "files that are loaded and exported are the user's",
    "trinity/cli/line_editing.py": "the history of the shell is the user's",
    "trinity/cli/main.py": "reads the SQL of the file that it is given",
    "trinity/cli/shell.py": "tells a warehouse from a model by a look at it",
    "trinity/cli/tables.py": "makes the folder of a warehouse that it is asked for",
    "trinity/datasource/rendezvous.py": "processes of one machine meet over a socket, which a folder of Spark's names",
    "trinity/demo": "keeps its input and its report beside the warehouse, and reads tables as other programs do",
    "trinity/dlt.py": "files of a load package are dlt's",
    "trinity/engine/compacting/local/parts.py": "rows that wait for their bucket are in a temporary folder meanwhile",
    "trinity/engine/executes.py": "Linux tells the memory of a container in a file",
    "trinity/spark/jars.py": "Spark's JARs are in a folder of the user's",
    "trinity/spark/maven.py": "the same",
    "trinity/spark/launch.py": "Java is one of this machine's",
    "trinity/spark/quiet.py": "the lines of a JVM come through a pipe",
    "trinity/spark/workers.py": "a local Spark's Python is one of this machine's",
    "trinity/journal/model.py": "reads the model's file",
    "trinity/memory.py": "its files are in a temporary folder for as long as it is open",
    "trinity/spi/jars.py": "a list of JARs is a file beside the code",
    "trinity/storage/gcs.py": "tells of which kind a file of Google's credentials is, which Hadoop has to be told",
    "trinity/storage/local_folders.py": "the seam's answers for a local disk",
    "trinity/storage/local_objects.py": "the same",
    "trinity/storage/location.py": "the one place where paths are normalised and URIs are written",
}
"""Modules and packages that use the local disk directly -> the reason; none is an adapter's."""
OS: Final = {"PathLike", "environ", "fspath", "getpid", "stat_result"}
"""Names of ``os`` that all modules may use."""
FILE_MODULES: Final = {"fcntl", "fileinput", "glob", "os.path", "shutil", "tempfile"}
STAT_FIELDS: Final = {"st_ino", "st_mtime", "st_mtime_ns", "st_size"}
PATH_CALLS: Final = {
    *(
        "chmod",
        "glob",
        "hardlink_to",
        "is_dir",
        "is_file",
        "is_symlink",
        "iterdir",
        "lstat",
        "mkdir",
        "read_bytes",
        "read_text",
    ),
    *("rename", "rglob", "rmdir", "samefile", "symlink_to", "touch", "unlink", "write_bytes", "write_text"),
}
"""Methods that only paths have."""
BARE_CALLS: Final = {"exists", "stat"}
"""Methods that a path has without arguments, and a store with a name."""
OPENERS: Final = {"ParquetFile", "ParquetWriter", "read_metadata", "read_schema", "read_table", "write_table"}
"""Functions of ``pyarrow.parquet`` that open a path, unless a file system is given."""


def file_access(source: str) -> list[str]:
    """Return the lines in which a module touches files or writes their URIs directly, as ``line: what``."""
    tree = ast.parse(source)
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    docstrings = {id(value) for value in texts if isinstance(value, ast.Constant)}
    nodes = [node for node in ast.walk(tree) if id(node) not in docstrings]
    found = [(getattr(node, "lineno", 0), what) for node in nodes for what in _touched(node)]
    return [f"{line}: {what}" for line, what in sorted(found)]


def _touched(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Import(names):
            yield from (alias.name for alias in names if alias.name in FILE_MODULES)
        case ast.ImportFrom(module="os", names=names):
            yield from (f"os.{alias.name}" for alias in names if alias.name not in OS)
        case ast.ImportFrom(module=str(module)) if module in FILE_MODULES:
            yield module
        case ast.Attribute(ast.Name("os"), name) if name not in OS:
            yield f"os.{name}"
        case ast.Call(ast.Name("open")) | ast.Call(ast.Attribute(ast.Name("io"), "open" | "FileIO")):
            yield "open()"
        case ast.Call(ast.Attribute(ast.Name("pq")), [ast.Call(ast.Attribute(ast.Name("pa"))), *_]) | ast.Call(
            ast.Attribute(ast.Name("pq")), [ast.NamedExpr(value=ast.Call(ast.Attribute(ast.Name("pa")))), *_]
        ):
            return  # a buffer in memory
        case ast.Call(ast.Attribute(ast.Name("pq"), name), keywords=given) if name in OPENERS:
            yield from () if any(keyword.arg == "filesystem" for keyword in given) else (f"pq.{name}()",)
        case ast.Call(ast.Attribute(_, name)) if name in PATH_CALLS:
            yield f".{name}()"
        case ast.Call(ast.Attribute(_, name), [], []) if name in BARE_CALLS:
            yield f".{name}()"
        case ast.Attribute(_, name) if name in STAT_FIELDS:
            yield f".{name}"
        case ast.Constant(str(text)) if "file:/" in text:
            yield "file:/"


def touching_files() -> dict[str, list[str]]:
    """Return module of ``trinity`` and the adapters -> the lines that touch files, for modules that have any."""
    folders = [PACKAGES["trinity"], *ADAPTERS]
    paths = [(folder, path) for folder in folders for path in folder.rglob("*.py")]
    found = {f"{folder.name}/{path.relative_to(folder)}": file_access(path.read_text()) for folder, path in paths}
    return {name: places for name, places in sorted(found.items()) if places}


def listed(module: str) -> set[str]:
    """Return the entries of :data:`LOCAL_DISK` that are a module, or contain it."""
    return {name for name in LOCAL_DISK if f"{module}/".startswith(f"{name}/")}


def test_files_are_touched_through_the_seam() -> None:
    assert {name: places for name, places in touching_files().items() if not listed(name)} == {}


@pytest.mark.parametrize("folder", ADAPTERS, ids=lambda folder: folder.name)
def test_adapters_know_no_paths_but_locations(folder: Path) -> None:
    found = {(path.name, name) for path in folder.rglob("*.py") for name, _ in imports(path)}
    assert {(path, name) for path, name in found if name in {"io", "os", "pathlib", "pyarrow.fs"}} == set()


def test_every_exception_from_the_seam_is_one() -> None:
    assert set(LOCAL_DISK) == {name for module in touching_files() for name in listed(module)}


@pytest.mark.parametrize(
    "line",
    [
        "import shutil",
        "from os.path import join",
        "from os import stat",
        "found = os.path.exists(path)",
        "os.rename(a, b)",
        "with open(path) as file: pass",
        "folder.mkdir()",
        "Path(path).read_bytes()",
        "if Path(path).exists(): pass",
        "newest = max(folder.glob('*'))",
        "old.rename(new)",
        "time = found.st_mtime",
        'uri = f"file://{path}"',
        "pq.read_schema(path)",
    ],
)
def test_touching_a_file_is_found(line: str) -> None:
    assert file_access(line)


@pytest.mark.parametrize(
    "line",
    [
        "import os",
        "home = os.environ['HOME']",
        "found = store.exists(name) and store.stat(name)",
        "store.put(name, data)",
        "store.move(name, new)",
        '"""A file:// URI."""',
        "pq.ParquetWriter(path, schema, filesystem=store.filesystem)",
        "pq.ParquetWriter(pa.BufferOutputStream(), schema)",
        "pq.ParquetWriter(out := pa.BufferOutputStream(), schema)",
    ],
)
def test_what_touches_no_file_passes(line: str) -> None:
    assert file_access(line) == []
