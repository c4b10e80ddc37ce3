"""An Azure Blob server for tests: Azurite, which npm fetches, in a temporary folder, on a free port.

A proxy is before it, as in :mod:`tests.support.object_store`.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pyarrow.fs import AzureFileSystem, FileSystem

from tests.support.fault_proxy import Proxy, running_proxy
from tests.support.object_store import free_ports, wait_for

_AZURITE: Final = "3.35.0"
ACCOUNT: Final = "devstoreaccount1"
AZURE_SECRET: Final = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The public key of Azurite's account."""


@dataclass(frozen=True)
class AzureServer:
    """A running server; see :class:`~tests.support.object_store.ObjectServer`."""

    proxy: Proxy
    options: dict[str, Any] = field(repr=False)
    secret: str = field(default=AZURE_SECRET, repr=False)

    def new_bucket(self) -> str:
        """Make a container with a name of its own, and return the name."""
        name = f"container-{uuid.uuid4().hex[:12]}"
        self.files.create_dir(name)
        return name

    def store(self, bucket: str) -> str:
        """Return how the URIs of objects in a container begin."""
        return f"abfss://{bucket}@{ACCOUNT}.dfs.core.windows.net"

    @property
    def files(self) -> FileSystem:
        """The server's files, as a program without Trinity sees them."""
        address = f"127.0.0.1:{self.proxy.port}"
        return AzureFileSystem(
            ACCOUNT,
            account_key=AZURE_SECRET,
            blob_storage_authority=address,
            dfs_storage_authority=address,
            blob_storage_scheme="http",
            dfs_storage_scheme="http",
        )


def _fetched() -> Path:
    """Return the path of the server's program. npm takes a minute to fetch it, so it is fetched once and kept."""
    folder = Path.home() / ".cache/trinity-tests" / f"azurite-{_AZURITE}"
    program = folder / "node_modules/.bin/azurite-blob"
    if program.exists():
        return program
    npm = shutil.which("npm")
    assert npm, "Azurite, the Azure server of the tests, comes from npm, which is not installed: apt-get install npm"
    whole = folder.with_name(f"{folder.name}-{uuid.uuid4().hex}")
    command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(whole), f"azurite@{_AZURITE}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    try:
        whole.rename(folder)
    except OSError:  # another run has fetched it first
        shutil.rmtree(whole)
    return program


@contextlib.contextmanager
def running_azure_server() -> Iterator[AzureServer]:
    """Fetch and start a server; stop it at the end of the block."""
    folder = Path(tempfile.mkdtemp(prefix="trinity-azure-"))
    try:
        with _started(_fetched(), folder) as port, running_proxy(port) as proxy:
            known = {"endpoint": f"http://127.0.0.1:{proxy.port}/{ACCOUNT}", "allow_http": True}
            yield AzureServer(proxy, {**known, "account_key": AZURE_SECRET})
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _started(program: Path, folder: Path) -> Iterator[int]:
    [port] = free_ports(1)
    options = ["--skipApiVersionCheck", "--silent", "--disableTelemetry"]
    with (folder / "log").open("wb") as log:
        command = [str(program), "--blobPort", str(port), "--location", str(folder / "data"), *options]
        server = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_for(server, port, folder / "log")
        yield port
    finally:
        server.kill()
        server.wait()
