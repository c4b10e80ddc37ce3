"""The servers that the examples of a page need beside this process: Spark, a PostgreSQL, buckets; or without Spark."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import psycopg

from tests.support.google_server import GoogleServer, running_google_server
from tests.support.object_store import ObjectServer, running_object_server
from tests.support.postgres import running_server
from tests.support.spark import drop_temp_views, started

_OF_SPARK: Final = ("pyspark", "py4j")


@contextlib.contextmanager
def without_spark() -> Iterator[None]:
    """Let the import of pyspark fail, as where it is not installed."""
    loaded = {name: module for name, module in sys.modules.items() if name.split(".")[0] in _OF_SPARK}
    for name in loaded:
        del sys.modules[name]
    sys.modules.update(dict.fromkeys(_OF_SPARK))  # type: ignore[arg-type]  # None: an import fails
    yield
    for name in _OF_SPARK:
        del sys.modules[name]
    sys.modules.update(loaded)


@contextlib.contextmanager
def postgres(options: dict[str, Any]) -> Iterator[None]:
    """Set libpq's environment variables for a server, and drop what an earlier page made there."""
    names = {name: {"dbname": "PGDATABASE"}.get(name, f"PG{name.upper()}") for name in options}
    with patch.dict(os.environ, {names[name]: str(value) for name, value in options.items()}):
        with psycopg.connect(autocommit=True) as connection:
            connection.execute("DROP SCHEMA IF EXISTS hr, shop CASCADE")
            connection.execute("DROP PUBLICATION IF EXISTS trinity")
        yield


@contextlib.contextmanager
def buckets(objects: ObjectServer, google: GoogleServer) -> Iterator[dict[str, str]]:
    """Make the buckets of a page, and yield the values that a reader would fill in."""
    objects.files.create_dir("lakehouse")
    google.stored.buckets["lakehouse"] = {}
    found = {
        "GOOGLE_BASE_URL": google.options["endpoint"],
        "GOOGLE_ALLOW_HTTP": "true",
        "AWS_ENDPOINT_URL": objects.options["endpoint"],
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": objects.options["access_key_id"],
        "AWS_SECRET_ACCESS_KEY": objects.options["secret_access_key"],
    }
    with patch.dict(os.environ, found):
        yield {
            "endpoint": objects.options["endpoint"],
            "key": objects.options["access_key_id"],
            "secret": objects.options["secret_access_key"],
            "key_file": google.options["service_account"],
        }


@contextlib.contextmanager
def provided(needs: frozenset[str]) -> Iterator[dict[str, str]]:
    """Start the servers that the examples of a page need, and yield the values that a reader would fill in."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if "postgres" in needs:
            stack.enter_context(postgres(stack.enter_context(running_server()).options))
        given = {}
        if "bucket" in needs:
            objects = stack.enter_context(running_object_server())
            given = stack.enter_context(buckets(objects, stack.enter_context(running_google_server(folder))))
        if "spark" in needs:
            stack.callback(drop_temp_views, started(folder, short_tier=True))
        else:
            stack.enter_context(without_spark())
        yield given
