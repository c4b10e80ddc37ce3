"""The demo's findings are those of its source, in every format, on disk and in a bucket; a repeated run adds none."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from tests.support.object_store import ObjectServer
from trinity import TrinityError
from trinity.demo.findings import Findings
from trinity.demo.load import STAGES
from trinity.demo.readers import READERS
from trinity.demo.run import CATALOGS, run_demo

pytestmark = [pytest.mark.full, pytest.mark.inner]
BATCHES = 4


@pytest.mark.usefixtures("spark")
def test_all_formats_agree_with_the_source(tmp_path: Path) -> None:
    found, output = run(tmp_path)
    assert found.differences() == []
    assert found.seen.keys() == {(reader.name, stage) for reader in READERS for stage in STAGES}
    for report in found.formats.values():
        assert len(report.commits) == BATCHES
        assert list(report.figures) == list(STAGES)
        assert list(report.took) == ["resolved", "compacted"]
    before = {reader.name: found.seen[reader.name, "log"] for reader in READERS}
    assert {name for name, seen in before.items() if seen.rows == found.truth.live} == {
        "DuckDB, by the table's merge view"
    }
    assert "all the same" in output
    again, _ = run(tmp_path)  # a second run repeats nothing
    assert again.differences() == []
    assert [report.commits for report in again.formats.values()] == [[]] * len(CATALOGS)
    assert [list(report.figures) for report in again.formats.values()] == [["compacted"]] * len(CATALOGS)
    with pytest.raises(TrinityError, match=f"begun with {BATCHES} batches, not 5"):
        run(tmp_path, batches=5)


def test_in_a_bucket(tmp_path: Path, object_server: ObjectServer, place: str) -> None:
    options = object_server.options
    environment = {
        "AWS_ENDPOINT_URL": options["endpoint"],
        "AWS_REGION": options["region"],
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": options["access_key_id"],
        "AWS_SECRET_ACCESS_KEY": options["secret_access_key"],
        "COLUMNS": "200",
    }
    words = ("-o", str(tmp_path), "-w", place, "--batches", str(BATCHES))
    command = [sys.executable, "-c", "from trinity.cli.main import app; app()", "demo", *words]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert "The same questions to each: all the same" in done.stdout
    for reader in READERS:
        row = rf"│ {reader.catalog} +│ {re.escape(reader.name)} +│.*"
        [line] = re.findall(row, done.stdout)
        assert len(re.findall(r"\d[\d,]{3,}", line)) == (len(STAGES) if reader.in_buckets else 0), line
    assert {file.name for file in tmp_path.iterdir()} == {"flights.csv", "iceberg.db", "report.html"}


def run(folder: Path, batches: int = BATCHES) -> tuple[Findings, str]:
    """Run the demo, and return its findings and what it prints."""
    output = io.StringIO()
    return run_demo(folder, batches, Console(file=output, width=160)), output.getvalue()
