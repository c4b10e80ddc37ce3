"""Checks of a Spark Connect session that the caller brought: its server must have Trinity, and see the same files.

This process commits to a catalog's tables, and the server writes their files. A server with disks of its own, or with
settings for another store, would write files that no reader of the table's metadata can find. So it is checked before
anything is written.
"""

from __future__ import annotations

import socket
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from trinity.errors import TrinityError, first_line
from trinity.spark.remote import check_mode
from trinity.spark.settings import REMOTE_SETTINGS
from trinity.spark.workers import ask_worker, lacks
from trinity.storage import AlreadyExists, Location, ObjectStore
from trinity.storage.location import in_bucket
from trinity.storage.store_kinds import kind_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PORT: Final = 15002
_PATIENCE_S: Final = 10
_SEEN: Final = "_trinity/seen"
"""An object in a bucket's warehouse, whose text is unique."""


@dataclass(frozen=True)
class RemoteCatalog:
    """A catalog of a session of Spark Connect.

    Attributes:
        name: its name.
        module: the package of its format.
        folder: the location of its tables on a disk or in a bucket; None if the session does not know it.
        needs_jvm: True when changes of its tables need Spark's JVM.
    """

    name: str
    module: str
    folder: str | None
    needs_jvm: bool


def open_remote(url: str) -> SparkSession:
    """Return the session of the server at an address, ``sc://host:15002``.

    Raises:
        TrinityError: CONFIGURATION_INVALID if nothing answers; pyspark itself would try for ten minutes.
    """
    from trinity.spark_names import SparkSession

    parts = urlsplit(url)
    if parts.scheme == "sc":  # for other addresses, such as local, pyspark starts a server itself
        address = parts.hostname or "", parts.port or _PORT
        try:
            socket.create_connection(address, _PATIENCE_S).close()
        except OSError as error:
            raise TrinityError(
                "CONFIGURATION_INVALID",
                f"No server of Spark Connect answers at {address[0]}:{address[1]} ({error}). Start it, or correct the "
                "address in spark.remote or SPARK_REMOTE.",
            ) from error
    return SparkSession.builder.remote(url).getOrCreate()


def prepare_remote(spark: SparkSession, catalogs: Sequence[RemoteCatalog]) -> None:
    """Check that a session of Spark Connect can serve catalogs, and give it the settings that Trinity needs.

    Raises:
        TrinityError: CONFIGURATION_INVALID naming the catalog, the package, or the folder.
    """
    check_mode(spark)
    for catalog in catalogs:
        if catalog.needs_jvm:
            raise TrinityError(
                "CONFIGURATION_INVALID",
                f"Catalog '{catalog.name}' has tables on a disk, which its format changes through Spark's JVM beside "
                "Python; Spark Connect has none. Give it a warehouse in an object store, or the session of the driver.",
            )
    for key, value in REMOTE_SETTINGS.items():
        spark.conf.set(key, value)
    _ask(spark, catalogs)


def _ask(spark: SparkSession, catalogs: Sequence[RemoteCatalog]) -> None:
    """Run one task on the server; it imports the modules that tasks need, and looks for marks beside the tables."""
    modules = list(dict.fromkeys(["trinity", *(catalog.module for catalog in catalogs)]))
    marks = [found for folder in dict.fromkeys(c.folder for c in catalogs if c.folder) if (found := _mark(folder))]
    try:
        _check_python(_answer(spark, modules, marks))
        for mark in marks:
            if in_bucket(mark.folder):
                _check_spark(spark, mark)
    finally:
        for mark in marks:
            if not in_bucket(mark.folder):
                ObjectStore(mark.folder).delete([mark.name])


class _Mark(NamedTuple):
    """An object beside a catalog's tables. A server that finds its text sees the same storage."""

    folder: str
    name: str
    text: str


def _mark(folder: str) -> _Mark | None:
    """Put a mark, which stays if it is in a bucket. Return None if nothing can be written: then no table is changed.

    If the folder does not exist yet, the mark is in the nearest existing folder above it.
    """
    store, text = ObjectStore(folder), uuid.uuid4().hex
    try:
        if not in_bucket(folder):
            while not store.is_folder():
                store = ObjectStore(store.location.parent)
            store.put(f".trinity-{text}", text.encode(), sync=False)
            return _Mark(store.root, f".trinity-{text}", text)
        try:
            store.put_if_absent(_SEEN, text.encode(), commits=False)
        except AlreadyExists:
            text = store.get(_SEEN).decode()
        return _Mark(folder, _SEEN, text)
    except (TrinityError, OSError):
        return None


def _check_python(found: Mapping[str, Any]) -> None:
    if (lacking := lacks(found)) is not None:
        raise _refused(f"{lacking}. Install trinity-merge {version('trinity-merge')} there")
    for folder, why in found["unseen"]:
        if in_bucket(folder):
            variable = kind_of(folder).options.environment["endpoint"][0]
            raise _refused(
                f"does not reach '{folder}' ({why}). Its environment has to name the same store, by {variable} and its "
                "like, and a key of it: options of the session are not sent there"
            )
        raise _refused(f"does not see the folder {folder}, so it would write elsewhere. Give one that both see")


def _check_spark(spark: SparkSession, mark: _Mark) -> None:
    """Check that Spark itself, by Hadoop's file system, can read a mark in a bucket."""
    from trinity.calls import from_spark, quiet
    from trinity.spark_names import PySparkException

    why = "it finds another one of that name"
    try:
        with quiet():
            row = spark.read.text(Location.of(mark.folder).join(mark.name).for_sql).head()
        if row is not None and row[0] == mark.text:
            return
    except PySparkException as error:
        why = first_line(from_spark(error).message)
    kind = kind_of(mark.folder)
    raise _refused(
        f"does not read '{mark.folder}' ({why}). Start it with {', '.join(kind.spark.packages)}, and with the settings "
        f"of Hadoop's file system for {kind.name} that name the same store, and a key of it",
        "Spark",
    )


def _answer(spark: SparkSession, modules: list[str], marks: list[_Mark]) -> dict[str, Any]:
    from trinity.spark_names import PySparkException

    try:
        return ask_worker(spark, modules, marks)
    except PySparkException as error:
        from trinity.calls import from_spark

        raise _refused(f"runs no task of this session: {from_spark(error).message}") from error


def _refused(why: str, who: str = "Python") -> TrinityError:
    return TrinityError(
        "CONFIGURATION_INVALID",
        f"{who} on the server of Spark Connect {why}; docs/clusters.md says what a server needs.",
    )
