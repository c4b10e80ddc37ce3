"""A PostgreSQL server for tests: a temporary folder, a free port of the loopback interface.

Only the user ``guarded`` needs a password.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "wal_level": "logical",
    "full_page_writes": "off",
    "max_connections": "60",
    "timezone": "UTC",
    "deadlock_timeout": "200ms",
}


@dataclass(frozen=True)
class RunningServer:
    """A running server.

    Attributes:
        options: psycopg's connection options.
        restart: kills the server, as a crash would, and starts it again.
    """

    options: dict[str, Any]
    restart: Callable[[], None]


def _binary(name: str) -> str:
    """Return the path of ``initdb`` or ``pg_ctl``: on the PATH, or where Debian installs it."""
    if found := shutil.which(name):
        return found
    known = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda p: int(p.parts[-3]))
    assert known, f"PostgreSQL's {name} is not on this machine: install the package postgresql"
    return str(known[-1])


def _user() -> str | None:
    """Return the user that runs the server, which refuses root; None for the user of the tests."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


@contextlib.contextmanager
def running_server() -> Iterator[RunningServer]:
    """Start a server; stop it at the end of the block."""
    folder = Path(tempfile.mkdtemp(prefix="trinity-postgres-"))
    user = _user()
    if user is not None:
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)

    def run(*command: str) -> None:
        subprocess.run(
            command, check=True, user=user, cwd=folder, stdout=subprocess.DEVNULL, env={"PATH": os.environ["PATH"]}
        )

    try:
        run(
            _binary("initdb"), "-D", "data", "-U", "tests", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"
        )
        access = folder / "data/pg_hba.conf"
        access.write_text(f"host all guarded 127.0.0.1/32 scram-sha-256\n{access.read_text()}")
        port = _free_port()
        options = " ".join(f"-c {name}={value or chr(39) * 2}" for name, value in {**_SETTINGS, "port": port}.items())

        def start() -> None:
            run(_binary("pg_ctl"), "-D", "data", "-w", "-l", "log", "-o", options, "start")

        def stop() -> None:
            run(_binary("pg_ctl"), "-D", "data", "-w", "-m", "immediate", "stop")

        def restart() -> None:
            stop()
            start()

        start()
        try:
            known = {"host": "127.0.0.1", "port": port, "user": "tests", "dbname": "postgres"}
            yield RunningServer(known, restart)
        finally:
            stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])
