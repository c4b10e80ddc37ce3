"""A Cloud Storage server for tests, in this process: Google's documented XML API, and reads of the JSON API.

No available emulator implements ``x-goog-if-generation-match`` of the XML API, by which Trinity commits:
fake-gcs-server refuses such a put, gcp-storage-emulator overwrites the object. So this server proves what Trinity
sends, and how it handles the documented answers (cloud.google.com/storage/docs/xml-api/reference-headers), not that
Google gives them.

A proxy is before it, as in :mod:`tests.support.object_store`.
"""

from __future__ import annotations

import contextlib
import json
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from pyarrow.fs import FileSystem, GcsFileSystem

from tests.support.fault_proxy import Proxy, running_proxy
from tests.support.google_api import GoogleHandler, Stored

TOKEN: Final = "ya29.of-the-tests-of-google-0001"
_EMAIL: Final = "tests@nowhere.iam.gserviceaccount.com"


@dataclass(frozen=True)
class GoogleServer:
    """A running server; see :class:`~tests.support.object_store.ObjectServer`.

    Attributes:
        proxy: the proxy before it.
        options: the ``storage_options`` of clients: the file with a service account's key.
        key: the text of that file.
        secret: one line of the key.
        stored: all that the server stores.
    """

    proxy: Proxy
    options: dict[str, Any] = field(repr=False)
    key: str = field(repr=False)
    secret: str = field(repr=False)
    stored: Stored = field(repr=False)

    def new_bucket(self) -> str:
        """Make a bucket with a name of its own, and return the name."""
        name = f"bucket-{uuid.uuid4().hex[:12]}"
        self.stored.buckets[name] = {}
        return name

    def store(self, bucket: str) -> str:
        """Return how the URIs of objects in a bucket begin."""
        return f"gs://{bucket}"

    @property
    def files(self) -> FileSystem:
        """The server's files, as a program without Trinity sees them."""
        return GcsFileSystem(
            access_token=TOKEN,
            credential_token_expiration=datetime.now(UTC) + timedelta(hours=1),
            scheme="http",
            endpoint_override=f"127.0.0.1:{self.proxy.port}",
            retry_time_limit=timedelta(seconds=5),
        )


@contextlib.contextmanager
def running_google_server(folder: Path) -> Iterator[GoogleServer]:
    """Start a server; stop it at the end of the block.

    Args:
        folder: the folder for the file with a service account's key.
    """
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    stored = Stored(TOKEN, _EMAIL, key.public_key())
    with ThreadingHTTPServer(("127.0.0.1", 0), GoogleHandler) as server:
        server.daemon_threads = True
        server.stored = stored  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            with running_proxy(server.server_address[1]) as proxy:
                address = f"http://127.0.0.1:{proxy.port}"
                file = folder / "service-account.json"
                text = _account(key, address)
                file.write_text(json.dumps(text))
                line = text["private_key"].splitlines()[5]
                known = {"endpoint": address, "allow_http": True, "service_account": str(file)}
                yield GoogleServer(proxy, known, json.dumps(text), line, stored)
        finally:
            server.shutdown()
            thread.join()


def _account(key: rsa.RSAPrivateKey, address: str) -> dict[str, str]:
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return {
        "type": "service_account",
        "project_id": "tests",
        "private_key_id": "0001",
        "private_key": key.private_bytes(encoding, form, serialization.NoEncryption()).decode(),
        "client_email": _EMAIL,
        "client_id": "1",
        "token_uri": f"{address}/token",
    }
