"""``pytest -p trinity_conformance.plugin --format acme``: a test for each check."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from trinity_conformance.suite.checks import CHECKS

BLIND = """
from trinity.memory import MemoryFormat

class Blind(MemoryFormat):
    def create(self, catalog, options, context):
        made = super().create(catalog, options, context)
        made.metadata.get_splits = None
        return made
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "trinity_conformance.plugin", "-p", "no:cacheprovider", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_check_is_a_test_that_k_chooses(tmp_path: Path) -> None:
    done = run(tmp_path, "--format", "memory", "--conformance-no-spark", "-k", "merge-sinks")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"1 passed, {len(CHECKS) - 1} deselected" in done.stdout


def test_an_adapter_that_cannot_be_read_fails_with_one_cause(tmp_path: Path) -> None:
    (tmp_path / "blind.py").write_text(BLIND)
    done = run(tmp_path, "--format", "blind:Blind", "--conformance-no-spark", "--junit-xml", "junit.xml")
    assert done.returncode == 1
    assert f"{len(CHECKS)} failed" in done.stdout
    # where CI is set, pytest's summary repeats a failure's text
    failures = done.stdout.partition("short test summary")[0]
    assert failures.count("replay: trinity-conformance replay") == 1
    assert list((tmp_path / ".trinity-conformance").glob("*.json"))
    assert 'name="first-steps"' in (tmp_path / "junit.xml").read_text()


def test_an_adapter_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    done = run(tmp_path, "--format", "memry")
    assert done.returncode == 4
    assert "There is no format 'memry'" in done.stderr


def test_without_a_format_it_adds_and_loads_nothing(tmp_path: Path) -> None:
    assert run(tmp_path).returncode == 5  # no test was collected
    code = "import sys, trinity_conformance.plugin; print({'hypothesis', 'pyarrow', 'trinity'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
