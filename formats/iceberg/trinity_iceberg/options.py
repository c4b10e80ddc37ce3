"""Settings of an Iceberg catalog, and those that Trinity sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ConfigDict, Field

from trinity.errors import TrinityError
from trinity.options import CatalogOptions
from trinity.storage import Location
from trinity.storage.location import in_bucket, is_absolute
from trinity.storage.s3 import S3Options
from trinity.storage.store_kinds import PYICEBERG_PREFIXES

DEFAULT_SCHEMA: Final = "default"
CATALOG_FILE: Final = "catalog.db"
FILE_IO: Final = {"py-io-impl": "trinity_iceberg.io.SyncedFileIO"}
"""The class by which PyIceberg reads and writes files, unless a catalog's options name another."""
BUSY_TIMEOUT_S: Final = 60
"""Seconds that a connection waits for SQLite's lock; writers hold it for a millisecond."""
_IMPLEMENTATION: Final = "py-catalog-impl"
"""PyIceberg's option: the class of a custom catalog, which has no type."""
DELEGATION: Final = "header.X-Iceberg-Access-Delegation"
"""Option that asks a REST catalog for keys; other engines use the same name."""
_DELEGATION: Final = DELEGATION.lower()
VENDED: Final = "vended-credentials"
"""The value of :data:`DELEGATION` with which a catalog issues credentials."""
_NUMBERS: Final = frozenset({"glue.max-retries"})
_RETRIES: Final = 5
"""How often a failing Amazon service is asked again; PyIceberg's default of 10 may take a minute."""


class IcebergOptions(CatalogOptions):
    """Settings of an Iceberg catalog. Keys that are not listed here go to PyIceberg's catalog unchanged.

    Attributes:
        warehouse: folder of the catalog, or ``s3://bucket/path``; needed by a SQL catalog. A folder is the default
            location of SQLite's file.
        type: PyIceberg's catalog type: ``sql`` (default), ``rest``, ``glue``, ``hive``, ...
        uri: address of the catalog; for ``sql`` SQLite's ``<warehouse>/catalog.db`` when left out, which no bucket can
            hold. ``glue`` has none.
        catalog_name: ``catalog-name``, the name under which the catalog's tables are registered; the Trinity catalog's
            name when left out. Spark's JDBC catalog finds the tables only under the same name.
        storage_options: where the store is, for a catalog that issues credentials; others use the session's.
    """

    model_config = ConfigDict(extra="allow")

    warehouse: str | None = None
    type: str = "sql"
    uri: str | None = None
    catalog_name: str | None = Field(None, alias="catalog-name")
    storage_options: dict[str, Any] | None = Field(None, repr=False)

    @property
    def _in_database(self) -> bool:
        return _in_database({"type": self.type, **(self.model_extra or {})})

    @property
    def folder(self) -> Location | None:
        """The warehouse, where tables are put; None if the catalog chooses."""
        known = self.warehouse and (self._in_database or in_bucket(self.warehouse))
        return Location.of(self.warehouse) if self.warehouse and known else None

    @property
    def known_store(self) -> S3Options:
        """The store's options that are known without asking the catalog."""
        return S3Options.of(self.storage_options or {})

    @property
    def vended(self) -> bool:
        """Whether the catalog is asked for keys with each table. Raises NOT_SUPPORTED for another delegation."""
        return hands_out_keys({"type": self.type, **(self.model_extra or {})})

    def check(self, catalog: str) -> None:
        """Refuse settings that are incomplete, or replaced by another option. Raises CONFIGURATION_INVALID."""
        if (self._in_database or self.type == "glue") and not self.warehouse:
            raise TrinityError(
                "CONFIGURATION_INVALID",
                f"Catalog '{catalog}' lacks the option 'warehouse', the place of its tables; "
                f"it has: {', '.join(sorted(self.model_fields_set)) or 'none'}.",
            )
        self._check_s3(catalog)
        if self.folder is None or self.folder.on_disk:
            return
        if self._in_database and not self.uri:
            raise TrinityError(
                "CONFIGURATION_INVALID",
                f"Catalog '{catalog}' is at '{self.warehouse}', and lacks the option 'uri', the address of its "
                "database: SQLite's file on a disk, 'sqlite:////folder/catalog.db', or "
                "'postgresql+psycopg://user@host/database'.",
            )

    def _check_s3(self, catalog: str) -> None:
        extra, in_store = self.model_extra or {}, self.folder is not None and not self.folder.on_disk
        if "py-io-impl" in extra or not (in_store or self.vended):
            return
        if found := [name for name in extra if name.startswith(PYICEBERG_PREFIXES)]:
            raise TrinityError(
                "CONFIGURATION_INVALID",
                f"Catalog '{catalog}' has the option '{found[0]}': how its bucket is reached is said by "
                "storage_options, as access_key_id, for all that reads and writes there.",
            )

    def properties(self) -> dict[str, Any]:
        """Return the properties of PyIceberg's catalog: text, except for those that it needs as numbers."""
        extra = {k: _number(v) if k in _NUMBERS else _text(v) for k, v in (self.model_extra or {}).items()}
        found: dict[str, Any] = {**FILE_IO, **extra}
        if _IMPLEMENTATION not in extra:
            found = {"type": self.type, **({"glue.max-retries": _RETRIES} if self.type == "glue" else {}), **found}
        folder = self.folder
        if self.warehouse:
            found["warehouse"] = folder.format_uri if folder and self._in_database else self.warehouse
        if self.uri:
            found["uri"] = _patient(self.uri)
        elif folder and self._in_database:
            found["uri"] = _patient(f"sqlite:///{folder.join(CATALOG_FILE)}")
        return found


def folder_of(options: Mapping[str, Any]) -> str | None:
    """Return the location of a catalog's tables; None if ``warehouse`` is a name in the catalog's service."""
    where = str(options.get("warehouse") or "")
    return where if where and (_in_database(options) or is_absolute(where)) else None


def _in_database(options: Mapping[str, Any]) -> bool:
    """Return whether a catalog is in a database, and has no service of its own."""
    return options.get("type", "sql") == "sql" and _IMPLEMENTATION not in options


def hands_out_keys(options: Mapping[str, Any]) -> bool:
    """Return whether the options are of a REST catalog that issues credentials with its tables.

    Raises:
        TrinityError: NOT_SUPPORTED for another kind of delegation, or another kind of catalog.
    """
    delegation = next((value for name, value in options.items() if str(name).lower() == _DELEGATION), None)
    if not delegation:
        return False
    if str(options.get("type")) != "rest" or str(delegation) != VENDED:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"'{DELEGATION}' = '{delegation}' of a catalog of type '{options.get('type', 'sql')}': Trinity takes "
            f"'{VENDED}' from catalogs of type 'rest', and asks no catalog to sign requests.",
        )
    return True


def _patient(uri: str) -> str:
    """Return a database address; for SQLite with a timeout for its lock, unless the address has parameters."""
    return f"{uri}?timeout={BUSY_TIMEOUT_S}" if uri.startswith("sqlite") and "?" not in uri else uri


def _number(value: Any) -> Any:
    return int(value) if str(value).isdecimal() else value


def _text(value: Any) -> Any:
    """Return an option's value as text; nested values, such as the option ``auth`` of REST, stay as they are."""
    if isinstance(value, dict | list):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)
