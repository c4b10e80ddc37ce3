"""JARs of a format without a list of its own: Spark's Ivy resolves them, and prints nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.maven import running_repository

PROGRAM = """
import sys
from trinity.spark.jars import find_jars
from trinity.errors import TrinityError
from trinity.spi import SparkRequirements
settings = {"spark.jars.repositories": sys.argv[2], "spark.jars.ivy": sys.argv[1]}
for package in sys.argv[3:]:
    try:
        print(find_jars([SparkRequirements(packages=(package,))], settings))
    except TrinityError as error:
        print(error.code, error.message)
"""
POM = (
    "<project><modelVersion>4.0.0</modelVersion><groupId>org.nowhere</groupId><artifactId>part</artifactId>"
    "<version>1.0</version></project>"
)


@pytest.mark.full  # several JVMs
def test_ivy_resolves_what_no_list_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRINITY_JARS", str(tmp_path / "jars"))
    with running_repository() as repository:
        repository.files["org/nowhere/part/1.0/part-1.0.jar"] = b"the JAR"
        repository.files["org/nowhere/part/1.0/part-1.0.pom"] = POM.encode()
        packages = ["org.nowhere:part:1.0", "org.nowhere:part:1.0", "org.nowhere:part:2.0"]
        words = [sys.executable, "-c", PROGRAM, str(tmp_path / "ivy"), repository.address, *packages]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    first, second, third = done.stdout.splitlines()
    assert first == second == f"['{tmp_path}/ivy/jars/org.nowhere_part-1.0.jar']"
    assert third.startswith("CONFIGURATION_INVALID")
    assert "org.nowhere:part:2.0" in third
    assert "unresolved dependency" in third
