"""Filters for the lines that Spark's JVM writes on standard error when it starts."""

from __future__ import annotations

import atexit
import os
import re
import select
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

LOGGING: Final = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"
"""Java option for a log with errors only, from the first line on."""
_START: Final = re.compile(rb"WARNING: Using incubator modules: jdk\.incubator\.vector\s*")
"""A line of every start, which no option of Java suppresses."""
_BEGINS: Final = b"WARNING: "
_PIECE: Final = 65536
_PATIENCE_S: Final = 5
"""Time that the last lines may take at the exit."""
_MOST: Final = 500
"""How many characters of a failed process's output an error shows."""


@contextmanager
def without_start_lines() -> Iterator[None]:
    """Suppress the lines of every start. All other lines of a JVM that the block starts go to standard error."""
    try:
        screen = os.dup(2)
    except OSError:  # there is no standard error
        yield
        return
    reading, writing = os.pipe()
    ending, end = os.pipe()
    thread = threading.Thread(target=_pass_on, args=(reading, screen, ending), name="trinity-jvm-stderr", daemon=True)
    thread.start()
    atexit.register(_finish, thread, ending, end)
    os.dup2(writing, 2)
    os.close(writing)
    try:
        yield
    finally:
        os.dup2(screen, 2)


@contextmanager
def captured_output() -> Iterator[Callable[[], str]]:
    """Suppress what a process that the block starts writes on standard error; yield a function that returns its end.

    It is for a process that ends by itself: its output is lost, except for an error's message.
    """
    try:
        screen = os.dup(2)
    except OSError:  # there is no standard error
        yield str
        return
    with tempfile.TemporaryFile() as lines:
        os.dup2(lines.fileno(), 2)
        try:
            yield lambda: _last_of(lines)
        finally:
            os.dup2(screen, 2)
            os.close(screen)


def _last_of(lines: IO[bytes]) -> str:
    lines.seek(0)
    output = lines.read().decode(errors="replace").splitlines()
    return " ".join(" ".join(line for line in output if not line.startswith("\tat ")).split())[-_MOST:]


def _finish(thread: threading.Thread, ending: int, end: int) -> None:
    """Let a thread pass on what the JVM has written: the exit of the process stops daemon threads where they are."""
    os.write(end, b".")
    thread.join(_PATIENCE_S)
    if not thread.is_alive():
        os.close(ending)
        os.close(end)


def _pass_on(reading: int, screen: int, ending: int) -> None:
    """Copy from one file to another as data comes, without the lines of every start.

    It ends with the last writer, or, once ``ending`` has data, when there is nothing more to read. Only a line that may
    be a line of the start is held back until it is complete.
    """
    readable = select.poll()  # select() takes no file whose number is above 1023
    for file in (reading, ending):
        readable.register(file, select.POLLIN)
    begun = b""
    while reading in dict(readable.poll()) and (piece := os.read(reading, _PIECE)):
        *lines, begun = (begun + piece).split(b"\n")
        shown = b"".join(line + b"\n" for line in lines if not _START.fullmatch(line))
        if not begun.startswith(_BEGINS) and not _BEGINS.startswith(begun):
            shown, begun = shown + begun, b""
        os.write(screen, shown)
    os.write(screen, begun)
    os.close(reading)
    os.close(screen)
