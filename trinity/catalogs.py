"""The catalogs of a session: the format of each, and its connector, which is opened at the first use."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from trinity.buckets import Buckets
from trinity.errors import TrinityError, nearest
from trinity.names import TableName
from trinity.secrets import keep, scrubbing
from trinity.spi import ENTRY_POINT_GROUP, Capability, Connector, ConnectorContext, Format, SparkRequirements

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from trinity.spark.remote_session import RemoteCatalog


class Catalogs(Mapping[str, Connector]):
    """The mapping of a session's catalog names to their connectors.

    Args:
        settings: catalog name -> ``{"connector": format, ...options}``; the format is its name or a Format class.
        context: gives connectors access to the session's Spark.
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
        given = {name: _connector(name, options) for name, options in self._options.items()}
        self._names = {name: _name_of(connector) for name, connector in given.items()}
        self._formats = {name: _format_of(name, connector) for name, connector in given.items()}
        self._buckets = Buckets(self._options, self._formats, storage)
        self._open: dict[str, Connector] = {}
        self.is_closed = False
        self._opening = threading.RLock()

    def __getitem__(self, name: str) -> Connector:
        """Return a catalog's connector; its first use opens it. Raises KeyError; CONFIGURATION_INVALID."""
        with self._opening:
            if self.is_closed:
                raise closed_session()
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
        """Check that a catalog exists. Raises CATALOG_NOT_FOUND."""
        if name not in self._names:
            known = sorted(self._names)
            raise TrinityError(
                "CATALOG_NOT_FOUND",
                f"There is no catalog '{name}'.{nearest(name, known)} There are: {', '.join(known)}.",
            )

    def format_name(self, catalog: str) -> str:
        """Return the name of a catalog's connector, such as ``delta``. Raises CATALOG_NOT_FOUND."""
        self.check(catalog)
        return self._names[catalog]

    def property_prefixes(self, catalog: str) -> tuple[str, ...]:
        """Return the prefixes of the format's own table properties."""
        self.check(catalog)
        return self._formats[catalog].property_prefixes

    def capabilities(self, catalog: str) -> frozenset[Capability]:
        """Return what the tables of a catalog's format can do."""
        self.check(catalog)
        return self._formats[catalog].capabilities

    def warehouse(self, catalog: str) -> str | None:
        """Return the warehouse of a catalog: its folder on a disk, or its location in an object store.

        None for a catalog without a warehouse, and for a store that the session does not reach by its own options.
        """
        self.check(catalog)
        found = str(self._formats[catalog].folder(self._options[catalog]) or "")
        here = "://" not in found or found.startswith("file:") or self._buckets.has(catalog)
        return found if found and here else None

    def tables(self, within: TableName | None = None) -> list[TableName]:
        """Return the names of the tables that the catalogs list, without registered ones.

        Args:
            within: any name in the schema whose tables are returned; None for all schemas of all catalogs.

        Raises:
            TrinityError: SCHEMA_NOT_FOUND, CONFIGURATION_INVALID.
        """
        return [TableName(c, s, name) for c, s in self.schemas(within) for name in self[c].metadata.list_tables(s)]

    def schemas(self, within: TableName | None = None) -> list[tuple[str, str]]:
        """Return (catalog, schema) of the schema of ``within``, or of all schemas. Errors as for :meth:`tables`."""
        if within is not None:
            return [(within.catalog, within.schema)]
        return [(c, s) for c in sorted(self) for s in self[c].metadata.list_schemas()]

    def requirements(self) -> list[SparkRequirements]:
        """Return what formats and object stores need in Spark."""
        return [f.spark for f in self._formats.values()] + self._buckets.requirements()

    def prepare(self, spark: SparkSession) -> SparkSession:
        """Configure a Spark session to reach the locations of the catalogs, and return it.

        Raises:
            TrinityError: CONFIGURATION_INVALID for a session of Spark Connect that cannot serve a catalog.
        """
        from trinity.spark.remote import is_remote

        if is_remote(spark):  # the server of Spark Connect has options for stores of its own
            from trinity.spark.remote_session import prepare_remote

            prepare_remote(spark, [self._remote(name) for name in self])
        else:
            self._buckets.prepare(spark)
        return spark

    def _remote(self, name: str) -> RemoteCatalog:
        from trinity.spark.remote_session import RemoteCatalog

        in_bucket, made_by = self._buckets.has(name), self._formats[name]
        package = type(made_by).__module__.partition(".")[0]
        return RemoteCatalog(name, package, self.warehouse(name), made_by.spark.jvm and not in_bucket)

    def close(self, *, for_good: bool = False) -> None:
        """Close the open connectors, and release the buckets. With ``for_good`` no connector is opened again."""
        with self._opening:
            self.is_closed |= for_good
            while self._open:
                self._open.popitem()[1].close()
            self._buckets.release()

    @contextmanager
    def closed_by_error(self) -> Iterator[None]:
        """Close the connectors when the block fails."""
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
            except Exception as error:  # an error of an adapter's library; scrubbing() hides secrets in its text
                raise TrinityError("CONFIGURATION_INVALID", f"Catalog '{name}' cannot be opened: {error}.") from error


def closed_session() -> TrinityError:
    """Return the error of a call in a closed session."""
    return TrinityError("INVALID_ARGUMENTS", "The session is closed; call trinity.connect() for a new one.")


def _name_of(connector: object) -> str:
    """Return the name of a connector: that of its entry point, or ``module:Class`` for a Format class."""
    return f"{connector.__module__}:{connector.__qualname__}" if isinstance(connector, type) else str(connector)


def _connector(catalog: str, options: dict[str, Any]) -> object:
    connector: object = options.pop("connector", None)
    if connector is None:
        raise TrinityError("CONFIGURATION_INVALID", f"Catalog '{catalog}' names no 'connector'.")
    return connector


def _format_of(catalog: str, connector: object) -> Format:
    """Return the format of a catalog: an instance of the given Format class, or the installed format of a name."""
    if isinstance(connector, type) and issubclass(connector, Format):
        return connector()
    return _load(catalog, str(connector))


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


def installed_formats() -> dict[str, Format]:
    """Return the installed formats by name, without those that need a package that is not installed."""
    found = dict[str, Format]()
    for name, point in _formats(tuple(map(_last_changed, sys.path))).items():
        with suppress(ModuleNotFoundError):
            found[name] = point.load()()
    return found


@lru_cache(maxsize=4)
def _formats(path: tuple[tuple[str, int], ...]) -> Mapping[str, EntryPoint]:
    """Return the entry points of the installed formats by name.

    Cached as long as the Python path is unchanged: the search takes most of the time of a connect.
    """
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def _last_changed(folder: str) -> tuple[str, int]:
    """Return a folder and the time of its last change, by which packages that were installed meanwhile are noticed."""
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
