"""The object stores of a session's catalogs, and the options by which all readers and writers reach them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from trinity.errors import TrinityError
from trinity.spi import Format, SparkRequirements

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from trinity.storage.store_options import StoreOptions

STORAGE_OPTIONS: Final = "storage_options"


class Buckets:
    """The buckets of a session's catalogs, in use until :meth:`release`.

    Args:
        catalogs: catalog name -> its options; ``storage_options`` are removed from them.
        formats: catalog name -> its format.
        storage: options for the catalogs that have none of their own.

    Raises:
        TrinityError: CONFIGURATION_INVALID for options that are wrong, that no catalog needs, or that differ for one
            bucket; NOT_SUPPORTED naming a catalog whose format cannot be in an object store.
    """

    def __init__(
        self, catalogs: Mapping[str, dict[str, Any]], formats: Mapping[str, Format], storage: Mapping[str, Any] | None
    ) -> None:
        own = {name: options.pop(STORAGE_OPTIONS, None) for name, options in catalogs.items()}
        self._granting = {name for name, options in catalogs.items() if formats[name].hands_out_keys(options)}
        for name in self._granting:
            catalogs[name][STORAGE_OPTIONS] = _options_of(name, own.pop(name), storage)
        self._buckets: dict[str, str] = {
            name: bucket for name, options in catalogs.items() if (bucket := _bucket(options))
        }
        for name in self._buckets:
            if not formats[name].in_object_stores:
                raise TrinityError(
                    "NOT_SUPPORTED",
                    f"Catalog '{name}' cannot be at '{catalogs[name]['warehouse']}': its format has no tables in "
                    "object stores yet. Give it a folder, or a connector that has them (docs/object-stores.md).",
                )
        self._claimed: list[str] = []
        self._options = wanted = self._store_options(own, storage)
        from trinity.storage.bucket_options import claim_bucket

        try:
            for bucket, options in wanted.items():
                claim_bucket(bucket, options)
                self._claimed.append(bucket)
        except TrinityError:
            self.release()
            raise

    def has(self, catalog: str) -> bool:
        """Return whether a catalog is in an object store that the session reaches by its own options."""
        return catalog in self._buckets and catalog not in self._granting

    def requirements(self) -> list[SparkRequirements]:
        """Return what Spark needs to reach the buckets; an empty list without buckets."""
        if not (self._buckets or self._granting):
            return []
        from trinity.spark.granted import GRANTED
        from trinity.spark.object_stores import requirements_of

        granting = [GRANTED] if self._granting else []
        return [*requirements_of([*self._buckets.values(), *(["s3:"] if granting else [])]), *granting]

    def prepare(self, spark: SparkSession) -> None:
        """Give Spark the options by which this process reaches the buckets."""
        if self._options:
            from trinity.spark.object_stores import prepare_buckets

            prepare_buckets(spark, self._options)

    def release(self) -> None:
        """Release the buckets."""
        from trinity.storage.bucket_options import release_bucket

        while self._claimed:
            release_bucket(self._claimed.pop())

    def _store_options(self, own: Mapping[str, Any], storage: Mapping[str, Any] | None) -> dict[str, StoreOptions]:
        from trinity.storage.store_kinds import kind_of

        for name in own:
            if own[name] is not None and name not in self._buckets:
                raise _needless(f"catalog '{name}' is in no object store")
        if storage is not None and not (self._buckets or self._granting):
            raise _needless("the session has no catalog in an object store")
        found: dict[str, StoreOptions] = {}
        for name, bucket in self._buckets.items():
            if name in self._granting:
                continue
            given = storage if own[name] is None else own[name]
            options = kind_of(bucket).options.of(given or {})
            if found.setdefault(bucket, options) != options:
                raise TrinityError(
                    "CONFIGURATION_INVALID",
                    f"Catalog '{name}' has other storage_options for '{bucket}' than another catalog has; "
                    "it is reached in one way.",
                )
        return found


def _options_of(catalog: str, own: Mapping[str, Any] | None, storage: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the options, without credentials, of the store of a catalog that issues them itself.

    Raises:
        TrinityError: CONFIGURATION_INVALID if the catalog's own options have a key.
    """
    from trinity.storage.s3 import S3Options

    options = S3Options.of(own if own is not None else storage or {})
    if own is not None and options != options.without_keys():
        raise TrinityError(
            "CONFIGURATION_INVALID",
            f"Catalog '{catalog}' is to hand out keys, and has one in storage_options; leave one of them out.",
        )
    return options.without_keys().model_dump(exclude_none=True, exclude_defaults=True)


def _needless(why: str) -> TrinityError:
    return TrinityError(
        "CONFIGURATION_INVALID", f"storage_options are given, and {why}: give a warehouse such as 's3://bucket/path'."
    )


def _bucket(options: Mapping[str, Any]) -> str:
    """Return the URI of the bucket that holds a catalog's warehouse; an empty text for a warehouse elsewhere."""
    warehouse = str(options.get("warehouse") or "")
    if ":" not in warehouse:
        return ""
    from trinity.storage import Location
    from trinity.storage.location import in_bucket

    return Location.of(warehouse).store if in_bucket(warehouse) else ""
