"""Temporary credentials for a place in a bucket, at the storage seam: which one is used where, and until when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.fault_proxy import Answer, Request
from tests.support.object_store import ObjectServer, key_of
from tests.support.refusals import refusal
from trinity.errors import TrinityError
from trinity.storage import Location, ObjectStore
from trinity.storage.bucket_options import learn_options
from trinity.storage.grants import Credential, grant, to_learn
from trinity.storage.parquet_files import open_parquet
from trinity.storage.s3 import S3Options

pytestmark = pytest.mark.inner
_GONE = 1
"""A time long ago, in milliseconds since the epoch."""


@dataclass(eq=False)
class Giver:
    """A catalog that hands out credentials for a place."""

    server: ObjectServer = field(repr=False)
    place: str
    expires_ms: int | None = None
    given: list[Credential] = field(default_factory=list)
    silent: bool = False

    def credentials(self) -> Sequence[Credential]:
        from tests.support.vending import credential_of

        if self.silent:
            raise TrinityError("FILESYSTEM_ERROR", "Nobody answers.")
        credential = credential_of(self.server, self.place)
        named = {
            "access_key_id": "AccessKeyId",
            "secret_access_key": "SecretAccessKey",
            "session_token": "SessionToken",
        }
        options = {**self.server.options, **{option: credential[name] for option, name in named.items()}}
        self.given.append(Credential(self.place, S3Options.of(options), self.expires_ms))
        return self.given[-1:]

    def hands_out(self, location: str | None = None) -> ObjectStore:
        """Return the store of a place whose credentials are handed out."""
        grant(Location.of(location or self.place), self.credentials(), self)
        return ObjectStore(location or self.place)


@pytest.fixture(autouse=True)
def no_other_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def giver(object_server: ObjectServer, place: str) -> Giver:
    return Giver(object_server, f"{place}/t")


def access_keys(requests: Sequence[Request]) -> list[str]:
    """Return the temporary access keys that signed the requests, without the server's first one, which issues them."""
    return [key for request in requests if (key := key_of(request)).startswith("ASIA")]


def test_a_credential_is_for_its_place_alone(giver: Giver, object_server: ObjectServer) -> None:
    store = giver.hands_out()
    neighbour = Giver(object_server, f"{giver.place}-beside").hands_out()
    for one in (store, neighbour):
        one.put_if_absent("a", b"1")
        assert [entry.path for entry in one.list() if not entry.path.startswith("_trinity/")] == ["a"]
        assert one.get("a") == b"1"
    assert "the catalog hands out" in refusal("PERMISSION_DENIED", lambda: store.get(neighbour.path("a")))


def test_the_longest_beginning_counts(giver: Giver, object_server: ObjectServer) -> None:
    deeper = Giver(object_server, f"{giver.place}/data")
    both = [*giver.credentials(), *deeper.credentials()]
    grant(Location.of(giver.place), both, giver)
    with object_server.proxy.counting() as requests:
        ObjectStore(f"{giver.place}/data").put("a", b"1")
        ObjectStore(giver.place).put("b", b"1")
    assert access_keys(requests) == [both[1].options.access_key_id, both[0].options.access_key_id]


def test_a_credential_that_holds_is_used_until_it_is_refused(giver: Giver, object_server: ObjectServer) -> None:
    store = giver.hands_out()
    store.put("a", b"1")
    giver.hands_out()
    old = giver.given[0].options.access_key_id

    def refuses(request: Request, ask: Any) -> Answer | None:
        return Answer(403, b"<Error><Code>ExpiredToken</Code></Error>") if key_of(request) == old else None

    with object_server.proxy.counting() as requests:
        store.put("b", b"2")
        with object_server.proxy.faulty(refuses):
            assert store.get("b") == b"2"
            assert store.get("a") == b"1"
    new = giver.given[-1].options.access_key_id
    assert access_keys(requests) == [old, old, new, new]
    assert len(giver.given) == 3


@pytest.mark.parametrize("silent", [False, True])
def test_a_credential_that_ends_is_renewed_before(giver: Giver, silent: bool) -> None:
    giver.expires_ms = _GONE
    store = giver.hands_out()
    giver.silent = silent
    if silent:
        assert refusal("FILESYSTEM_ERROR", lambda: store.put("a", b"1")) == "Nobody answers."
        return
    giver.expires_ms = None
    store.put("a", b"1")
    store.put("b", b"1")
    assert len(giver.given) == 2


def test_others_hand_out_other_credentials_at_once(giver: Giver, object_server: ObjectServer) -> None:
    giver.hands_out()
    other = Giver(object_server, giver.place)
    with object_server.proxy.counting() as requests:
        other.hands_out().put("a", b"1")
    assert access_keys(requests)[-1] == other.given[0].options.access_key_id


def test_files_are_opened_by_newer_credentials(giver: Giver, object_server: ObjectServer) -> None:
    store = giver.hands_out()
    path = store.path("a.parquet")
    pq.write_table(pa.table({"k": [1]}), store.location.join("a.parquet").for_arrow, filesystem=store.filesystem)
    old = giver.given[0].options.access_key_id

    def refuses(request: Request, ask: Any) -> Answer | None:
        return Answer(403, b"<Error><Code>AccessDenied</Code></Error>") if key_of(request) == old else None

    with object_server.proxy.faulty(refuses), open_parquet(path) as file:
        assert file.read().to_pydict() == {"k": [1]}


def test_what_a_worker_is_told(giver: Giver, monkeypatch: pytest.MonkeyPatch, object_server: ObjectServer) -> None:
    """A worker has only the credentials that it is sent, which open one place."""
    store = giver.hands_out()
    store.put("a", b"1")
    text = to_learn(store.location.join("a"))
    monkeypatch.setattr("trinity.storage.grants._grants", {})
    monkeypatch.setenv("TRINITY_STORAGE_OPTIONS", "{}")
    with object_server.proxy.counting() as requests:
        learn_options(text)
        assert ObjectStore(giver.place).get("a") == b"1"
    assert access_keys(requests) == [giver.given[0].options.access_key_id]
    assert str(giver.given[0].options.access_key_id) in text
