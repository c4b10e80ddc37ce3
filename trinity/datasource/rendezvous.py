"""The meeting of Spark's planning processes with the driver's process, over a socket that only its user can open.

The socket is in a folder that nobody else may enter (mode 0700). A link in a folder of Spark's own, which Spark names
to every process that it starts, says where. What goes over it is JSON: a line with a question, and one with its answer.
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
from trinity.engine.spark.running import running_context
from trinity.errors import TrinityError
from trinity.secrets import logger

if TYPE_CHECKING:
    from trinity.datasource.answers import Tables

__all__ = ["ask", "offer", "withdraw"]

_LINK: Final = "trinity-driver-"
"""Beginning of the link's name; the id of the driver's process follows."""
_FOLDERS: Final = "SPARK_LOCAL_DIRS"
"""The variable in which Spark names its folders to the processes that it starts, with commas between."""
_log: Final = logger(__name__)


class _Handler(socketserver.StreamRequestHandler):
    """Answers the question of one connection."""

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
    """A thread for each connection; none of them keeps the process from its end."""

    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        _log.debug("A connection of Spark's has failed.", exc_info=True)


_lock: Final = threading.Lock()
_sessions: Final[list[weakref.ref[Tables]]] = []
"""The open sessions of this process, the newest last."""
_place: Path | None = None
"""The socket of this process, once there is one."""
_linked: Final[set[str]] = set()
"""The Spark applications that have been told of it."""


def offer(session: Tables) -> None:
    """Has the data source find the tables of a session, until that is withdrawn or forgotten.

    The Spark of this process is told of it, if there is one; a session whose Spark cannot be told works without.
    """
    context = running_context()
    with _lock:
        _forget(session)
        _sessions.append(weakref.ref(session))
        if context is None or str(context.applicationId) in _linked:
            return
        _linked.add(str(context.applicationId))
        try:
            _link(context._jvm, _socket())
        except Exception as error:
            _log.warning("spark.read.format('trinity') will not find this process: %s", error)


def withdraw(session: Tables) -> None:
    """Has the data source find the tables of a session no longer."""
    with _lock:
        _forget(session)


def _forget(session: Tables) -> None:
    _sessions[:] = [known for known in _sessions if known() not in (None, session)]


def _open_sessions() -> list[Tables]:
    with _lock:
        found = [known() for known in reversed(_sessions)]
    return [session for session in found if session is not None]


def _socket() -> Path:
    global _place
    if _place is None:
        folder = tempfile.mkdtemp(prefix="trinity-")  # for its owner alone, and short enough for a socket's name
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        server = _Server(f"{folder}/socket", _Handler)
        threading.Thread(target=server.serve_forever, name="trinity data source", daemon=True).start()
        _place = Path(folder, "socket")
    return _place


def _link(jvm: Any, place: Path) -> None:
    folder = str(jvm.org.apache.spark.SparkEnv.get().blockManager().diskBlockManager().localDirsString()[0])
    link = Path(folder, f"{_LINK}{os.getpid()}")
    link.unlink(missing_ok=True)  # of a process that is gone, and had this one's id
    link.symlink_to(place)


def ask(question: Mapping[str, Any]) -> Any:
    """The answer of the driver's process, to one that Spark has started for it.

    Where several processes share one Spark, it is that of the first that knows the table.

    Raises:
        TrinityError: CONFIGURATION_INVALID where no process with a session is found; what answering raises there.
    """
    unknown: TrinityError | None = None
    for place in _places():
        try:
            found = _asked(place, json.dumps(question).encode() + b"\n")
        except (ConnectionError, FileNotFoundError):
            continue  # of a process that is gone
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


def _asked(place: str, question: bytes) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(place)
        connection.sendall(question)
        with connection.makefile("rb") as answers:
            line = answers.readline()
    if not line.endswith(b"\n"):
        raise ConnectionError("the driver's process has ended")
    found: dict[str, Any] = json.loads(line)
    return found


def _places() -> Iterator[str]:
    """The sockets of this user's processes, by their links."""
    for folder in filter(None, os.environ.get(_FOLDERS, "").split(",")):
        for link in sorted(Path(folder).glob(f"{_LINK}*")):
            if link.lstat().st_uid == os.getuid():
                yield os.readlink(link)
