"""The catalogs of a session: which format each one is of, and its connector, opened when it is first used."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from trinity.buckets import Buckets
from trinity.errors import TrinityError, nearest
from trinity.names import TableName
from trinity.secrets import keep, scrubbing
from trinity.spi import ENTRY_POINT_GROUP, Connector, ConnectorContext, Format, SparkRequirements

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from trinity.engine.spark.remote_session import RemoteCatalog

__all__ = ["Catalogs"]


class Catalogs(Mapping[str, Connector]):
    """Catalog name -> connector.

    Args:
        settings: catalog name -> ``{"connector": format, ...options}``.
        context: what the session lends to its connectors.
        storage: options of the object stores of all catalogs that have no ``storage_options`` of their own.

    Raises:
        TrinityError: CONFIGURATION_INVALID for a catalog without a connector, or with an unknown one, and for options
            of a store that are wrong; NOT_SUPPORTED for a catalog in a store that its format cannot use.
    """

    def __init__(
        self,
        settings: Mapping[str, Mapping[str, Any]],
        context: ConnectorContext,
        storage: Mapping[str, Any] | None = None,
    ) -> None:
        self._context = context
        self._options = {name: dict(options) for name, options in settings.items()}
        for options in self._options.values():
            keep(options)
        self._names = {name: _connector_name(name, options) for name, options in self._options.items()}
        self._formats = {name: _load(name, connector) for name, connector in self._names.items()}
        self._buckets = Buckets(self._options, self._formats, storage)
        self._open: dict[str, Connector] = {}
        self._opening = threading.RLock()

    def __getitem__(self, name: str) -> Connector:
        """The connector, opened by its first use. Raises KeyError; CONFIGURATION_INVALID."""
        with self._opening:
            if name not in self._open:
                self._open[name] = self._create(name)
            return self._open[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def check(self, name: str) -> None:
        """Raises CATALOG_NOT_FOUND for a name that no catalog has."""
        if name not in self._names:
            known = sorted(self._names)
            raise TrinityError(
                "CATALOG_NOT_FOUND",
                f"There is no catalog '{name}'.{nearest(name, known)} There are: {', '.join(known)}.",
            )

    def format_name(self, catalog: str) -> str:
        """The name of a catalog's connector: ``delta``."""
        self.check(catalog)
        return self._names[catalog]

    def property_prefixes(self, catalog: str) -> tuple[str, ...]:
        """Prefixes of the format's own table properties."""
        self.check(catalog)
        return self._formats[catalog].property_prefixes

    def warehouse(self, catalog: str) -> str | None:
        """The folder of a catalog, when it has one on this machine's disks or in an object store."""
        self.check(catalog)
        found = str(self._formats[catalog].folder(self._options[catalog]) or "")
        here = "://" not in found or found.startswith("file:") or self._buckets.has(catalog)
        return found if found and here else None

    def tables(self, place: TableName | None = None) -> list[TableName]:
        """Names of the catalogs' own tables, sorted by place.

        Args:
            place: a name of their schema; None for all schemas of all catalogs.

        Raises:
            TrinityError: SCHEMA_NOT_FOUND, CONFIGURATION_INVALID.
        """
        return [TableName(c, s, name) for c, s in self.places(place) for name in self[c].metadata.list_tables(s)]

    def places(self, place: TableName | None = None) -> list[tuple[str, str]]:
        """Catalog and schema of each schema; arguments and errors as of :meth:`tables`."""
        if place is not None:
            return [(place.catalog, place.schema)]
        return [(c, s) for c in sorted(self) for s in self[c].metadata.list_schemas()]

    def requirements(self) -> list[SparkRequirements]:
        """The requirements of Spark that formats and object stores have."""
        return [f.spark for f in self._formats.values()] + self._buckets.requirements()

    def prepare(self, spark: SparkSession) -> SparkSession:
        """Spark, from now on able to reach what the catalogs are in.

        Raises:
            TrinityError: CONFIGURATION_INVALID for a session of Spark Connect that cannot serve a catalog.
        """
        from trinity.engine.spark.remote import is_remote

        if is_remote(spark):  # its server reaches stores by itself
            from trinity.engine.spark.remote_session import prepare_remote

            prepare_remote(spark, [self._remote(name) for name in self])
        else:
            self._buckets.prepare(spark)
        return spark

    def _remote(self, name: str) -> RemoteCatalog:
        from trinity.engine.spark.remote_session import RemoteCatalog

        in_bucket, made_by = self._buckets.has(name), self._formats[name]
        package = type(made_by).__module__.partition(".")[0]
        return RemoteCatalog(name, package, self.warehouse(name), made_by.spark.jvm and not in_bucket)

    def close(self) -> None:
        """Closes the connectors that are open."""
        with self._opening:
            while self._open:
                self._open.popitem()[1].close()
            self._buckets.release()

    @contextmanager
    def closed_by_error(self) -> Iterator[None]:
        """Closes the connectors when what is done within fails."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _create(self, name: str) -> Connector:
        made_by = self._formats[name]
        with scrubbing():
            try:
                return made_by.create(name, self._options[name], self._context)
            except ModuleNotFoundError as error:
                raise _not_installed(self._names[name], error) from error
            except TrinityError:
                raise
            except Exception as error:  # an adapter's own, whose text may have the options
                raise TrinityError("CONFIGURATION_INVALID", f"Catalog '{name}' cannot be opened: {error}.") from error


def _connector_name(catalog: str, options: dict[str, Any]) -> str:
    connector = options.pop("connector", None)
    if connector is None:
        raise TrinityError("CONFIGURATION_INVALID", f"Catalog '{catalog}' names no 'connector'.")
    return str(connector)


def _load(catalog: str, connector: str) -> Format:
    found = _formats(tuple(map(_last_changed, sys.path)))
    if connector not in found:
        raise TrinityError(
            "CONFIGURATION_INVALID",
            f"Catalog '{catalog}': there is no connector '{connector}'.{nearest(connector, sorted(found))} "
            f"Installed: {', '.join(sorted(found))}.",
        )
    try:
        made: Format = found[connector].load()()
    except ModuleNotFoundError as error:
        raise _not_installed(connector, error) from error
    return made


@lru_cache(maxsize=4)
def _formats(path: tuple[tuple[str, int], ...]) -> Mapping[str, EntryPoint]:
    """The installed formats, of a Python path as it is now: to look at all packages takes most of a connect."""
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def _last_changed(folder: str) -> tuple[str, int]:
    """A folder with the time of its last change, by which packages are found that are installed meanwhile."""
    try:
        return folder, os.stat(folder or ".").st_mtime_ns
    except OSError:
        return folder, 0


def _not_installed(connector: str, error: ModuleNotFoundError) -> TrinityError:
    return TrinityError(
        "CONFIGURATION_INVALID",
        f"Connector '{connector}' needs a package that is not installed ({error}): "
        f"pip install 'trinity-merge[{connector}]'.",
    )
