"""A Glue catalog, served by moto."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, Final

import pytest
import requests
from moto.core.exceptions import JsonRESTError
from moto.glue.responses import GlueResponse
from moto.server import ThreadedMotoServer

_update_table: Final = GlueResponse.update_table
_updating: Final = threading.Lock()


def _updates_what_it_knows(self: Any) -> Any:
    """Answer UpdateTable as AWS does: refuse it when the table has another version than the given ``VersionId``.

    See https://docs.aws.amazon.com/glue/latest/webapi/API_UpdateTable.html; moto ignores the field.
    """
    request = self.parameters
    with _updating:
        now = self.glue_backend.get_table(request["DatabaseName"], request["TableInput"]["Name"]).as_dict()["VersionId"]
        if request.get("VersionId", now) != now:
            raise JsonRESTError("ConcurrentModificationException", f"Version {now} is the present one.")
        return _update_table(self)


@contextlib.contextmanager
def running_glue() -> Iterator[str]:
    """Start a server on a free port of this process; stop it at the end of the block.

    Yields:
        the server's address.
    """
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(GlueResponse, "update_table", _updates_what_it_knows)
            host, port = server.get_host_and_port()
            address = f"http://{host}:{port}"
            requests.post(f"{address}/moto-api/reset", timeout=60).raise_for_status()
            yield address
    finally:
        server.stop()
