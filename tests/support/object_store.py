"""An S3 server for tests: SeaweedFS in a temporary folder, on free ports of the loopback interface.

A proxy is before it, which records requests, and can lose, delay or invent answers.
"""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyarrow.fs import FileSystem, S3FileSystem

from tests.support.fault_proxy import Proxy, Request, running_proxy

_KEY = "AKIATESTS0000001"
SECRET = "oneverysecretsecret01"
READER = {"access_key_id": "AKIAREADER000001", "secret_access_key": "onlyreadersecret0001"}
"""A key with read permission only."""
ROLE = "arn:aws:iam::role/tables"
"""A role that the holder of the first key may assume: it may do everything that a session's policy allows."""
_SERVERS = ("master", "volume", "filer", "s3")


@dataclass(frozen=True)
class ObjectServer:
    """A running server.

    Attributes:
        proxy: the proxy before it.
        options: the ``storage_options`` of clients, which connect through the proxy.
        secret: the secret key among them, which must not appear in any output.
    """

    proxy: Proxy
    options: dict[str, Any] = field(repr=False)
    secret: str = field(default=SECRET, repr=False)

    def new_bucket(self) -> str:
        """Make a bucket with a name of its own, and return the name."""
        name = f"bucket-{uuid.uuid4().hex[:12]}"
        self.files.create_dir(name)
        return name

    def store(self, bucket: str) -> str:
        """Return how the URIs of objects in a bucket begin."""
        return f"s3://{bucket}"

    @property
    def files(self) -> FileSystem:
        """The server's files, as a program without Trinity sees them."""
        return S3FileSystem(
            access_key=_KEY,
            secret_key=SECRET,
            endpoint_override=f"127.0.0.1:{self.proxy.port}",
            scheme="http",
            region="us-east-1",
            allow_bucket_creation=True,
        )


@contextlib.contextmanager
def running_object_server() -> Iterator[ObjectServer]:
    """Start a server; stop it at the end of the block."""
    folder = Path(tempfile.mkdtemp(prefix="trinity-objects-"))
    config = folder / "s3.json"
    config.write_text(
        json.dumps(
            {
                "identities": [
                    _identity("tests", _KEY, SECRET, ["Admin", "Read", "Write", "List", "Tagging"]),
                    _identity("reader", READER["access_key_id"], READER["secret_access_key"], ["Read", "List"]),
                ]
            }
        )
    )
    (folder / "iam.json").write_text(json.dumps(_sessions()))
    ports = free_ports(2 * len(_SERVERS))
    places = [
        f"-{server}.port{kind}={port}"
        for (server, kind), port in zip(((s, k) for s in _SERVERS for k in ("", ".grpc")), ports, strict=True)
    ]
    s3 = ports[2 * _SERVERS.index("s3")]
    options = (
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-volume.max=10000",  # each bucket takes some; they are empty files, and free space does not limit them
        "-master.volumeSizeLimitMB=64",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
    )
    weed = shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")
    assert weed, "SeaweedFS is not installed: make setup"
    with (folder / "log").open("wb") as log:
        command = [weed, "server", f"-dir={folder}", *options, *places, "-filer", "-s3", f"-s3.config={config}"]
        command += [f"-s3.iam.config={folder / 'iam.json'}", "-s3.iam.readOnly=false"]
        server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        wait_for(server, s3, folder / "log")
        with running_proxy(s3) as proxy:
            known = {"endpoint": f"http://127.0.0.1:{proxy.port}", "region": "us-east-1", "allow_http": True}
            yield ObjectServer(proxy, {**known, "access_key_id": _KEY, "secret_access_key": SECRET})
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _sessions() -> dict[str, Any]:
    """Return the server's settings for temporary keys."""
    every = {"Effect": "Allow", "Action": ["s3:*"], "Resource": ["arn:aws:s3:::*", "arn:aws:s3:::*/*"]}
    trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": ["sts:AssumeRole"]}
    return {
        "sts": {
            "tokenDuration": "1h",
            "maxSessionLength": "12h",
            "issuer": "tests",
            "signingKey": base64.b64encode(b"of the tests, thirty-two letters").decode(),
        },
        "policy": {"defaultEffect": "Deny", "storeType": "memory"},
        "roles": [
            {
                "roleName": ROLE.rpartition("/")[2],
                "roleArn": ROLE,
                "trustPolicy": {"Version": "2012-10-17", "Statement": [trust]},
                "attachedPolicies": ["all"],
            }
        ],
        "policies": [{"name": "all", "document": {"Version": "2012-10-17", "Statement": [every]}}],
    }


def _identity(name: str, key: str, secret: str, actions: list[str]) -> dict[str, Any]:
    return {"name": name, "credentials": [{"accessKey": key, "secretKey": secret}], "actions": actions}


def key_of(request: Request) -> str:
    """Return the access key that signed a request; empty without a signature."""
    return request.headers.get("authorization", "").partition("Credential=")[2].partition("/")[0]


def wait_for(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Wait until a server answers at a port."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        assert server.poll() is None, log.read_text()[-2000:]
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError(log.read_text()[-2000:])


def free_ports(count: int) -> list[int]:
    """Return free ports of the loopback interface."""
    with contextlib.ExitStack() as open_ones:
        found = [open_ones.enter_context(socket.socket()) for _ in range(count)]
        for one in found:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in found]
