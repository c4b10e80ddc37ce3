"""A process in which there is no Spark: pyspark cannot be imported, and no Java is found."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Final

__all__ = ["run_without_spark"]

_PREAMBLE: Final = """\
import sys
class _Nowhere:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j"):
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
sys.meta_path.insert(0, _Nowhere())
"""


def run_without_spark(code: str, *arguments: str) -> str:
    """Run code in such a process, and return what it prints.

    Args:
        code: the code.
        arguments: its ``sys.argv[1:]``.
    """
    environment = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "SPARK_HOME")}
    done = subprocess.run(
        [sys.executable, "-c", _PREAMBLE + code, *arguments],
        env={**environment, "PATH": "/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
