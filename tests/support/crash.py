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
"""Format -> the operation by which its commit becomes visible, as the library prints it."""


@dataclass(frozen=True)
class Crash:
    """Runs a program, and kills it.

    Attributes:
        shim: the shared library.
        folder: scratch, outside of the warehouse.
        warehouse: what is watched.
        program: in Python.
    """

    shim: Path
    folder: Path
    warehouse: Path
    program: Path

    def run(self, words: Sequence[object], at: int = 0, match: str = "", copies: str = "") -> bool:
        """Runs the program up to operation ``at``, counted from ``match`` on; True when it was killed there."""
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
        """The file with what the program did, and was about to do, a line each."""
        return self.folder / "trace"

    def last_operation(self) -> str:
        """What the program was about to do."""
        lines = self.trace.read_text().splitlines() if self.trace.exists() else []
        return lines[-1] if lines else "nothing"

    def states(self, words: Sequence[object]) -> Iterator[tuple[str, Path]]:
        """Lets the program get through: the operations, and the warehouse as each of them found it.

        A write comes a second time, after its first half. What leaves the disk as it was, an fsync say, is passed
        over. The last state is the one after the program's end.
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
                    yield f"{line}{torn.replace('.', ', ')}", state
        yield "end", end


def _digest(folder: Path) -> str:
    """All names and all bytes under a folder."""
    found = hashlib.blake2b()
    for file in sorted(folder.rglob("*")):
        found.update(os.fsencode(file.relative_to(folder)) + b"\0")
        if file.is_file():
            found.update(hashlib.blake2b(file.read_bytes()).digest())
    return found.hexdigest()


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
