"""Containers of Azure Blob Storage and Data Lake Storage: objects of one account, by the Blob API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple
from urllib.parse import urlsplit

from pydantic import Field

from trinity.errors import TrinityError
from trinity.spi import SparkRequirements
from trinity.storage.store_kind import Cause, StoreKind
from trinity.storage.store_options import StoreOptions, invalid

_AUTHORITY: Final = re.compile(
    r"(?P<container>\$?[a-z0-9](?:-?[a-z0-9]){2,62})@(?P<account>[a-z0-9]{3,24})\.(?:dfs|blob)\.(?P<cloud>[a-z0-9.-]{3,100})"
)
_HADOOP_AZURE: Final = "org.apache.hadoop:hadoop-azure:3.4.2"
_LOGIN: Final = "https://login.microsoftonline.com"
_PLAIN: Final = {
    "fs.abfss.impl": "org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem",
    "fs.azure.always.use.https": "false",
}
_PATIENCE: Final = {  # milliseconds; at most five attempts, each of four seconds without an answer
    "io.retry.max.retries": "4",
    "io.retry.min.backoff.interval": "500",
    "io.retry.backoff.interval": "500",
    "io.retry.max.backoff.interval": "3000",
    "http.read.timeout": "4000",
}
_OAUTH: Final = "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider"


class AzureOptions(StoreOptions):
    """Options of an Azure container; the location names the account.

    Without a key the environment applies: ``AZURE_STORAGE_ACCOUNT_KEY`` and the like, a client secret, a workload
    identity, the machine's identity.

    Attributes:
        endpoint: URL of the account's Blob service, if not ``https://<account>.blob.core.windows.net``.
        account_key: the account's key.
        sas_token: a shared access signature.
        tenant_id: a service principal of Entra, with ``client_id`` and ``client_secret``.
        client_id: see ``tenant_id``.
        client_secret: see ``tenant_id``.
        token: a bearer token, which is not renewed.
        allow_http: True to allow an endpoint without TLS.
        anonymous: True to read a public container without a key.
    """

    prefix: ClassVar[re.Pattern[str]] = re.compile(r"^(azure_storage_|azure_|adls\.)")
    aliases: ClassVar[Mapping[str, str]] = {
        "access_key": "account_key",
        "sas_key": "sas_token",
        "bearer_token": "token",
        "skip_signature": "anonymous",
        "endpoint_url": "endpoint",
    }
    environment: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "endpoint": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
        "allow_http": ("AZURE_ALLOW_HTTP",),
        "account_key": ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_MASTER_KEY"),
        "sas_token": ("AZURE_STORAGE_SAS_KEY", "AZURE_STORAGE_SAS_TOKEN"),
        "tenant_id": ("AZURE_STORAGE_TENANT_ID", "AZURE_TENANT_ID"),
        "client_id": ("AZURE_STORAGE_CLIENT_ID", "AZURE_CLIENT_ID"),
        "client_secret": ("AZURE_STORAGE_CLIENT_SECRET", "AZURE_CLIENT_SECRET"),
        "token": ("AZURE_STORAGE_TOKEN",),
    }
    keys: ClassVar[tuple[str, ...]] = ("account_key", "sas_token", "tenant_id", "client_id", "client_secret", "token")
    usual: ClassVar[str] = "Azure"

    account_key: str | None = Field(default=None, repr=False)
    sas_token: str | None = Field(default=None, repr=False)
    tenant_id: str | None = None
    client_id: str | None = None
    client_secret: str | None = Field(default=None, repr=False)
    token: str | None = Field(default=None, repr=False)

    @property
    def way(self) -> str | None:
        """The way to sign requests, by obstore's name for it; None without a key. The options have to be resolved."""
        ways = {
            "bearer_token": self.token,
            "access_key": self.account_key,
            "client_secret": self.client_secret,
            "sas_token": self.sas_token,
        }
        return next((way for way, key in ways.items() if key), None)

    def _check_keys(self) -> None:
        principal = [self.tenant_id, self.client_id, self.client_secret]
        if any(principal) and not all(principal):
            raise invalid("tenant_id, client_id and client_secret are given together, or none of them")
        if sum(map(bool, (self.account_key, self.sas_token, self.client_secret, self.token))) > 1:
            raise invalid("one of account_key, sas_token, client_secret and token is given, not several")


_CAUSES: Final[tuple[Cause, ...]] = (
    (
        r"ContainerNotFound|FilesystemNotFound|ContainerBeingDeleted|ContainerDisabled",
        "FILESYSTEM_ERROR",
        "there is no container '{bucket}'. Make it, or correct the name, the account or the endpoint.",
    ),
    (
        r"ExpiredAuthenticationToken|Signature not valid in the specified time frame|token (?:is|has) expired",
        "PERMISSION_DENIED",
        "the credentials have expired. Connect again with new ones.",
    ),
    (
        (
            r"AuthenticationFailed|InvalidAuthenticationInfo|AuthorizationFailure|Invalid Access Key|Unauthenticated"
            r"|401 Unauthorized|InvalidAccessKey|invalid_client|AADSTS\d+"
        ),
        "PERMISSION_DENIED",
        (
            "the key was refused. Correct account_key, sas_token or client_secret in storage_options, or in "
            "AZURE_STORAGE_ACCOUNT_KEY and its like."
        ),
    ),
    (
        r"NoAuthenticationInformation|PublicAccessNotPermitted",
        "PERMISSION_DENIED",
        "the container is not public. Give account_key, sas_token or a client's secret in storage_options.",
    ),
    (
        r"instance metadata|169\.254\.169\.254|metadata endpoint|TokenRequest|azure cli",
        "PERMISSION_DENIED",
        (
            "no credentials were found. Give account_key, sas_token or a client's secret in storage_options, set "
            "AZURE_STORAGE_ACCOUNT_KEY, or say anonymous=True for a public container."
        ),
    ),
)


class _Account(NamedTuple):
    container: str
    name: str
    cloud: str

    @property
    def host(self) -> str:
        """The account's host name in Hadoop."""
        return f"{self.name}.dfs.{self.cloud}"


class Azure(StoreKind[AzureOptions]):
    """The kind of stores ``abfss://container@account.dfs.core.windows.net``."""

    name: ClassVar[str] = "Azure"
    container: ClassVar[str] = "container"
    scheme: ClassVar[str] = "abfss"
    schemes: ClassVar[tuple[str, ...]] = ("abfss", "abfs", "wasbs", "wasb")
    hadoop_scheme: ClassVar[str] = "abfss"
    example: ClassVar[str] = "abfss://container@account.dfs.core.windows.net/path"
    options: ClassVar[type[StoreOptions]] = AzureOptions
    obstore_class: ClassVar[str] = "AzureStore"
    causes: ClassVar[tuple[Cause, ...]] = _CAUSES
    at_once: ClassVar[int] = 256
    spark: ClassVar[SparkRequirements] = SparkRequirements(
        packages=(_HADOOP_AZURE,),
        settings={  # excludes what Spark has itself, or what only the older driver for wasb: needs
            "spark.jars.excludes": "com.microsoft.azure:azure-storage,com.fasterxml.jackson.core:*,"
            "org.apache.httpcomponents:*,org.slf4j:slf4j-api,commons-codec:commons-codec,commons-logging:commons-logging"
        },
        probes={"org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem": _HADOOP_AZURE},
        jars="trinity.storage/azure.jars",
    )
    pyiceberg_prefix: ClassVar[str] = "adls."

    def authority(self, text: str) -> str | None:
        found = _AUTHORITY.fullmatch(text)
        return f"{found['container']}@{found['account']}.dfs.{found['cloud']}" if found else None

    def bucket(self, store: str) -> str:
        return _account(store).container

    def client_options(self, store: str, options: AzureOptions) -> Mapping[str, Any]:
        account = _account(store)
        return {
            "account_name": account.name,
            "endpoint": options.endpoint or f"https://{account.name}.blob.{account.cloud}",
            "account_key": options.account_key,
            "sas_key": options.sas_token,
            "tenant_id": options.tenant_id,
            "client_id": options.client_id,
            "client_secret": options.client_secret,
            "token": options.token,
            "skip_signature": options.anonymous or None,
            "credential_type": options.way,  # so that other keys in the environment do not count
        }

    def hadoop_settings(self, store: str, options: AzureOptions) -> Mapping[str, str]:
        account = _account(store)
        found = {**_keys(options), **_address(account, options)}
        return {f"fs.azure.{name}.{account.host}": value for name, value in found.items()}

    def hadoop_patience(self, store: str) -> Mapping[str, str]:
        return {f"fs.azure.{name}.{_account(store).host}": value for name, value in _PATIENCE.items()}

    def hadoop_needs(self, options: AzureOptions) -> Mapping[str, str]:
        # without TLS ABFS needs settings that hold for all accounts
        return _PLAIN if (options.endpoint or "").startswith("http://") else {}


def _account(store: str) -> _Account:
    found = _AUTHORITY.fullmatch(store.partition("://")[2])
    assert found is not None
    return _Account(found["container"], found["account"], found["cloud"])


def _keys(options: AzureOptions) -> dict[str, str]:
    """Return the key as settings of ABFS."""
    if options.anonymous or options.token:
        what = "anonymous" if options.anonymous else "token"
        raise TrinityError(
            "NOT_SUPPORTED",
            f"storage_options: Hadoop's file system for Azure, which Spark reads by, knows no {what}. Give "
            "account_key, sas_token, or tenant_id with client_id and client_secret.",
        )
    match options.way:
        case "access_key":
            return {"account.auth.type": "SharedKey", "account.key": str(options.account_key)}
        case "sas_token":
            return {"account.auth.type": "SAS", "sas.fixed.token": str(options.sas_token).removeprefix("?")}
        case "client_secret":
            return {
                "account.auth.type": "OAuth",
                "account.oauth.provider.type": _OAUTH,
                "account.oauth2.client.endpoint": f"{_LOGIN}/{options.tenant_id}/oauth2/token",
                "account.oauth2.client.id": str(options.client_id),
                "account.oauth2.client.secret": str(options.client_secret),
            }
    return {}  # Spark's own configuration applies, such as the machine's identity


def _address(account: _Account, options: AzureOptions) -> dict[str, str]:
    """Return the endpoint as settings of ABFS; none for Azure's own endpoint, which the location names."""
    if options.endpoint is None:
        return {}
    parts = urlsplit(options.endpoint)
    if parts.hostname in {f"{account.name}.{api}.{account.cloud}" for api in ("blob", "dfs")}:
        return {}
    if parts.path.strip("/") != account.name:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"storage_options: Hadoop's file system for Azure, which Spark reads by, cannot be sent to '"
            f"{options.endpoint}': it knows the account's own host, and http://host:port/{account.name}.",
        )
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return {
        "abfs.endpoint": f"{parts.hostname}:{port}",
        # an emulator has only the Blob API
        "account.hns.enabled": "false",
        "fns.account.service.type": "BLOB",
        "ingress.service.type": "BLOB",
    }
