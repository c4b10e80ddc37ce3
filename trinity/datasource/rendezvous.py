"""The connection of Spark's planning processes with the driver's process: a socket that only its user can open.

The socket is in a folder that only its user can enter (mode 0700). Spark gives its local folders to every process that
it starts; a link in one of them points to the socket. Messages are JSON: a line with a question, one with its answer.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import socket
import socketserver
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trinity.calls import as_trinity
from trinity.errors import TrinityError
from trinity.loggers import logger
from trinity.spark.running import running_context

if TYPE_CHECKING:
    from trinity.datasource.answers import Tables

_LINK: Final = "trinity-driver-"
"""Prefix of the link's name, before the id of the driver's process."""
_FOLDERS: Final = "SPARK_LOCAL_DIRS"
"""The environment variable with Spark's local folders, separated by commas, in the processes that it starts."""
_log: Final = logger("trinity.datasource")


class _Handler(socketserver.StreamRequestHandler):
    """The handler of one connection, which answers its question."""

    def handle(self) -> None:
        try:
            from trinity.datasource.answers import answer

            found = {"answer": answer(_open_sessions, json.loads(self.rfile.readline()))}
        except Exception as error:
            found = {"error": json.loads(as_trinity(error).to_json())}
        try:
            self.wfile.write(json.dumps(found).encode() + b"\n")
        except OSError as error:  # the query was stopped meanwhile
            _log.debug("Nobody waits for an answer any more: %s", error)


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """A server with a daemon thread for each connection: none keeps the process from ending."""

    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        _log.debug("A connection of Spark's has failed.", exc_info=True)


_lock: Final = threading.Lock()
_sessions: Final[list[weakref.ref[Tables]]] = []
"""The open sessions of this process, the newest last."""
_socket_path: Path | None = None
"""The socket of this process; None before the first session."""
_linked: Final[set[str]] = set()
"""Ids of the Spark applications that have a link to the socket."""


def register_session(session: Tables) -> None:
    """Let the data source find the tables of a session, until it is unregistered or garbage-collected.

    The Spark of this process, if there is one, gets a link to the socket. Where that fails the session works without
    the data source.
    """
    context = running_context()
    with _lock:
        _forget(session)
        _sessions.append(weakref.ref(session))
        if context is None or str(context.applicationId) in _linked:
            return
        try:
            _link(context._jvm, _socket())
            _linked.add(str(context.applicationId))
        except Exception as error:
            _log.warning("spark.read.format('trinity') will not find this process: %s", error)


def unregister_session(session: Tables) -> None:
    """Hide the tables of a session from the data source."""
    with _lock:
        _forget(session)


def _forget(session: Tables) -> None:
    _sessions[:] = [known for known in _sessions if known() not in (None, session)]


def _open_sessions() -> list[Tables]:
    with _lock:
        found = [known() for known in reversed(_sessions)]
    return [session for session in found if session is not None]


def _socket() -> Path:
    global _socket_path
    if _socket_path is None:
        folder = tempfile.mkdtemp(prefix="trinity-")  # only its owner can enter it; short enough for a socket's name
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        server = _Server(f"{folder}/socket", _Handler)
        threading.Thread(target=server.serve_forever, name="trinity data source", daemon=True).start()
        _socket_path = Path(folder, "socket")
    return _socket_path


def _link(jvm: Any, socket_path: Path) -> None:
    folder = str(jvm.org.apache.spark.SparkEnv.get().blockManager().diskBlockManager().localDirsString()[0])
    link = Path(folder, f"{_LINK}{os.getpid()}")
    link.unlink(missing_ok=True)  # left by an ended process with the same id
    link.symlink_to(socket_path)


def ask(question: Mapping[str, Any]) -> Any:
    """Ask the driver's process, from a process that its Spark has started, and return the answer.

    If several processes share one Spark, the first one that has the table answers.

    Raises:
        TrinityError: CONFIGURATION_INVALID when no process with a session is found; and as
            :func:`trinity.datasource.answers.answer`.
    """
    unknown: TrinityError | None = None
    for socket_path in _socket_paths():
        try:
            found = _ask(socket_path, json.dumps(question).encode() + b"\n")
        except (ConnectionError, FileNotFoundError):
            continue  # the process has ended
        if "error" not in found:
            return found["answer"]
        error = TrinityError(found["error"]["code"], found["error"]["message"])
        if error.code not in ("CATALOG_NOT_FOUND", "SCHEMA_NOT_FOUND", "TABLE_NOT_FOUND"):
            raise error
        unknown = unknown or error
    raise unknown or TrinityError(
        "CONFIGURATION_INVALID",
        "The driver of this Spark has no open session of Trinity's, which alone knows where tables are. Keep one open "
        "there, session = trinity.connect(..., spark=spark), and use session.spark before anything is read.",
    )


def _ask(socket_path: str, question: bytes) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(socket_path)
        connection.sendall(question)
        with connection.makefile("rb") as answers:
            line = answers.readline()
    if not line.endswith(b"\n"):
        raise ConnectionError("the driver's process has ended")
    found: dict[str, Any] = json.loads(line)
    return found


def _socket_paths() -> Iterator[str]:
    """Yield the sockets of this user's processes, found by their links."""
    for folder in filter(None, os.environ.get(_FOLDERS, "").split(",")):
        for link in sorted(Path(folder).glob(f"{_LINK}*")):
            if link.lstat().st_uid == os.getuid():
                yield os.readlink(link)
