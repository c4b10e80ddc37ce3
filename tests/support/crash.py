"""The library that kills a program at a storage operation, built from ``tests/crash/crash_shim.c``."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.support.paths import TESTS

__all__ = ["KILLED", "built_shim", "kill_session", "run_until_killed"]

KILLED = -9
"""The return code of a process that was killed."""


def built_shim(folder: Path) -> Path:
    """Compiles it into a folder; the test is skipped elsewhere than on Linux, and without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("the crash tests need Linux and a C compiler")
    built = folder / "crash_shim.so"
    source = TESTS / "crash" / "crash_shim.c"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", str(built), str(source), "-ldl"], check=True)
    return built


def run_until_killed(
    program: Path, words: Iterable[object], environment: Mapping[str, str], folder: Path | None = None
) -> bool:
    """Runs a program to its end, which may be that the library kills it; True when it did.

    Args:
        program: in Python.
        words: its arguments.
        environment: beside that of this process.
        folder: where it runs; here when left out.
    """
    done = subprocess.run(
        [sys.executable, str(program), *map(str, words)],
        env={**os.environ, **environment},
        cwd=folder,
        start_new_session=True,  # the library kills the session
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode in (0, KILLED), done.stderr[-6000:]
    return done.returncode == KILLED


def kill_session(leader: int) -> None:
    """Kills a process that leads a session, and all that are in it, workers with groups of their own, too."""
    while found := [pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if _is_in(pid, leader)]:
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _is_in(pid: int, session: int) -> bool:
    """True for a process of a session that has not ended yet."""
    with contextlib.suppress(OSError):
        state, _, _, number = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:4]
        return int(number) == session and state not in "ZX"
    return False
