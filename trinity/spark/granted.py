"""Spark's reads with credentials that a catalog issues for one table.

S3A has one credential for each bucket and scheme, and keeps the client that it has made with it. So each credential
gets a scheme of its own, and by that a client of its own. A plan shows the settings of its scans, so these have
placeholders only. The credentials are in the configuration of Hadoop's file systems, which Spark sends to executors.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from trinity.clock import now_ms
from trinity.errors import TrinityError
from trinity.spark.remote import refuse_remote
from trinity.spi import SparkRequirements
from trinity.storage import Location
from trinity.storage.grants import Granted, any_granted, credential_of
from trinity.storage.location import in_bucket
from trinity.storage.s3 import AMAZON_SDK, s3a_settings
from trinity.storage.store_kinds import kind_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OF_ICEBERG: Final = {
    "software.amazon.awssdk.services.kms.KmsClient": f"software.amazon.awssdk:kms:{AMAZON_SDK}",
    "software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient": (
        f"software.amazon.awssdk:url-connection-client:{AMAZON_SDK}"
    ),
}
GRANTED: Final = SparkRequirements(
    packages=tuple(_OF_ICEBERG.values()), probes=_OF_ICEBERG, jars="trinity.spark/granted.jars"
)
"""The JARs for catalogs that issue credentials: with them Iceberg's own reader reads tables of other engines."""

_S3A: Final = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_SECRET: Final = ("access.key", "secret.key", "session.token")
_KEPT: Final = "trinity.granted"
"""The beginning of the names of the settings that hold credentials."""
_UNKNOWN_END_MS: Final = 12 * 60 * 60 * 1000
"""How long a credential of unknown expiry is kept after its last use, milliseconds."""
_until: Final[dict[int, tuple[int, str, FileAccess]]] = {}
_mutex: Final = threading.Lock()


@dataclass(frozen=True)
class FileAccess:
    """The access of Spark's reader to some files.

    Attributes:
        options: options of the reader.
        scheme: scheme of the files' URIs; None for the usual one.
    """

    options: Mapping[str, str] = field(default_factory=dict)
    scheme: str | None = None

    def name(self, path: str) -> str:
        """Return the file's name for Spark's reader."""
        found = Location.of(path).for_spark
        return found if self.scheme is None else f"{self.scheme}:{found.partition(':')[2]}"


def file_access(spark: SparkSession, paths: Sequence[str]) -> FileAccess:
    """Return the access to files of one table, and let Spark use it from now on.

    Raises:
        TrinityError: NOT_SUPPORTED for files with more than one credential; CONFIGURATION_INVALID over Spark Connect.
    """
    if not (any_granted() and paths and in_bucket(paths[0])):
        return FileAccess()
    found: dict[int, tuple[Granted, str]] = {}
    for path in paths:
        location = Location.of(path)
        credential = credential_of(location)
        if credential is not None:
            found[credential.number] = credential, location.bucket
    if not found:
        return FileAccess()
    if len(found) > 1:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"The catalog hands out several keys for the files of one table, as for '{paths[0]}' and '{paths[-1]}'; "
            "Spark reads the files of a table by one key.",
        )
    [(credential, bucket)] = found.values()
    return _access_by_credential(spark, credential, bucket)


def _access_by_credential(spark: SparkSession, credential: Granted, bucket: str) -> FileAccess:
    refuse_remote(spark, "Reading by keys that a catalog hands out", "give the session of the driver")
    context: Any = spark.sparkContext
    hadoop, scheme = context._jsc.hadoopConfiguration(), f"s3a{credential.number}"
    options = {f"fs.{scheme}.impl": _S3A}
    for name, value in s3a_settings(credential.options.resolved()).items():
        meant = value
        if name in _SECRET:
            kept = f"{_KEPT}.{credential.number}.{name}"
            hadoop.set(kept, value)
            meant = f"${{{kept}}}"  # Hadoop puts the value in its place
        options[f"fs.s3a.bucket.{bucket}.{name}"] = meant
    patience = kind_of("s3:").hadoop_patience(f"s3://{bucket}")
    options |= {name: value for name, value in patience.items() if hadoop.get(name) is None}
    now = now_ms()
    found = FileAccess(options, scheme)
    with _mutex:
        _until[credential.number] = credential.expires_ms or now + _UNKNOWN_END_MS, f"{scheme}://{bucket}/", found
        gone = [_until.pop(number) for number in [n for n, (until, *_) in _until.items() if until < now]]
    for _, uri, access in gone:
        _close_client(context._jvm, hadoop, uri, access)
    return found


def _close_client(java: Any, hadoop: Any, uri: str, access: FileAccess) -> None:
    """Close this process's client with a credential that has expired, and forget the credential."""
    conf = java.org.apache.hadoop.conf.Configuration(hadoop)
    for name, value in access.options.items():
        conf.set(name, value)
    java.org.apache.hadoop.fs.FileSystem.get(java.java.net.URI(uri), conf).close()
    for value in access.options.values():
        if value.startswith(f"${{{_KEPT}."):
            hadoop.unset(value[2:-1])
