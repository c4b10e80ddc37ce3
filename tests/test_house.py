"""The rules of the house: import directions, light imports, module sizes, mirrored adapters, the wheel."""

from __future__ import annotations

import ast
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = {
    "trinity": ROOT / "trinity",
    "trinity_parquet": ROOT / "formats/parquet/trinity_parquet",
    "trinity_delta": ROOT / "formats/delta/trinity_delta",
    "trinity_iceberg": ROOT / "formats/iceberg/trinity_iceberg",
    "trinity_conformance": ROOT / "conformance/trinity_conformance",
}
ADAPTER_FILES = {"__init__.py", "commit.py", "format.py", "metadata.py", "schema.py", "snapshot.py"}


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def modules() -> list[Path]:
    return [p for folder in PACKAGES.values() for p in sorted(folder.rglob("*.py"))]


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_import_downwards_only(package: str) -> None:
    others = set(PACKAGES) - {package, "trinity"}
    for path in PACKAGES[package].rglob("*.py"):
        wrong = {name for name in imports(path) if name.split(".")[0] in others}
        assert not wrong, f"{path.relative_to(ROOT)} imports {wrong}"


def test_the_spi_depends_on_pyarrow_only() -> None:
    allowed = {"pyarrow", "trinity", "__future__", *sys.stdlib_module_names}
    for path in (ROOT / "trinity/spi").glob("*.py"):
        wrong = {name for name in imports(path) if name.split(".")[0] not in allowed}
        assert wrong <= {"pyspark.sql"}, f"{path.name} imports {wrong}"  # a type in ConnectorContext, never at run time


def test_import_trinity_is_light() -> None:
    heavy = "pyspark", "py4j", "hypothesis", "pytest", "pyiceberg", "deltalake", "pandas"
    code = f"import sys, trinity; print([m for m in {heavy} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"


def test_arrow_data_needs_no_jvm(tmp_path: Path) -> None:
    """A small commit of Arrow data is over before Spark would have started."""
    code = f"""
import sys, pyarrow as pa, trinity
from trinity import Column
session = trinity.connect({str(tmp_path)!r})
for catalog in ("parquet", "iceberg"):
    table = session.create_table(catalog + ".default.t", [Column("k", "int")], primary_key=["k"])
    table.upsert(pa.table({{"k": [1, 2]}}), txn=("a", 1))
print("pyspark" in sys.modules)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "False"


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_modules_stay_small(path: Path) -> None:
    assert len(path.read_text().splitlines()) < 400


def test_adapters_mirror_each_other() -> None:
    for name in ("trinity_parquet", "trinity_delta", "trinity_iceberg"):
        folder = PACKAGES[name]
        assert {p.name for p in folder.glob("*.py")} >= ADAPTER_FILES
        assert (folder.parent / "README.md").is_file()
        assert list((folder.parent / "tests").glob("test_*.py"))


def test_the_wheel_holds_exactly_the_five_packages(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)],
        capture_output=True,
        check=True,
    )
    [wheel] = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    top = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert top == set(PACKAGES)
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "trinity_conformance/template/acme_trinity/metadata.py" in names
