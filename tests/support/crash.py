"""The library that kills a program at a storage operation, built from ``tests/crash/crash_shim.c``."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

__all__ = ["KILLED", "built_shim"]

KILLED = -9
"""The return code of a process that was killed."""


def built_shim(folder: Path) -> Path:
    """Compiles it into a folder; the test is skipped elsewhere than on Linux, and without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("the crash tests need Linux and a C compiler")
    built = folder / "crash_shim.so"
    source = Path(__file__).parent.parent / "crash" / "crash_shim.c"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", str(built), str(source), "-ldl"], check=True)
    return built
