"""The adapter's entry point, which makes catalogs of Iceberg tables."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from trinity.errors import TrinityError, first_line
from trinity.secrets import scrubbed_warnings, shown
from trinity.spi import (
    EVERYTHING,
    Capability,
    Connector,
    ConnectorContext,
    ConnectorMetadata,
    Format,
    SparkRequirements,
    TableHandle,
)
from trinity.storage import ObjectStore
from trinity.storage.local_folders import check_warehouse
from trinity.storage.s3 import HADOOP_S3
from trinity_iceberg.options import DELEGATION, VENDED, IcebergOptions, folder_of, hands_out_keys
from trinity_iceberg.sink import IcebergSinkProvider

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

    from trinity_iceberg.metadata import IcebergMetadata

ICEBERG_JAR: Final = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
SQLITE_JAR: Final = "org.xerial:sqlite-jdbc:3.47.1.0"


class IcebergConnector(Connector):
    """One Iceberg catalog."""

    metadata: IcebergMetadata

    def __init__(self, catalog: str, options: IcebergOptions) -> None:
        from trinity_iceberg.metadata import IcebergMetadata  # imported late, as connecting has to be fast

        self._catalog = catalog
        self._options = options
        self._iceberg = _open(catalog, options)
        super().__init__(IcebergMetadata(catalog, self._iceberg, options.folder), IcebergSinkProvider())
        self._external: dict[str, IcebergMetadata] = {}

    def open_external(self, table: TableHandle) -> ConnectorMetadata:
        """Return the metadata of a table in a folder, without its catalog."""
        from trinity_iceberg.location_catalog import LocationCatalog
        from trinity_iceberg.metadata import IcebergMetadata
        from trinity_iceberg.metadata_files import present_file

        if present_file(ObjectStore(table.location)) is None:
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"Table '{table.full_name}': '{table.location}' is no Iceberg table: it has no *.metadata.json. Give "
                "the table's own folder, or another connector.",
            )
        if table.location not in self._external:
            self._external[table.location] = IcebergMetadata(self._catalog, LocationCatalog(table.location), None)
        return self._external[table.location]

    def close(self) -> None:
        """Close the connections to the catalog."""
        self._iceberg.close()

    def spark_catalog_settings(self, name: str) -> dict[str, str]:
        """Return the settings by which Spark's Iceberg runtime opens this catalog. Make its SQLite file if missing.

        Args:
            name: name of the Spark catalog. A SQL catalog needs the name of the PyIceberg catalog, because that is
                part of the key under which tables are registered.

        Raises:
            TrinityError: INVALID_ARGUMENTS for another name; NOT_SUPPORTED for a catalog of a custom class.
        """
        own = self._options.catalog_name or self._catalog
        given = self._options.properties()
        settings = {**_kind(given), "cache-enabled": "false"}
        if self._options.vended:
            settings[DELEGATION] = VENDED  # Iceberg's S3FileIO, of its bundle for Amazon, takes the keys
        elif self._options.folder and not self._options.folder.on_disk:
            setting, implementation = HADOOP_S3
            settings["io-impl"] = "org.apache.iceberg.hadoop.HadoopFileIO"
            settings |= {f"hadoop.{setting}": implementation} if self._options.folder.store.startswith("s3:") else {}
        if "warehouse" in given:
            settings["warehouse"] = given["warehouse"]
        if given.get("type") == "sql":
            if name != own:
                raise TrinityError(
                    "INVALID_ARGUMENTS",
                    f"Spark finds the tables of this SQL catalog only under the name '{own}', not '{name}': name the "
                    f"Spark catalog '{own}', or set 'catalog-name' to '{name}' before tables are made.",
                )
            self._make_file()
            settings |= {"type": "jdbc", **_jdbc(given["uri"]), "jdbc.schema-version": "V1", "clients": "1"}
        elif "uri" in given:
            settings["uri"] = given["uri"]
        prefix = f"spark.sql.catalog.{name}"
        return {prefix: "org.apache.iceberg.spark.SparkCatalog", **{f"{prefix}.{k}": v for k, v in settings.items()}}

    def _make_file(self) -> None:
        """Make SQLite's file and its folder, which SQLite's JDBC driver would not make."""
        from trinity_iceberg.sql_tables import SqliteTables

        if isinstance(self._iceberg, SqliteTables):
            self._iceberg.make()


def _kind(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings for the kind of catalog; for Glue also its id, endpoint and region, but no keys (N4)."""
    if "type" not in given:
        raise TrinityError(
            "NOT_SUPPORTED",
            "Spark knows no catalog of the class that 'py-catalog-impl' names; give it settings of its own.",
        )
    found = {"type": str(given["type"]), **{k: str(given[k]) for k in ("glue.id", "glue.endpoint") if k in given}}
    region = given.get("glue.region", given.get("client.region"))
    return {**found, "client.region": str(region)} if region and found["type"] == "glue" else found


def _jdbc(uri: str) -> dict[str, str]:
    """Return the JDBC settings for an SQLAlchemy address: ``sqlite:////a/b?x`` is ``jdbc:sqlite:/a/b``.

    User and password are separate settings: JDBC does not read them from the address, and Spark shows the address (N4).
    """
    scheme, _, rest = uri.partition("://")
    if scheme.startswith("sqlite"):
        return {"uri": f"jdbc:sqlite:{rest.partition('?')[0].removeprefix('/')}"}
    who, _, address = rest.rpartition("@")
    found = {"uri": f"jdbc:{scheme.partition('+')[0]}://{address}"}
    for name, value in zip(("jdbc.user", "jdbc.password"), who.split(":", 1), strict=False):
        found |= {name: unquote(value)} if value else {}
    return found


def _open(catalog: str, options: IcebergOptions) -> Catalog:
    """Open the PyIceberg catalog, and make its ``default`` namespace if it is missing."""
    if folder := options.folder:
        if found := [c for c in "#?%" if c in str(folder)]:
            raise TrinityError(
                "CONFIGURATION_INVALID",
                f"Catalog '{catalog}': its warehouse folder '{folder}' has '{found[0]}' in its path, which "
                "Iceberg's readers take for a part of a URI; choose another folder.",
            )
        if folder.on_disk:
            check_warehouse(folder)
        elif not options.vended:  # a catalog that issues credentials has none for the warehouse itself
            ObjectStore(folder).is_folder()  # fails unless the bucket exists and may be listed
    try:
        from pyiceberg.exceptions import NotInstalledError

        from trinity_iceberg.names import ensure_default_namespace
    except ImportError as error:
        raise TrinityError(
            "CONFIGURATION_INVALID",
            f"Catalog '{catalog}' needs PyIceberg ({error}); install it by pip install 'trinity-merge[iceberg]'.",
        ) from error
    name, properties = options.catalog_name or catalog, options.properties()
    for attempt in range(3):
        try:
            with scrubbed_warnings():
                opened = _opened(name, options)
            ensure_default_namespace(opened)
            return opened
        except NotInstalledError as error:
            raise _not_installed(catalog, str(properties["type"])) from error
        except Exception as error:
            # two processes that open a new database at once both make its tables; the loser tries again
            if attempt < 2 and "already exists" in str(error):
                time.sleep(0.05)
                continue
            from trinity_iceberg.trouble import is_denied

            # SQLite says no more about a file that may not be read; its folder exists
            closed = "unable to open database file" in str(error) and str(options.folder) in properties.get("uri", "")
            raise TrinityError(
                "PERMISSION_DENIED" if closed or is_denied(error) else "CONFIGURATION_INVALID",
                f"Catalog '{catalog}' cannot be opened with {shown(properties)}: {first_line(error)}. Check 'type', "
                "'uri' and 'warehouse'.",
            ) from error
    raise AssertionError("unreachable")


def _not_installed(catalog: str, kind: str) -> TrinityError:
    """Return the error of a catalog type whose packages are an extra: Trinity's for Glue, else PyIceberg's."""
    extra = "trinity-merge[glue]" if kind == "glue" else f"pyiceberg[{kind}]"
    return TrinityError(
        "CONFIGURATION_INVALID",
        f"Catalog '{catalog}': 'type' = '{kind}' needs a package that is not installed; run: pip install '{extra}'.",
    )


def _opened(name: str, options: IcebergOptions) -> Catalog:
    if options.vended:
        return _vending(name, options)
    properties = options.properties()
    if properties.get("type") == "sql":
        from trinity_iceberg.sql_tables import sql_tables

        properties.pop("type")
        return sql_tables(name, properties)
    from pyiceberg.catalog import load_catalog

    return load_catalog(name, **properties)


def _vending(name: str, options: IcebergOptions) -> Catalog:
    from trinity_iceberg.vended import VendingCatalog

    properties = options.properties()
    for option in ("type", *(known for known in properties if known.lower() == DELEGATION.lower())):
        properties.pop(option, None)  # PyIceberg asks for keys on its own
    return VendingCatalog(name, options.known_store, **properties)


class IcebergFormat(Format):
    """The format of Iceberg tables."""

    @property
    def property_prefixes(self) -> tuple[str, ...]:
        """Prefixes of Iceberg's own table properties."""
        return ("write.", "read.", "commit.", "history.")

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Everything, except that a commit is made in the catalog, not in the storage."""
        return EVERYTHING - {Capability.COMMITS_IN_STORAGE}

    @property
    def in_object_stores(self) -> bool:
        """Whether tables may lie in buckets: yes, also with a catalog that is in a database."""
        return True

    def hands_out_keys(self, options: Mapping[str, Any]) -> bool:
        """Return whether the options are of a REST catalog that issues credentials. Raises NOT_SUPPORTED for others."""
        return hands_out_keys(options)

    def folder(self, options: Mapping[str, Any]) -> str | None:
        """Return the warehouse; None if it is a name in a catalog service."""
        return folder_of(options)

    @property
    def spark(self) -> SparkRequirements:
        """Iceberg's Spark runtime, and the driver of the SQLite catalog."""
        return SparkRequirements(
            packages=(ICEBERG_JAR, SQLITE_JAR),
            settings={"spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"},
            probes={"org.apache.iceberg.spark.SparkCatalog": ICEBERG_JAR, "org.sqlite.JDBC": SQLITE_JAR},
            jars="trinity_iceberg/iceberg.jars",
        )

    def create(self, catalog: str, options: Mapping[str, Any], context: ConnectorContext) -> IcebergConnector:
        """Open a catalog; see :class:`IcebergOptions`."""
        parsed = IcebergOptions.of(catalog, options)
        parsed.check(catalog)
        return IcebergConnector(catalog, parsed)
