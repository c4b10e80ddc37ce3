"""Iceberg's catalog in PostgreSQL: servers that restart, hang, or refuse."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.adapter import KEYED, append, code_of, stored
from tests.support.iceberg_lake import open_catalog
from tests.support.postgres import RunningServer
from trinity_iceberg import IcebergConnector
from trinity_iceberg.sql_limits import ANSWER_S, CONNECT_S


class Relay:
    """A connection to a server, which can stop to pass data on while it stays open."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = self._door.getsockname()[1]
        self.open = threading.Event()
        self.open.set()
        self._done = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                taken, _ = self._door.accept()
                threading.Thread(target=self._pass, args=(taken,), daemon=True).start()

    def _pass(self, taken: socket.socket) -> None:
        with contextlib.suppress(OSError), taken, socket.create_connection(self._target) as server:
            while not self._done:
                for side in select.select([taken, server], [], [], 0.05)[0]:
                    data = side.recv(65536)
                    self.open.wait()
                    if not data:
                        return
                    (server if side is taken else taken).sendall(data)

    def close(self) -> None:
        self._done = True
        self.open.set()
        self._door.close()


@pytest.fixture
def relay(database: dict[str, Any]) -> Iterator[Relay]:
    found = Relay(database["host"], int(database["port"]))
    yield found
    found.close()


@contextlib.contextmanager
def lake_at(tmp_path: Path, database: dict[str, Any], **place: Any) -> Iterator[IcebergConnector]:
    """Open a catalog; close its connections at the end of the block."""
    uri = "postgresql+psycopg://{user}@{host}:{port}/{dbname}".format(**{**database, **place})
    with contextlib.closing(open_catalog(tmp_path / "w", uri=uri)) as lake:
        yield lake


def test_the_first_statement_after_a_restart_works(tmp_path: Path, postgres_server: RunningServer) -> None:
    with psycopg.connect(**postgres_server.options, autocommit=True) as plain:
        plain.execute("CREATE DATABASE that_restarts")
    with lake_at(tmp_path, postgres_server.options, dbname="that_restarts") as lake:
        table = lake.metadata.create_table(KEYED)
        append(lake, table, (1, "a"))
        postgres_server.restart()
        append(lake, table, (2, "b"))
        postgres_server.restart()
        assert [row["id"] for row in stored(lake, table)] == [1, 2]


def test_a_server_that_hangs_is_told(tmp_path: Path, database: dict[str, Any], relay: Relay) -> None:
    with lake_at(tmp_path, database, port=relay.port) as lake:
        table = lake.metadata.create_table(KEYED)
        append(lake, table, (1, "a"))
        with ANSWER_S.set_to(0.5), CONNECT_S.set_to(1):
            relay.open.clear()
            for call in (lambda: lake.metadata.get_splits(table), lambda: append(lake, table, (2, "b"))):
                code, message = code_of(call)
                assert code == "FILESYSTEM_ERROR"
                assert "lake" in message
            relay.open.set()
        append(lake, table, (3, "c"))
        assert [row["id"] for row in stored(lake, table)] == [1, 3]


def test_a_right_that_is_missing_is_told_as_such(tmp_path: Path, database: dict[str, Any]) -> None:
    with lake_at(tmp_path, database) as lake:
        table = lake.metadata.create_table(KEYED)
        append(lake, table, (1, "a"))
        with psycopg.connect(**database, autocommit=True) as owner:
            owner.execute("CREATE ROLE reader LOGIN")
            owner.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
        with lake_at(tmp_path, database, user="reader") as reader:
            assert [row["id"] for row in stored(reader, table)] == [1]
            code, message = code_of(partial(append, reader, table, (2, "b")))
        assert (code, "permission denied" in message) == ("PERMISSION_DENIED", True)
        with psycopg.connect(**database, autocommit=True) as owner:
            owner.execute("DROP OWNED BY reader")
            owner.execute("DROP ROLE reader")
