"""A process without Spark: pyspark cannot be imported, and no Java is found."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Final

from tests.support.paths import TESTS

_OF_JAVA: Final = ("JAVA_HOME", "SPARK_HOME")


def run_without_spark(code: str, *arguments: str) -> str:
    """Run code in a process without Java and pyspark, and return what it prints.

    Args:
        code: the code.
        arguments: its ``sys.argv[1:]``.
    """
    environment = {name: value for name, value in os.environ.items() if name not in _OF_JAVA}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**environment, "PATH": "/nowhere", "PYTHONPATH": str(TESTS / "nowhere")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
