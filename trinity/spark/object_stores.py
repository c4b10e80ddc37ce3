"""Spark's access to buckets: Hadoop's file systems and the Python workers get settings for each bucket in use.

Credentials go into the configuration of Hadoop's file systems and into the environment of the workers, neither of
which is part of a plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from trinity.errors import TrinityError
from trinity.spi import SparkRequirements
from trinity.storage.bucket_options import WORKER_OPTIONS, buckets_in_use, options_as_text
from trinity.storage.s3 import HADOOP_S3
from trinity.storage.store_kinds import kind_of
from trinity.storage.store_options import StoreOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def requirements_of(buckets: Iterable[str]) -> list[SparkRequirements]:
    """Return the requirements of catalogs in buckets: those of each kind of store, once."""
    return [kind.spark for kind in dict.fromkeys(map(kind_of, buckets))]


def prepare_buckets(spark: SparkSession, buckets: Mapping[str, StoreOptions]) -> None:
    """Let Spark reach buckets as their options say, from the next statement on; other buckets are left alone.

    Raises:
        TrinityError: NOT_SUPPORTED for options that Hadoop's file system does not know; CONFIGURATION_INVALID if the
            file system has one setting for two buckets whose options differ, or if Spark was started without a setting
            that holds for all buckets.
    """
    context = spark.sparkContext
    hadoop = context._jsc.hadoopConfiguration()
    _check_needs(hadoop, buckets)
    for store in buckets:
        for name, value in kind_of(store).hadoop_patience(store).items():
            hadoop.setIfUnset(name, value)
    for store, wanted in _agreed_settings(buckets).items():
        known = {name: hadoop.get(name) for name in wanted}
        if known == wanted:
            continue
        for name, value in wanted.items():
            hadoop.set(name, value)
        if any(value is not None for value in known.values()):
            _forget_clients(context._jvm, hadoop, store)
    context.environment[WORKER_OPTIONS] = options_as_text(context.environment.get(WORKER_OPTIONS), buckets)


def _check_needs(hadoop: Any, buckets: Mapping[str, StoreOptions]) -> None:
    for store, options in buckets.items():
        needs = kind_of(store).hadoop_needs(options.resolved())
        lacking = [f"spark.hadoop.{name}={value}" for name, value in needs.items() if hadoop.get(name) != value]
        if lacking:
            raise TrinityError(
                "CONFIGURATION_INVALID",
                f"Spark reaches '{store}' at {options.service} only when it is started with {', '.join(lacking)}, as "
                "in spark_settings. They hold for all that it reads by such locations, so nobody else makes them.",
            )


def _agreed_settings(buckets: Mapping[str, StoreOptions]) -> dict[str, dict[str, str]]:
    """Return the settings for each bucket, which must not contradict those of another bucket in use."""
    found = {store: _settings(store, options) for store, options in buckets.items()}
    clash: tuple[str, str] | None = None
    for other, options in buckets_in_use().items():
        for store, wanted in found.items():
            if other == store or kind_of(other) is not kind_of(store):
                continue
            with suppress(TrinityError):  # an error in another session's options is that session's to report
                theirs = _settings(other, options)
                if wanted.keys() & theirs.keys() and wanted != theirs:
                    clash = store, other
    if clash:
        raise TrinityError(
            "CONFIGURATION_INVALID",
            f"'{clash[0]}' and '{clash[1]}' are in use with different storage_options, and Hadoop's file system, which "
            "Spark reads by, has one set of settings for both. Give the same ones.",
        )
    return found


def _settings(store: str, options: StoreOptions) -> dict[str, str]:
    return dict(kind_of(store).hadoop_settings(store, options.resolved()))


def _forget_clients(java: Any, hadoop: Any, store: str) -> None:
    """Close the cached clients that have the old credentials: Spark's own, and the one of Iceberg's reader."""
    from py4j.protocol import Py4JJavaError

    both = java.org.apache.hadoop.conf.Configuration(hadoop)
    both.setIfUnset(*HADOOP_S3)
    kind, authority = kind_of(store), store.partition(":")[2]
    for scheme in dict.fromkeys((kind.hadoop_scheme, kind.scheme)):
        with suppress(Py4JJavaError):  # a client that cannot be made was not cached
            java.org.apache.hadoop.fs.FileSystem.get(java.java.net.URI(f"{scheme}:{authority}/"), both).close()
