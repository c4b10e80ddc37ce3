"""The function that opens sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trinity.calls import public
from trinity.errors import TrinityError
from trinity.merge.properties import Properties, property_text
from trinity.session import Session, Statements
from trinity.target import Engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from trinity.storage import Location

_BUILT_IN: Final = ("parquet", "delta", "iceberg")
"""The formats of a warehouse's catalogs, which have their names."""
_IN_STORES: Final = ("parquet", "delta")
"""Those whose catalogs need no more than a place in an object store: Iceberg's need an address, too."""


@public
def connect(
    warehouse: str | Path | None = None,
    *,
    spark: SparkSession | None = None,
    catalogs: Mapping[str, Mapping[str, Any]] | None = None,
    catalog: str | None = None,
    schema: str = "default",
    spark_settings: Properties | None = None,
    storage_options: Mapping[str, Any] | None = None,
    allow_code: bool = False,
    engine: Engine = "auto",
    local_bytes: int | None = None,
) -> Session:
    """Open a session.

    Args:
        warehouse: folder for the catalogs ``parquet``, ``delta`` and ``iceberg``. Each has a subfolder, which is
            created with its first table or schema. Or ``s3://bucket/path``, ``gs://bucket/path`` or
            ``abfss://container@account.dfs.core.windows.net/path``, for ``parquet`` and ``delta`` only: an Iceberg
            catalog in an object store also needs an address (docs/object-stores.md).
        spark: the caller's Spark session; by default one is started when first needed. With Spark Connect a warehouse
            folder has the catalogs ``parquet`` and ``iceberg`` only (docs/clusters.md).
        catalogs: further catalogs: name -> ``{"connector": format, "warehouse": folder, ...}``; the format is its
            name, or a Format class, which need not be installed.
        catalog: current catalog; by default ``parquet`` with a warehouse, else the first of ``catalogs``.
        schema: current schema.
        spark_settings: settings for the Spark that is started, such as ``{"spark.driver.memory": "4g"}``; it is local
            unless ``spark.master`` names a cluster, or ``spark.remote`` a server of Spark Connect (docs/clusters.md).
        storage_options: options to reach the object store of the warehouse, or of catalogs (docs/object-stores.md).
            Missing ones come from the environment. A catalog may have its own.
        allow_code: whether SQL may run code, read files by path and use Spark's own commands (docs/security.md).
        engine: what executes statements. ``auto``: this process where it can, unless ``spark`` is given or the work is
            large; Spark starts when it is needed. ``local``: this process alone; what needs Spark is an error.
            ``spark``: Spark, for all that reads or writes rows (docs/local.md).
        local_bytes: the most bytes of files that a statement may read for this process to execute it; by default an
            eighth of the process's memory.

    Raises:
        TrinityError: CONFIGURATION_INVALID for an unknown connector or option, for a Spark that lacks what the
            catalogs need, and for one beside ``engine="local"``; NOT_SUPPORTED for a warehouse in a store that Trinity
            does not know, or that a catalog's format cannot use; FILESYSTEM_ERROR or PERMISSION_DENIED when it cannot
            be reached, read or made.
    """
    if spark is not None and engine == "local":
        raise TrinityError("CONFIGURATION_INVALID", "A session with engine='local' takes no Spark; leave spark= out.")
    settings = {key: property_text(value) for key, value in (spark_settings or {}).items()}
    wanted: dict[str, dict[str, Any]] = {}
    if warehouse is not None:
        folder = _folder(warehouse)
        names = _on_disk(spark, settings) if folder.on_disk else _IN_STORES
        wanted = {name: {"connector": name, "warehouse": str(folder.join(name))} for name in names}
    wanted.update({name.lower(): dict(options) for name, options in (catalogs or {}).items()})
    if not wanted:
        raise TrinityError(
            "CONFIGURATION_INVALID", "Nothing to connect to: give a warehouse folder, or catalogs={name: {...}}."
        )
    current = (catalog or next(iter(wanted))).lower()
    given = None if warehouse is None else str(warehouse)
    return Session(
        wanted, current, schema.lower(), spark, settings, given, allow_code, storage_options,
        statements=_statements, engine=engine, local_bytes=local_bytes,
    )  # fmt: skip


def _statements() -> Statements:
    from trinity.sql import statements  # imported with the first statement, so that ``import trinity`` is fast

    return statements


def _on_disk(spark: SparkSession | None, settings: Mapping[str, str]) -> Sequence[str]:
    """Return the built-in formats of a folder; with Spark Connect without those that need the JVM of a local Spark."""
    from trinity.catalogs import installed_formats
    from trinity.spark.remote import is_remote, remote_url

    remote = remote_url(settings) is not None if spark is None else is_remote(spark)
    if not remote:
        return _BUILT_IN
    formats = installed_formats()
    return [name for name in _BUILT_IN if name in formats and not formats[name].spark.jvm]


def _folder(warehouse: str | Path) -> Location:
    from trinity.storage import Location

    if not str(warehouse).strip():
        raise TrinityError("CONFIGURATION_INVALID", "The warehouse has no name; give a folder.")
    return Location.of(str(warehouse))
