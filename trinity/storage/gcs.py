"""Buckets of Google Cloud Storage, by its XML API."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from pydantic import Field

from trinity.errors import TrinityError
from trinity.secrets import keep
from trinity.spi import SparkRequirements
from trinity.storage.store_kind import Cause, StoreKind
from trinity.storage.store_options import StoreOptions, invalid

_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
_PATIENCE: Final = {  # milliseconds; at most five attempts, each of five seconds without an answer
    "fs.gs.http.max.retry": "4",
    "fs.gs.http.connect-timeout": "5000",
    "fs.gs.http.read-timeout": "5000",
}
_CONNECTOR: Final = "com.google.cloud.bigdataoss:gcs-connector:4.0.4:shaded"
_SERVICE: Final = "https://storage.googleapis.com"
_IMPLEMENTATION: Final = {
    "fs.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
    "fs.AbstractFileSystem.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFS",
}
_KINDS: Final = {
    "service_account": ("SERVICE_ACCOUNT_JSON_KEYFILE", "service.account.json.keyfile"),
    "external_account": (
        "WORKLOAD_IDENTITY_FEDERATION_CREDENTIAL_CONFIG_FILE",
        "workload.identity.federation.credential.config.file",
    ),
}
"""Type of a credentials file -> its name in the connector, and the setting for the file's path."""
_USER: Final = (("client", "id"), ("client", "secret"), ("refresh", "token"))
"""Names in the credentials file of a person, in two parts."""


class GcsOptions(StoreOptions):
    """Options of a bucket of Google Cloud Storage.

    Without a key the environment applies: ``GOOGLE_SERVICE_ACCOUNT`` and the like, ``GOOGLE_APPLICATION_CREDENTIALS``,
    the file of ``gcloud auth application-default login``, the machine's service account.

    Attributes:
        endpoint: URL of the service, if not ``https://storage.googleapis.com``.
        service_account: path of a service account's key, a JSON file.
        service_account_key: the JSON itself.
        application_credentials: path of a file of application default credentials.
        bearer_token: an OAuth token, which is not renewed.
        allow_http: True to allow an endpoint without TLS.
        anonymous: True to read a public bucket without a key.
    """

    prefix: ClassVar[re.Pattern[str]] = re.compile(r"^(google_|gcs\.|gcs_)")
    aliases: ClassVar[Mapping[str, str]] = {
        "base_url": "endpoint",
        "endpoint_url": "endpoint",
        "service_account_path": "service_account",
        "token": "bearer_token",
        "skip_signature": "anonymous",
    }
    environment: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "endpoint": ("GOOGLE_BASE_URL",),
        "allow_http": ("GOOGLE_ALLOW_HTTP",),
        "service_account": ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH"),
        "service_account_key": ("GOOGLE_SERVICE_ACCOUNT_KEY",),
        "application_credentials": ("GOOGLE_APPLICATION_CREDENTIALS",),
        "bearer_token": ("GOOGLE_BEARER_TOKEN",),
    }
    keys: ClassVar[tuple[str, ...]] = (
        "service_account",
        "service_account_key",
        "application_credentials",
        "bearer_token",
    )
    usual: ClassVar[str] = "Google Cloud Storage"

    service_account: str | None = None
    service_account_key: str | None = Field(default=None, repr=False)
    application_credentials: str | None = None
    bearer_token: str | None = Field(default=None, repr=False)

    def _check_keys(self) -> None:
        if sum(getattr(self, name) is not None for name in self.keys) > 1:
            raise invalid(f"one of {', '.join(self.keys)} is given, not several")
        if self.service_account_key is not None:
            try:
                key = str(json.loads(self.service_account_key)["private_key"])
                keep({"private_key": [key, *key.splitlines()[1:-1]]})
            except (ValueError, KeyError, TypeError):
                raise invalid("service_account_key is the JSON of a service account's key, with private_key") from None


_CAUSES: Final[tuple[Cause, ...]] = (
    (
        r"NoSuchBucket|The specified bucket does not exist",
        "FILESYSTEM_ERROR",
        "there is no bucket '{bucket}'. Make it, or correct the name or the endpoint.",
    ),
    (
        (
            r"InvalidSecurity|AuthenticationRequired|401 Unauthorized|Unauthenticated|invalid_grant"
            r"|SignatureDoesNotMatch|service account (?:file|key)|private key|Error reading pem|JWT"
            r"|InvalidToken|ExpiredToken"
        ),
        "PERMISSION_DENIED",
        (
            "the key was refused, or cannot be read. Correct service_account, service_account_key or bearer_token in "
            "storage_options, or the file that GOOGLE_APPLICATION_CREDENTIALS names."
        ),
    ),
    (
        r"metadata\.google\.internal|169\.254\.169\.254|instance metadata|getting token|token request",
        "PERMISSION_DENIED",
        (
            "no credentials were found. Give service_account or service_account_key in storage_options, set "
            "GOOGLE_APPLICATION_CREDENTIALS, or say anonymous=True for a public bucket."
        ),
    ),
)


class Gcs(StoreKind[GcsOptions]):
    """The kind of stores ``gs://bucket``."""

    name: ClassVar[str] = "Google Cloud Storage"
    scheme: ClassVar[str] = "gs"
    schemes: ClassVar[tuple[str, ...]] = ("gs", "gcs")
    hadoop_scheme: ClassVar[str] = "gs"
    example: ClassVar[str] = "gs://bucket/path"
    options: ClassVar[type[StoreOptions]] = GcsOptions
    obstore_class: ClassVar[str] = "GCSStore"
    causes: ClassVar[tuple[Cause, ...]] = _CAUSES
    spark: ClassVar[SparkRequirements] = SparkRequirements(
        packages=(_CONNECTOR,),
        probes={"com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem": _CONNECTOR},
        jars="trinity.storage/gcs.jars",
    )
    deletes_others: ClassVar[bool] = False  # each deletion is its own request, and a missing object ends them
    pyiceberg_prefix: ClassVar[str] = "gcs."

    def authority(self, text: str) -> str | None:
        return text if _BUCKET.fullmatch(text) else None

    def client_options(self, store: str, options: GcsOptions) -> Mapping[str, Any]:
        return {
            "base_url": options.endpoint.rstrip("/") if options.endpoint else None,
            "service_account": options.service_account,
            "service_account_key": options.service_account_key,
            "application_credentials": options.application_credentials,
            "bearer_token": options.bearer_token,
            "skip_signature": options.anonymous or None,
        }

    def hadoop_settings(self, store: str, options: GcsOptions) -> Mapping[str, str]:
        found = {f"fs.gs.auth.{name}": value for name, value in _keys(options).items()}
        # Hadoop itself knows the scheme only if the JAR was there when it first looked for file systems
        return {**found, **_IMPLEMENTATION, "fs.gs.storage.root.url": f"{(options.endpoint or _SERVICE).rstrip('/')}/"}

    def hadoop_patience(self, store: str) -> Mapping[str, str]:
        return _PATIENCE


def _keys(options: GcsOptions) -> dict[str, str]:
    """Return the key as settings of Google's connector for Hadoop."""
    if options.service_account_key or options.bearer_token:
        what = "service_account_key" if options.service_account_key else "bearer_token"
        raise TrinityError(
            "NOT_SUPPORTED",
            f"storage_options: Google's connector for Hadoop, which Spark reads by, knows no {what}. Give "
            "service_account, the path of the key's file, which is to be on each of Spark's machines.",
        )
    if options.anonymous:
        return {"type": "UNAUTHENTICATED"}
    file = options.service_account or options.application_credentials
    option = "service_account" if options.service_account else "application_credentials"
    if not file:
        return {"type": "APPLICATION_DEFAULT"}
    try:
        found = json.loads(Path(file).read_bytes())
        kind = str(found.get("type", "service_account"))
        if kind == "authorized_user":
            secrets = {f"{part}.{name}": str(found[f"{part}_{name}"]) for part, name in _USER}
            keep(secrets)
            return {"type": "USER_CREDENTIALS", **secrets}
        called, setting = _KINDS[kind]
    except (OSError, ValueError, AttributeError, KeyError):
        raise TrinityError(
            "CONFIGURATION_INVALID",
            f"storage_options: {option} names no file of Google's credentials that can be read: the key of a service "
            "account, a workload's identity, or what gcloud auth application-default login writes.",
        ) from None
    return {"type": called, setting: file}
