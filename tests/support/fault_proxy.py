"""A proxy before an HTTP server: it forwards requests, records them, and makes answers fail."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Request:
    """A request: its method, such as ``PUT``, and its path with its query."""

    method: str
    path: str
    headers: dict[str, str] = field(repr=False, default_factory=dict)

    @property
    def conditional(self) -> bool:
        """True for a conditional put, which succeeds only where no object of its name exists."""
        known = self.headers.get("if-none-match"), self.headers.get("x-goog-if-generation-match")
        return self.method == "PUT" and ("*" in known or "0" in known)

    @property
    def object(self) -> str:
        """The path of the object, without the query."""
        return self.path.partition("?")[0]


@dataclass(frozen=True)
class Answer:
    """An answer: its status, headers and body."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


_PATIENCE_S = 600
"""Seconds that a server has for an answer: a busy machine needs a minute, and clients have limits of their own."""
LOST = Answer(0)
"""No answer: the connection is closed."""

Fault = Callable[[Request, Callable[[], Answer]], Answer | None]
"""Returns an answer instead of the server's, which the callable fetches; None to let the request pass."""


@dataclass
class Proxy:
    """A proxy before a server.

    Attributes:
        port: the port that it listens on.
        requests: the requests that it received, in order.
    """

    port: int
    requests: list[Request] = field(default_factory=list)
    _fault: Fault | None = None

    @contextlib.contextmanager
    def counting(self) -> Iterator[list[Request]]:
        """Yield a list of the requests that are made during the block, filled at its end."""
        before = len(self.requests)
        found: list[Request] = []
        yield found
        found += self.requests[before:]

    @contextlib.contextmanager
    def faulty(self, fault: Fault) -> Iterator[None]:
        """Let a fault decide about every request that is made during the block."""
        self._fault = fault
        try:
            yield
        finally:
            self._fault = None

    @contextlib.contextmanager
    def losing(self, meant: Callable[[Request], bool]) -> Iterator[list[str]]:
        """Lose the answer to the first matching request, which takes effect. Yield a list that then holds its path."""
        lost: list[str] = []

        def loses(request: Request, ask: Callable[[], Answer]) -> Answer | None:
            if not meant(request) or lost:
                return None
            lost.append(request.path)
            ask()
            return LOST

        with self.faulty(loses):
            yield lost

    def answer(self, request: Request, ask: Callable[[], Answer]) -> Answer:
        """Return the answer to a request: the fault's, if there is one, else the server's."""
        self.requests.append(request)
        found = self._fault(request, ask) if self._fault else None
        return ask() if found is None else found


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, upstream: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = upstream
        self.proxy = Proxy(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors of clients that have closed their connection."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def handle_one_request(self) -> None:
        with contextlib.suppress(ConnectionError, TimeoutError):
            super().handle_one_request()
            return
        self.close_connection = True

    def forward(self) -> None:
        body = self.body()
        request = Request(self.command, self.path, {k.lower(): v for k, v in self.headers.items()})
        found = self.server.proxy.answer(request, lambda: self.respond(body))
        if found is LOST:
            self.close_connection = True
            return
        self.send_response_only(found.status)
        for name, value in found.headers:
            self.send_header(name, value)
        if not any(name.lower() == "content-length" for name, _ in found.headers):
            self.send_header("Content-Length", str(len(found.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(found.body)

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        found = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return found

    def respond(self, body: bytes) -> Answer:
        """Return the server's answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.upstream, timeout=_PATIENCE_S)
        try:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in ("connection", "expect", "transfer-encoding", "content-length"):
                    connection.putheader(name, value)
            if self.command in ("PUT", "POST"):
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body or None)
            answer = connection.getresponse()
            skipped = ("transfer-encoding", "connection")
            headers = tuple((k, v) for k, v in answer.getheaders() if k.lower() not in skipped)
            return Answer(answer.status, answer.read(), headers)
        finally:
            connection.close()

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = forward  # noqa: N815 - as http.server calls them

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as in the base class
        """Log nothing."""


@contextlib.contextmanager
def running_proxy(upstream: int) -> Iterator[Proxy]:
    """Start a proxy for a local port; stop it at the end of the block."""
    with _Server(upstream) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield server.proxy
        finally:
            server.shutdown()
            thread.join()
