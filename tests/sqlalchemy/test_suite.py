"""SQLAlchemy's own tests of dialects, without Spark: in the short tier those of rows and types, in the long one all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.sqlalchemy.suite.requirements import table
from tests.support.paths import ROOT

PLACE = ROOT / "tests/sqlalchemy/suite"
SHORT = "InsertBehavior or SimpleUpdateDelete or NumericTest or DateTimeTest"


def play(warehouse: Path, *words: str) -> str:
    """Run the suite in a process of its own, as its plugin would affect all tests, and return its output."""
    url = f"trinity:///{warehouse}?engine=local"
    command = [sys.executable, "-m", "pytest", "-c", f"{PLACE}/setup.cfg", f"--rootdir={PLACE}", f"--dburi={url}"]
    done = subprocess.run([*command, *words, f"{PLACE}"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-10_000:] + done.stderr
    return done.stdout


def test_rows_and_types(warehouse: Path) -> None:
    assert " passed" in play(warehouse, "-k", SHORT)


@pytest.mark.full
def test_the_whole_suite(warehouse: Path) -> None:
    assert " passed" in play(warehouse)


def test_the_page_lists_what_is_left_out() -> None:
    assert table() in (ROOT / "docs/sqlalchemy.md").read_text()
