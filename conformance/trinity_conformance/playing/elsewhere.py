"""Call functions in a new process, which knows nothing of a table but what is stored.

A server starts once, imports what they need, and forks for each call. It starts as a program of its own, and not by
``multiprocessing``, which would run the main module of whoever runs the suite again.
"""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import IO, Any, cast

import pyarrow as pa

import trinity
from trinity.errors import TrinityError


def read_elsewhere(settings: Mapping[str, Any], table: str, columns: Sequence[str]) -> pa.Table:
    """Return columns of the merged read of a table by a new process.

    Args:
        settings: the settings of the catalog ``c``; its connector is a name, or a class that can be imported.
        table: the table's full name.
        columns: its columns.

    Raises:
        TrinityError: the error of the read.
    """
    found: pa.Table = call_elsewhere(_read, dict(settings), table, list(columns))
    return found


def call_elsewhere(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a function in a new process.

    Args:
        function: a function that the process can import by its name.
        arguments: its arguments; they and the result can be pickled.

    Raises:
        TrinityError: the error of the function.
    """
    server = _server()
    requests, answers = cast("IO[bytes]", server.stdin), cast("IO[bytes]", server.stdout)
    try:
        _send(requests, (sys.path, pickle.dumps((function, arguments))))
        error, found = pickle.load(answers)
    except BaseException:  # such as Ctrl-C: otherwise the next call would get this call's answer
        server.kill()
        _server.cache_clear()
        raise
    if error is not None:
        raise TrinityError(*error)
    return found


@cache
def _server() -> subprocess.Popen[bytes]:
    """Return the process that forks. It ends when this one does, as its input ends then; Ctrl-C does not reach it."""
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command, pipe = [sys.executable, "-m", __name__], subprocess.PIPE
    server = subprocess.Popen(command, stdin=pipe, stdout=pipe, env={**os.environ, **path}, start_new_session=True)
    atexit.register(server.__exit__, None, None, None)
    return server


def _serve() -> None:
    """Answer calls until the input ends, each in a child of its own."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get into an answer
    while True:
        try:
            path, request = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        if child := os.fork():
            if os.waitpid(child, 0)[1]:
                _send(answers, (("GENERIC_INTERNAL_ERROR", "The process ended by itself."), None))
            continue
        sys.path[:] = path
        _send(answers, _answer(*pickle.loads(request)))
        os._exit(0)


def _send(answers: IO[bytes], answer: object) -> None:
    pickle.dump(answer, answers)
    answers.flush()


def _answer(function: Callable[..., Any], arguments: Sequence[Any]) -> tuple[tuple[str, str] | None, Any]:
    """Return code and message of the error, or None and the result."""
    try:
        return None, function(*arguments)
    except TrinityError as error:
        return (error.code, error.message), None
    except Exception as error:
        return ("GENERIC_INTERNAL_ERROR", f"{type(error).__name__}: {error}"), None


def _read(settings: Mapping[str, Any], table: str, columns: Sequence[str]) -> pa.Table:
    with trinity.connect(catalogs={"c": settings}, catalog="c", engine="local") as session:
        return session.table(table).to_arrow(list(columns))


if __name__ == "__main__":
    _serve()
