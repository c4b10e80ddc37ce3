"""Buckets of S3, and of stores with its protocol."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlsplit

from pydantic import Field

from trinity.limits import Limit
from trinity.spi import SparkRequirements
from trinity.storage.store_kind import Cause, StoreKind
from trinity.storage.store_options import StoreOptions, invalid

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

HADOOP_S3: Final = "fs.s3.impl", "org.apache.hadoop.fs.s3a.S3AFileSystem"
"""Hadoop setting and value by which S3A reads ``s3:`` URIs, as in Iceberg's metadata."""

_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,62}")
AMAZON_SDK: Final = "2.29.52"
"""The version of Amazon's SDK for Java."""
_HADOOP_AWS: Final = "org.apache.hadoop:hadoop-aws:3.4.2"
S3A_PATIENCE: Final = {  # four attempts at most, six if a store throttles; S3A turns a timeout of 5 s into 15 s
    "attempts.maximum": "0",  # retries of Amazon's client within each attempt of S3A
    "retry.limit": "3",
    "retry.throttle.limit": "5",
    "connection.timeout": "5s",
    "connection.establish.timeout": "5s",
}
"""S3A settings that limit retries; its defaults retry for minutes, and for days when a store throttles."""
LONGEST_COPY: Final = Limit(5 * 2**30)
"""Bytes of the largest object that one request can copy."""
ARROW_SILENCE_S: Final = Limit(5)
_ARROW_ATTEMPTS: Final = 4
"""Limits of Arrow's client: seconds without an answer, and attempts. With pauses they make half a minute."""
_CREDENTIALS: Final = "org.apache.hadoop.fs.s3a.{}AWSCredentialsProvider"


class S3Options(StoreOptions):
    """Options of a bucket of S3.

    Attributes:
        endpoint: URL of the service, if not Amazon's, such as ``http://127.0.0.1:9000``.
        region: the bucket's region; ``us-east-1`` by default.
        access_key_id: the key, with ``secret_access_key``. Without it the usual chain of the environment applies:
            ``AWS_ACCESS_KEY_ID`` and the like, web identity, container, instance.
        secret_access_key: see ``access_key_id``.
        session_token: token of temporary keys.
        allow_http: True to allow an endpoint without TLS.
        virtual_hosted_style: True for a service that needs the bucket in its host name.
        anonymous: True to read a public bucket without a key.
    """

    prefix: ClassVar[re.Pattern[str]] = re.compile(r"^(aws_|s3\.|s3_)")
    aliases: ClassVar[Mapping[str, str]] = {
        "endpoint_url": "endpoint",
        "endpoint_url_s3": "endpoint",
        "default_region": "region",
        "virtual_hosted_style_request": "virtual_hosted_style",
        "force_virtual_addressing": "virtual_hosted_style",
        "skip_signature": "anonymous",
    }
    environment: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
        "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
        "allow_http": ("AWS_ALLOW_HTTP",),  # keys are left to each client, which knows the usual chain
    }

    region: str | None = None
    access_key_id: str | None = Field(default=None, repr=False)
    secret_access_key: str | None = Field(default=None, repr=False)
    session_token: str | None = Field(default=None, repr=False)
    virtual_hosted_style: bool = False

    @property
    def service(self) -> str:
        """The name of the service, for messages."""
        return self.resolved().endpoint or f"Amazon S3 in {self.resolved().region or 'us-east-1'}"

    def without_keys(self) -> S3Options:
        """Return these options without the key."""
        return self.model_copy(update={"access_key_id": None, "secret_access_key": None, "session_token": None})

    def _check_keys(self) -> None:
        if (self.access_key_id is None) != (self.secret_access_key is None):
            raise invalid("access_key_id and secret_access_key are given together, or neither")


_CAUSES: Final[tuple[Cause, ...]] = (
    (
        r"NoSuchBucket|NO_SUCH_BUCKET",
        "FILESYSTEM_ERROR",
        "there is no bucket '{bucket}'. Make it, or correct the name or the endpoint.",
    ),
    (
        r"ExpiredToken|TokenRefreshRequired|EXPIRED_TOKEN|RequestExpired",
        "PERMISSION_DENIED",
        "the credentials have expired. Connect again with new ones.",
    ),
    (
        (
            r"AuthorizationHeaderMalformed|PermanentRedirect|IllegalLocationConstraint|301 Moved|BareRedirect"
            r"|HTTP status 301"
        ),
        "CONFIGURATION_INVALID",
        "bucket '{bucket}' is in another region{region}. Say which in storage_options, as region='eu-west-1'.",
    ),
    (
        (
            r"InvalidAccessKeyId|SignatureDoesNotMatch|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|Unauthenticated"
            r"|401 Unauthorized|InvalidToken|UNRECOGNIZED_CLIENT"
        ),
        "PERMISSION_DENIED",
        (
            "the key was refused. Correct access_key_id and secret_access_key in storage_options, or in "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        ),
    ),
    (
        r"instance metadata|169\.254\.169\.254|NoCredentials|credentials? (?:provider|not found)|metadata endpoint",
        "PERMISSION_DENIED",
        (
            "no credentials were found. Give access_key_id and secret_access_key in storage_options, set "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or say anonymous=True for a public bucket."
        ),
    ),
)


class S3(StoreKind[S3Options]):
    """The kind of stores ``s3://bucket``."""

    name: ClassVar[str] = "S3"
    scheme: ClassVar[str] = "s3"
    schemes: ClassVar[tuple[str, ...]] = ("s3", "s3a", "s3n")
    hadoop_scheme: ClassVar[str] = "s3a"
    example: ClassVar[str] = "s3://bucket/path"
    options: ClassVar[type[StoreOptions]] = S3Options
    obstore_class: ClassVar[str] = "S3Store"
    causes: ClassVar[tuple[Cause, ...]] = _CAUSES
    arrow_sign: ClassVar[str | None] = "AWS Error"
    longest_copy: ClassVar[Limit[int] | None] = LONGEST_COPY
    spark: ClassVar[SparkRequirements] = SparkRequirements(
        packages=(
            _HADOOP_AWS,
            *(
                f"software.amazon.awssdk:{name}:{AMAZON_SDK}"
                for name in ("s3", "s3-transfer-manager", "sts", "apache-client")
            ),
        ),
        settings={
            # the SDK's modules that S3A needs have 18 MB, the bundle of all modules 640 MB; Spark has the other JARs
            "spark.jars.excludes": "software.amazon.awssdk:bundle,org.apache.hadoop:hadoop-client-api,"
            "org.apache.hadoop:hadoop-client-runtime,org.slf4j:slf4j-api,io.netty:*,commons-logging:commons-logging"
        },
        probes={"org.apache.hadoop.fs.s3a.S3AFileSystem": _HADOOP_AWS},
        jars="trinity.storage/s3.jars",
    )
    pyiceberg_prefix: ClassVar[str] = "s3."

    def authority(self, text: str) -> str | None:
        return text if _BUCKET.fullmatch(text) else None

    def client_options(self, store: str, options: S3Options) -> Mapping[str, Any]:
        return {
            "endpoint": options.endpoint,
            "region": options.region or "us-east-1",
            "access_key_id": options.access_key_id,
            "secret_access_key": options.secret_access_key,
            "session_token": options.session_token,
            "virtual_hosted_style_request": options.virtual_hosted_style,
            "skip_signature": options.anonymous or None,
        }

    def filesystem(self, options: S3Options) -> FileSystem | None:
        return _filesystem(options)

    def hadoop_settings(self, store: str, options: S3Options) -> Mapping[str, str]:
        bucket = self.bucket(store)
        return {f"fs.s3a.bucket.{bucket}.{name}": value for name, value in s3a_settings(options).items()}

    def hadoop_patience(self, store: str) -> Mapping[str, str]:
        return {f"fs.s3a.bucket.{self.bucket(store)}.{name}": value for name, value in S3A_PATIENCE.items()}


def s3a_settings(options: S3Options) -> dict[str, str]:
    """Return the options as settings of S3A."""
    found = {
        "endpoint.region": options.region or "us-east-1",
        "path.style.access": str(not options.virtual_hosted_style).lower(),
    }
    if options.endpoint:
        found["endpoint"] = options.endpoint
        found["connection.ssl.enabled"] = str(urlsplit(options.endpoint).scheme == "https").lower()
    if options.anonymous:
        found["aws.credentials.provider"] = _CREDENTIALS.format("Anonymous")
    elif options.access_key_id and options.secret_access_key:
        found |= {"access.key": options.access_key_id, "secret.key": options.secret_access_key}
        found["aws.credentials.provider"] = _CREDENTIALS.format("Temporary" if options.session_token else "Simple")
        found |= {"session.token": options.session_token} if options.session_token else {}
    return found


@lru_cache(maxsize=64)
def _filesystem(options: S3Options) -> FileSystem:
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem

    address = urlsplit(options.endpoint or "")
    return S3FileSystem(
        access_key=options.access_key_id,
        secret_key=options.secret_access_key,
        session_token=options.session_token,
        anonymous=options.anonymous,
        region=options.region or "us-east-1",
        scheme=address.scheme or "https",
        endpoint_override=f"{address.netloc}{address.path.rstrip('/')}" or None,
        force_virtual_addressing=options.virtual_hosted_style,
        connect_timeout=ARROW_SILENCE_S.value,
        request_timeout=ARROW_SILENCE_S.value,
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=_ARROW_ATTEMPTS),
        allow_delayed_open=True,  # a small file is one request instead of three
    )
