"""A Maven repository for tests, on this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar


@dataclass
class Repository:
    """A running Maven repository.

    Attributes:
        address: its address.
        files: path -> content, which tests fill.
        asked: the paths that were requested, each with the header Authorization.
    """

    address: str
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)


@contextmanager
def running_repository() -> Iterator[Repository]:
    """Run a repository during the block."""

    class Answers(BaseHTTPRequestHandler):
        repository: ClassVar[Repository]

        def do_GET(self) -> None:
            self.wfile.write(self._head())

        def do_HEAD(self) -> None:
            self._head()

        def _head(self) -> bytes:
            path = self.path.removeprefix("/maven/")
            self.repository.asked.append((path, self.headers["Authorization"]))
            content = self.repository.files.get(path)
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            return content or b""

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        Answers.repository = Repository(f"http://127.0.0.1:{server.server_port}/maven")
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield Answers.repository
        server.shutdown()


def listing(coordinates: str, content: bytes) -> str:
    """Return the line of a JAR in the list of JARs."""
    return f"{coordinates} {len(content)} {sha256(content).hexdigest()}\n"
