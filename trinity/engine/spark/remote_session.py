"""A session of Spark Connect that the caller brought: its server is found to know Trinity, and to see the same files.

A catalog's tables are committed from here and their files written there. A server with disks of its own would write
files that nobody who reads the table's metadata can find; so it is asked before anything is written.
"""

from __future__ import annotations

import json
import socket
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import pyarrow as pa

from trinity.engine.spark.remote import check_mode
from trinity.engine.spark.settings import REMOTE_SETTINGS
from trinity.errors import TrinityError
from trinity.storage import ObjectStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["RemoteCatalog", "open_remote", "prepare_remote"]

_PORT: Final = 15002
_PATIENCE_S: Final = 10


@dataclass(frozen=True)
class RemoteCatalog:
    """A catalog of a session of Spark Connect.

    Attributes:
        name: its name.
        module: the package of its format.
        folder: the folder of its tables on a disk, if it has one.
        needs_jvm: whether its tables there are worked on through Spark's JVM.
    """

    name: str
    module: str
    folder: str | None
    needs_jvm: bool


def open_remote(url: str) -> SparkSession:
    """The session of a server that is named by its address, ``sc://host:15002``.

    Raises:
        TrinityError: CONFIGURATION_INVALID where nothing answers: pyspark would ask for ten minutes.
    """
    from pyspark.sql import SparkSession

    parts = urlsplit(url)
    if parts.scheme == "sc":  # pyspark starts others itself
        place = parts.hostname or "", parts.port or _PORT
        try:
            socket.create_connection(place, _PATIENCE_S).close()
        except OSError as error:
            raise TrinityError(
                "CONFIGURATION_INVALID",
                f"No server of Spark Connect answers at {place[0]}:{place[1]} ({error}). Start it, or correct the "
                "address in spark.remote or SPARK_REMOTE.",
            ) from error
    return SparkSession.builder.remote(url).getOrCreate()


def prepare_remote(spark: SparkSession, catalogs: Sequence[RemoteCatalog]) -> None:
    """Finds a session of Spark Connect able to serve catalogs, and gives it the settings that Trinity needs.

    Args:
        spark: the session.
        catalogs: all catalogs of the session.

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
    """One task on the server, which imports what tasks need and looks for files that are put here for that time."""
    modules = list(dict.fromkeys(["trinity", *(catalog.module for catalog in catalogs)]))
    name = f".trinity-{uuid.uuid4().hex}"
    folders = dict.fromkeys(c.folder for c in catalogs if c.folder)
    marked = {folder: store for folder in folders if _mark(store := ObjectStore(folder), name)}
    try:
        found = _answer(spark, modules, list(marked), name)
    finally:
        for store in marked.values():
            store.delete([name])
    here = version("trinity-merge")
    if "missing" in found:
        raise _refused(f"cannot import {found['missing']} ({found['error']}). Install trinity-merge {here} there")
    if found["version"] != here:
        raise _refused(f"has trinity-merge {found['version']}, and here is {here}. Install the same there")
    if found["unseen"]:
        raise _refused(
            f"does not see the folder {found['unseen'][0]}, so that it would write elsewhere. Give one that both see"
        )


def _mark(store: ObjectStore, name: str) -> bool:
    """False where nothing can be put: nor will a table be changed there."""
    try:
        store.make_folder()
        store.put(name, b"", sync=False)
    except (TrinityError, OSError):
        return False
    return True


def _answer(spark: SparkSession, modules: list[str], folders: list[str], name: str) -> dict[str, Any]:
    from pyspark.errors import PySparkException

    def asked(_: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # sent as it stands, since the module that it is of may be missing there
        import importlib
        import json
        from importlib.metadata import version

        import pyarrow

        answer: dict[str, Any] = {}
        for module in modules:
            try:
                importlib.import_module(module)
            except ImportError as error:
                answer |= {"missing": module, "error": str(error)}
                break
        else:
            from trinity.storage import ObjectStore

            unseen = [folder for folder in folders if not ObjectStore(folder).exists(name)]
            answer |= {"version": version("trinity-merge"), "unseen": unseen}
        yield pyarrow.RecordBatch.from_pydict({"answer": [json.dumps(answer)]})

    try:
        row = spark.range(0, 1, 1, 1).mapInArrow(asked, "answer string").head()
    except PySparkException as error:
        from trinity.calls.spark import from_spark

        raise _refused(f"runs no task of this session: {from_spark(error).message}") from error
    answer: dict[str, Any] = json.loads(row[0]) if row is not None else {}
    return answer


def _refused(why: str) -> TrinityError:
    return TrinityError(
        "CONFIGURATION_INVALID",
        f"Python on the server of Spark Connect {why}; docs/clusters.md says what a server needs.",
    )
