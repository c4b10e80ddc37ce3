"""The adapters mirror each other: files and names are the same in all, and each README describes its files."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.support.paths import ROOT

ADAPTERS = [ROOT / f"formats/{name}/trinity_{name}" for name in ("parquet", "delta", "iceberg")]
ADAPTER_FILES = {"__init__.py", "commit.py", "external.py", "format.py", "metadata.py", "options.py", "snapshot.py"}


def test_adapters_mirror_each_other() -> None:
    for folder in ADAPTERS:
        assert {p.name for p in folder.glob("*.py")} >= ADAPTER_FILES
        assert (folder.parent / "README.md").is_file()
        assert list((folder.parent / "tests").glob("test_*.py"))


@pytest.mark.parametrize("folder", ADAPTERS, ids=lambda folder: folder.name)
def test_an_adapter_says_what_is_in_each_file(folder: Path) -> None:
    readme = (folder.parent / "README.md").read_text()
    assert [p.name for p in sorted(folder.glob("*.py")) if p.stem != "__init__" and f"`{p.name}`" not in readme] == []


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("state.py", {"State", "check_readable", "check_writable"}),
        ("commit.py", {"live", "changes", "put"}),
        ("schema.py", {"storage_schema"}),
        ("snapshot.py", {"Snapshots", "split_source", "history", "changes"}),
        ("metadata.py", {"target_of", "_begin", "run_attempts", "delete_unneeded", "repair"}),
    ],
)
def test_adapters_with_a_log_of_their_own_read_like_a_translation(module: str, names: set[str]) -> None:
    for folder in ADAPTERS:
        if folder.name != "trinity_parquet":  # it is built on VersionedMetadata, and stores all types as they are
            tree = ast.parse((folder / module).read_text())
            kinds = (ast.FunctionDef, ast.ClassDef)
            assert names <= {node.name for node in ast.walk(tree) if isinstance(node, kinds)}
