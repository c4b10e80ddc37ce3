"""Spark's way to buckets: the JARs of S3A, its settings for each bucket in use, and the same for Python's workers.

Keys go into the configuration of Hadoop's file systems and into the environment of the workers, neither of which is
part of a plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from trinity.spi import SparkRequirements
from trinity.storage import HADOOP_S3, WORKER_OPTIONS, S3Options, options_as_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["S3A", "prepare_buckets"]

_SDK: Final = "2.29.52"
_HADOOP_AWS: Final = "org.apache.hadoop:hadoop-aws:3.4.2"
S3A: Final = SparkRequirements(
    packages=(
        _HADOOP_AWS,
        *(f"software.amazon.awssdk:{name}:{_SDK}" for name in ("s3", "s3-transfer-manager", "sts", "apache-client")),
    ),
    settings={
        # the SDK's modules that S3A needs have 18 MB, the bundle of all of them 640; the others Spark has
        "spark.jars.excludes": "software.amazon.awssdk:bundle,org.apache.hadoop:hadoop-client-api,"
        "org.apache.hadoop:hadoop-client-runtime,org.slf4j:slf4j-api,io.netty:*,commons-logging:commons-logging"
    },
    probes={"org.apache.hadoop.fs.s3a.S3AFileSystem": _HADOOP_AWS},
)
"""The requirement of catalogs in buckets."""

_SIMPLE: Final = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
_TEMPORARY: Final = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"
_ANONYMOUS: Final = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"


def prepare_buckets(spark: SparkSession, buckets: Mapping[str, S3Options]) -> None:
    """Has Spark reach buckets as their options say, from the next statement on; other buckets are left alone."""
    context = spark.sparkContext
    hadoop = context._jsc.hadoopConfiguration()
    for bucket, options in buckets.items():
        wanted = _settings(options.resolved())
        known = {name: hadoop.get(f"fs.s3a.bucket.{bucket}.{name}") for name in wanted}
        if known == wanted:
            continue
        for name, value in wanted.items():
            hadoop.set(f"fs.s3a.bucket.{bucket}.{name}", value)
        if any(value is not None for value in known.values()):
            _forget_clients(context._jvm, hadoop, bucket)
    context.environment[WORKER_OPTIONS] = options_as_text(context.environment.get(WORKER_OPTIONS), buckets)


def _forget_clients(java: Any, hadoop: Any, bucket: str) -> None:
    """Closes the clients with the old keys, which are kept otherwise: Spark's own, and that of Iceberg's reader."""
    both = java.org.apache.hadoop.conf.Configuration(hadoop)
    both.setIfUnset(*HADOOP_S3)
    for scheme in ("s3a", "s3"):
        java.org.apache.hadoop.fs.FileSystem.get(java.java.net.URI(f"{scheme}://{bucket}/"), both).close()


def _settings(options: S3Options) -> dict[str, str]:
    """The options as S3A calls them."""
    found = {
        "endpoint.region": options.region or "us-east-1",
        "path.style.access": str(not options.virtual_hosted_style).lower(),
    }
    if options.endpoint:
        found["endpoint"] = options.endpoint
        found["connection.ssl.enabled"] = str(urlsplit(options.endpoint).scheme == "https").lower()
    if options.anonymous:
        found["aws.credentials.provider"] = _ANONYMOUS
    elif options.access_key_id and options.secret_access_key:
        found |= {"access.key": options.access_key_id, "secret.key": options.secret_access_key}
        found["aws.credentials.provider"] = _TEMPORARY if options.session_token else _SIMPLE
        found |= {"session.token": options.session_token} if options.session_token else {}
    return found
