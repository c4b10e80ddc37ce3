"""The library that kills a program at a storage operation, built from ``tests/crash/crash_shim.c``."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.support.paths import TESTS

KILLED = -9
"""The return code of a process that was killed."""

COMMIT: Final = {
    "parquet": "link */_trinity/log/*.json",
    "delta": "link */_delta_log/*.json",
    "iceberg": "unlink */catalog.db-journal",
}
"""Format -> the operation that makes its commit visible, as the library prints it."""


@dataclass(frozen=True)
class Crash:
    """A program that is run, and killed at one of its storage operations.

    Attributes:
        shim: the shared library that counts operations and kills.
        folder: a folder for its own files, outside of the warehouse.
        warehouse: the folder whose operations are counted.
        program: the Python program.
    """

    shim: Path
    folder: Path
    warehouse: Path
    program: Path

    def run(self, words: Sequence[object], at: int = 0, match: str = "", copies: str = "") -> bool:
        """Run the program up to operation ``at``, counted from a match of ``match``. Return whether it was killed."""
        control = self.folder / "control"
        control.write_bytes(bytes(64))
        self.trace.unlink(missing_ok=True)
        environment = {
            "LD_PRELOAD": str(self.shim),
            "CRASH_ROOT": str(self.warehouse),
            "CRASH_CONTROL": str(control),
            "CRASH_TRACE": str(self.trace),
            "CRASH_AT": str(at),
            "CRASH_MATCH": match,
            "CRASH_COPIES": copies,
        }
        return run_until_killed(self.program, words, environment, self.folder)

    @property
    def trace(self) -> Path:
        """The file with the program's operations, one a line, the last of which may not have been done."""
        return self.folder / "trace"

    def last_operation(self) -> str:
        """Return the operation that the program was about to do."""
        lines = self.trace.read_text().splitlines() if self.trace.exists() else []
        return lines[-1] if lines else "nothing"

    def states(self, words: Sequence[object]) -> Iterator[str]:
        """Run the program to its end. Yield each operation, with the warehouse put back as it was before it.

        A write is yielded a second time, with its first half written. Operations that change nothing on disk, such as
        fsync, are skipped. The last state is the one after the program's end.
        """
        copies = self.folder / "copies"
        copies.mkdir()
        seen = _digest(self.warehouse)
        assert not self.run(words, copies=str(copies))
        end = self.warehouse.rename(copies / "end")
        for line in self.trace.read_text().splitlines():
            for torn in ("", ".torn"):
                state = copies / f"{line.split()[0]}{torn}"
                if not state.exists():
                    continue
                before, seen = seen, _digest(state)
                if seen != before:
                    self._put_back(state)
                    yield f"{line}{torn.replace('.', ', ')}"
        self._put_back(end)
        yield "end"

    def _put_back(self, state: Path) -> None:
        shutil.rmtree(self.warehouse, ignore_errors=True)
        state.rename(self.warehouse)


def _digest(folder: Path) -> str:
    """Return a digest of all names and bytes below a folder."""
    found = hashlib.blake2b()
    for file in sorted(folder.rglob("*")):
        found.update(os.fsencode(file.relative_to(folder)) + b"\0")
        if file.is_file():
            found.update(hashlib.blake2b(file.read_bytes()).digest())
    return found.hexdigest()


def built_shim(folder: Path) -> Path:
    """Compile the shared library into a folder. Skip the test without a C compiler, and elsewhere than on Linux."""
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
    """Run a program until it ends, or the shared library kills it. Return whether it was killed.

    Args:
        program: the Python program.
        words: its arguments.
        environment: environment variables, besides those of this process.
        folder: the working directory; by default that of this process.
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
    """Kill a process that leads a session, and all processes of the session, those of workers' own groups too."""
    while found := [pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if _is_in(pid, leader)]:
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _is_in(pid: int, session: int) -> bool:
    """Return whether a process belongs to a session and has not ended."""
    with contextlib.suppress(OSError):
        state, _, _, number = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:4]
        return int(number) == session and state not in "ZX"
    return False
