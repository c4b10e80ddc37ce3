"""A script in a new process prints only its own output, and nothing of Spark's start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

PROGRAM: Final = """
import sys, trinity
settings = {"spark.master": "local[2]", **dict(given.split("=", 1) for given in sys.argv[2:])}
with trinity.connect(sys.argv[1], engine="spark", spark_settings=settings) as session:
    session.create_table("t", [trinity.Column("id", "int")], primary_key=["id"]).upsert({"id": 1})
    print(session.table("t").to_df().collect())
    session.spark._jvm.java.lang.System.err.println("a line of Java's")
"""
NOISE: Final = ("WARN", "Using", "Setting", "adjust", "::")


def printed(folder: Path, *settings: str) -> tuple[str, list[str]]:
    command = [sys.executable, "-c", PROGRAM, str(folder), *settings]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout, done.stderr.splitlines()


@pytest.mark.full
def test_spark_starts_without_a_word(tmp_path: Path) -> None:
    output, lines = printed(tmp_path)
    assert output == "[Row(id=1)]\n"
    assert not [line for line in lines if any(word in line for word in NOISE)]
    assert "a line of Java's" in lines


JVM: Final = """
import sys
sys.stderr.write("WARNING: Using incubator modules: jdk.incubator.vector\\n" + "a line\\n" * 30_000)
print("written", flush=True)
sys.stdin.read()
"""
"""Stand-in for a JVM, which ends after its parent."""
PARENT: Final = """
import subprocess, sys
from trinity.spark.quiet import without_start_lines
with without_start_lines():
    jvm = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
jvm.stdout.readline()
"""
"""Program that ends as soon as its JVM has written."""


def test_the_last_lines_before_the_exit_are_shown() -> None:
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", PARENT, JVM], capture_output=True, text=True, check=True)
        assert done.stderr.count("a line\n") == 30_000
        assert "WARNING" not in done.stderr


@pytest.mark.full
def test_the_log_that_a_caller_asks_for_is_kept(tmp_path: Path) -> None:
    settings_file = tmp_path / "log4j2.properties"
    settings_file.write_text(
        "rootLogger.level = info\nrootLogger.appenderRef.e.ref = e\nappender.e.type = Console\nappender.e.name = e\n"
        "appender.e.target = SYSTEM_ERR\nappender.e.layout.type = PatternLayout\n"
        "appender.e.layout.pattern = mine %m%n\n"
    )
    _, lines = printed(
        tmp_path / "w", f"spark.driver.extraJavaOptions=-Dlog4j2.configurationFile={settings_file.as_uri()}"
    )
    assert [line for line in lines if line.startswith("mine ")]
