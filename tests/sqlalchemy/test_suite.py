"""SQLAlchemy's compliance suite, in a process of its own: what is excluded, and why, is in suite/requirements.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

SUITE = ROOT / "tests/sqlalchemy/suite"
QUICK = "TableDDLTest or InsertBehaviorTest or RowCountTest or FetchLimitOffsetTest or HasTableTest or BooleanTest"
PYTEST = "-m pytest -q -p no:cacheprovider --import-mode=importlib -rfE --tb=short -c setup.cfg --rootdir . suite.py"


def run(warehouse: Path, engine: str, *options: str) -> str:
    """Return what the suite prints; the last line has its counts."""
    command = [sys.executable, *PYTEST.split(), "--dburi", f"trinity:///{warehouse}?engine={engine}"]
    done = subprocess.run([*command, *options], cwd=SUITE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    return done.stdout


def test_what_is_quick_passes_without_spark(warehouse: Path) -> None:
    assert " passed" in run(warehouse, "local", "-k", QUICK).splitlines()[-1]


@pytest.mark.full
def test_the_suite_passes(warehouse: Path) -> None:
    """Spark executes what this process does not."""
    printed = run(warehouse, "auto")
    assert "needs Spark" not in printed
