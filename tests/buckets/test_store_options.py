"""Options of object stores, of each kind: which there are, which are refused, and which the environment sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import trinity
from tests.support.refusals import refusal
from trinity.storage import Location
from trinity.storage.azure import AzureOptions
from trinity.storage.bucket_options import options_as_text
from trinity.storage.gcs import GcsOptions
from trinity.storage.s3 import S3Options
from trinity.storage.store_kinds import kind_of
from trinity.storage.store_options import StoreOptions

pytestmark = pytest.mark.inner
SECRET = "a-secret-that-nobody-is-told"
PLACES = {
    "s3": "s3://bucket/w",
    "gcs": "gs://bucket/w",
    "azure": "abfss://container@account.dfs.core.windows.net/w",
}
ACCOUNT = "fs.azure.{}.account.dfs.core.windows.net"


@pytest.fixture(autouse=True)
def _nothing_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (S3Options, GcsOptions, AzureOptions):
        for variables in kind.environment.values():
            for variable in variables:
                monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_an_unknown_option_is_refused_with_those_that_there_are(place: str) -> None:
    given: dict[str, Any] = {"anonymoos": True}

    def connect() -> object:
        return trinity.connect(catalogs={"lake": {"connector": "parquet", "warehouse": place}}, storage_options=given)

    message = refusal("CONFIGURATION_INVALID", connect)
    assert "'anonymoos'" in message
    assert "Did you mean 'anonymous'" in message
    known = kind_of(place).options
    assert f"There are: {', '.join(known.model_fields)}" in message
    given = {"endpoint": "http://somewhere:1"}
    assert "allow_http=True" in refusal("CONFIGURATION_INVALID", connect)
    given = {"endpoint": "somewhere"}
    assert "endpoint is a URL" in refusal("CONFIGURATION_INVALID", connect)


@pytest.mark.parametrize(
    ("kind", "spellings", "found"),
    [
        (S3Options, {"AWS_Access_Key_Id": "k", "s3.secret-access-key": SECRET}, {"access_key_id": "k"}),
        (GcsOptions, {"google_base_url": "https://g", "gcs.service-account-path": "/k"}, {"service_account": "/k"}),
        (AzureOptions, {"azure_storage_sas_key": SECRET, "adls.endpoint": "https://a"}, {"endpoint": "https://a"}),
        (AzureOptions, {"AZURE_STORAGE_ACCESS_KEY": SECRET}, {"account_key": SECRET}),
        (GcsOptions, {"skip_signature": "true"}, {"anonymous": True}),
    ],
)
def test_names_have_the_spellings_of_others(
    kind: type[StoreOptions], spellings: dict[str, Any], found: dict[str, Any]
) -> None:
    options = kind.of(spellings)
    assert {name: getattr(options, name) for name in found} == found
    assert SECRET not in repr(options)
    assert SECRET not in str(options)


@pytest.mark.parametrize(
    ("kind", "given", "words"),
    [
        (S3Options, {"access_key_id": "k"}, "together"),
        (GcsOptions, {"service_account": "/k", "bearer_token": SECRET}, "not several"),
        (GcsOptions, {"service_account_key": SECRET}, "with private_key"),
        (AzureOptions, {"account_key": SECRET, "sas_token": SECRET}, "not several"),
        (AzureOptions, {"client_id": "c", "tenant_id": "t"}, "together"),
    ],
)
def test_keys_that_are_none_together_are_refused(kind: type[StoreOptions], given: dict[str, Any], words: str) -> None:
    message = refusal("CONFIGURATION_INVALID", lambda: kind.of(given))
    assert words in message
    assert SECRET not in message


@pytest.mark.parametrize(
    ("kind", "variables", "found"),
    [
        (S3Options, {"AWS_ENDPOINT_URL": "http://e", "AWS_ALLOW_HTTP": "true"}, {"endpoint": "http://e"}),
        (GcsOptions, {"GOOGLE_APPLICATION_CREDENTIALS": "/f"}, {"application_credentials": "/f"}),
        (AzureOptions, {"AZURE_STORAGE_ACCOUNT_KEY": SECRET}, {"account_key": SECRET}),
    ],
)
def test_the_environment_says_what_is_left_out(
    kind: type[StoreOptions], variables: dict[str, str], found: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    options = kind().resolved()
    assert {name: getattr(options, name) for name in found} == found
    if kind.keys:  # a given key, or none, is not combined with parts of one from the environment
        given = {"sas_token": "own"} if kind is AzureOptions else {"bearer_token": "own"}
        for resolved in (kind.of(given).resolved(), kind.of({"anonymous": True}).resolved()):
            assert all(getattr(resolved, name) is None for name in found)


# -- locations --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("same", ["gs://b-1/a/c", "gcs://b-1/a/c/", "gs:/b-1/a/c", "gs://b-1//a/./c"])
def test_buckets_of_google_have_one_normal_form(same: str) -> None:
    location = Location.of(same)
    assert (str(location), location.bucket, location.key) == ("gs://b-1/a/c", "b-1", "a/c")
    assert (location.for_spark, location.for_arrow) == ("gs://b-1/a/c", "b-1/a/c")


@pytest.mark.parametrize("scheme", ["abfss", "abfs", "wasbs"])
@pytest.mark.parametrize("api", ["dfs", "blob"])
def test_containers_of_azure_have_one_normal_form(scheme: str, api: str) -> None:
    location = Location.of(f"{scheme}://data@account.{api}.core.windows.net/a b/100%/")
    assert str(location) == "abfss://data@account.dfs.core.windows.net/a b/100%"
    assert (location.bucket, location.key, location.for_arrow) == ("data", "a b/100%", "data/a b/100%")
    assert location.for_spark == str(location)
    assert location.uri == "abfss://data@account.dfs.core.windows.net/a%20b/100%25"
    assert Location.of_uri(location.uri) == Location.of(str(location)) == location
    assert location.parent.relative(location) == "100%"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gs://", "gs://bucket/path"),
        ("gs://UPPER/a", "gs://bucket/path"),
        ("abfss://container/a", "abfss://container@account.dfs.core.windows.net/path"),
        ("abfss://container@account.example.com/a", "names no container"),
        ("wasbs://UP@account.blob.core.windows.net/a", "names no container"),
    ],
)
def test_what_names_no_bucket_is_refused(text: str, words: str) -> None:
    assert words in refusal("CONFIGURATION_INVALID", lambda: Location.of(text))


# -- what Hadoop's file systems are told ------------------------------------------------------------------


def settings(place: str, **options: Any) -> dict[str, str]:
    kind, store = kind_of(place), Location.of(place).store
    return dict(kind.hadoop_settings(store, kind.options.of(options).resolved()))


def test_abfs_is_told_of_the_account_alone() -> None:
    found = settings(PLACES["azure"], account_key=SECRET)
    assert found == {ACCOUNT.format("account.auth.type"): "SharedKey", ACCOUNT.format("account.key"): SECRET}
    principal = settings(PLACES["azure"], tenant_id="t", client_id="c", client_secret=SECRET)
    assert principal[ACCOUNT.format("account.auth.type")] == "OAuth"
    assert "/t/oauth2/token" in principal[ACCOUNT.format("account.oauth2.client.endpoint")]
    assert settings(PLACES["azure"], sas_token="?sv=1")[ACCOUNT.format("sas.fixed.token")] == "sv=1"
    assert settings(PLACES["azure"]) == {}
    emulator = settings(PLACES["azure"], account_key=SECRET, endpoint="http://h:1/account", allow_http=True)
    assert emulator[ACCOUNT.format("abfs.endpoint")] == "h:1"
    own = settings(PLACES["azure"], account_key=SECRET, endpoint="https://account.blob.core.windows.net")
    assert own == found
    assert "'https://proxy'" in refusal("NOT_SUPPORTED", lambda: settings(PLACES["azure"], endpoint="https://proxy"))
    assert "knows no token" in refusal("NOT_SUPPORTED", lambda: settings(PLACES["azure"], token=SECRET))


def test_googles_connector_is_told_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    usual = {
        "fs.gs.storage.root.url": "https://storage.googleapis.com/",
        "fs.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
        "fs.AbstractFileSystem.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFS",
    }
    file.write_text(json.dumps({"type": "service_account"}))
    assert settings(PLACES["gcs"], service_account=str(file)) == usual | {
        "fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE",
        "fs.gs.auth.service.account.json.keyfile": str(file),
    }
    person = {"type": "authorized_user", "client_id": "i", "client_secret": SECRET, "refresh_token": "r"}
    file.write_text(json.dumps(person))
    found = settings(PLACES["gcs"], application_credentials=str(file))
    assert found["fs.gs.auth.client.secret"] == SECRET
    assert settings(PLACES["gcs"]) == usual | {"fs.gs.auth.type": "APPLICATION_DEFAULT"}
    assert settings(PLACES["gcs"], anonymous=True)["fs.gs.auth.type"] == "UNAUTHENTICATED"
    for text in ('{"type": "odd"}', "[]", "no JSON"):
        file.write_text(text)
        message = refusal("CONFIGURATION_INVALID", lambda: settings(PLACES["gcs"], service_account=str(file)))
        assert "service_account names no file" in message
    assert "knows no bearer_token" in refusal("NOT_SUPPORTED", lambda: settings(PLACES["gcs"], bearer_token=SECRET))


def test_workers_are_told_of_each_kind_of_store() -> None:
    given: dict[str, StoreOptions] = {
        "s3://b": S3Options.of({"region": "eu-west-1"}),
        "gs://b": GcsOptions.of({"anonymous": True}),
        "abfss://c@account.dfs.core.windows.net": AzureOptions.of({"account_key": SECRET}),
    }
    resolved = json.loads(options_as_text(None, given))
    assert {store: kind_of(store).options.of(options) for store, options in resolved.items()} == given
