"""A REST catalog that vends credentials: Iceberg's own server, behind a proxy that adds those of an STS to its answers.

The credentials are the object server's: temporary ones with a session token, for the place of one table only.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import boto3

from tests.support.fault_proxy import Answer, Proxy, Request, running_proxy
from tests.support.object_store import ROLE, ObjectServer, key_of

_HOUR_MS: Final = 3_600_000
_CREDENTIALS: Final = "/credentials"
_ENDPOINT: Final = "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials"


@dataclass
class Vending:
    """An Iceberg REST catalog that hands out temporary credentials.

    Attributes:
        store: the object store.
        address: the catalog's address.
        listed: True where credentials are listed by prefix, False where they are in the table's configuration.
        asked_alone: whether credentials have an endpoint of their own.
        left_ms: the lifetime that the catalog announces for credentials; None for no announcement.
        handed: the credentials that were handed out, the oldest first: access key id, secret and token.
        refused: the access key ids that the store no longer accepts.
        broken: whether the catalog refuses every request.
        instead: a configuration of tables that has no credentials, used instead of one that has.
        ways: the ways in which credentials were requested.
    """

    store: ObjectServer = field(repr=False)
    address: str = ""
    listed: bool = True
    asked_alone: bool = True
    left_ms: int | None = _HOUR_MS
    handed: list[dict[str, str]] = field(default_factory=list, repr=False)
    refused: set[str] = field(default_factory=set)
    broken: bool = False
    instead: dict[str, str] | None = None
    ways: list[str] = field(default_factory=list)
    _places: dict[str, str] = field(default_factory=dict)

    def settings(self, place: str, **options: Any) -> dict[str, Any]:
        """Return the settings of a catalog without any credential of its own."""
        known = {name: self.store.options[name] for name in ("endpoint", "region", "allow_http")}
        return {
            "connector": "iceberg",
            "type": "rest",
            "uri": self.address,
            "warehouse": place,
            "header.X-Iceberg-Access-Delegation": "vended-credentials",
            "storage_options": {**known, **options},
        }

    @property
    def secrets(self) -> list[str]:
        """The secrets and tokens that must not appear in any output."""
        return [credential[name] for credential in self.handed for name in ("SecretAccessKey", "SessionToken")]

    @contextlib.contextmanager
    def refusing(self, at: int = 0, *, all_of_them: bool = False) -> Iterator[list[Request]]:
        """Let the store refuse, from one of their requests on, the credentials that were handed out by then.

        Yield the refused requests.

        Args:
            at: the number of that request, from 0.
            all_of_them: whether credentials that are handed out later are refused, too.
        """
        config: list[Request] = []
        seen: list[Request] = []

        def refuses(request: Request, ask: Any) -> Answer | None:
            if key_of(request) not in {credential["AccessKeyId"] for credential in self.handed}:
                return None
            seen.append(request)
            if all_of_them or len(seen) == at + 1:
                self.refused |= {credential["AccessKeyId"] for credential in self.handed}
            if key_of(request) not in self.refused:
                return None
            config.append(request)
            return Answer(403, b"<Error><Code>ExpiredToken</Code><Message>The token has expired.</Message></Error>")

        with self.store.proxy.faulty(refuses):
            yield config

    def answer(self, request: Request, ask: Any) -> Answer | None:
        """Return the catalog's answer, with credentials where they are requested."""
        path = request.path.partition("?")[0]
        if self.broken:
            return _json({"error": {"message": "no", "type": "ForbiddenException", "code": 403}}, 403)
        if path.endswith(_CREDENTIALS):
            self.ways.append("alone")
            place = self._places.get(path.removesuffix(_CREDENTIALS))
            if place is None:
                return _json({"error": {"message": "no", "type": "NoSuchTableException", "code": 404}}, 404)
            return _json({"storage-credentials": [{"prefix": place, "config": self._credential(place)}]})
        wanted = request.headers.get("x-iceberg-access-delegation") == "vended-credentials"
        is_load = request.method in ("GET", "POST") and "/tables" in path and wanted
        if not is_load and not path.endswith("/config"):
            return None
        answer = _plain(ask())
        if answer.status != 200:
            return answer
        found = json.loads(answer.body)
        if path.endswith("/config"):
            if self.asked_alone:
                found["endpoints"].append(_ENDPOINT)
        elif "metadata" in found and (request.method == "GET" or path.endswith("/tables")):
            self._add(request, path, found)
        return Answer(200, json.dumps(found).encode(), answer.headers)

    def _add(self, request: Request, path: str, found: dict[str, Any]) -> None:
        self.ways.append("load" if request.method == "GET" else "create")
        place = found["metadata"]["location"]
        if request.method == "GET":
            self._places[path] = place
        if self.instead is not None:
            found["config"] = {**found.get("config", {}), **self.instead}
        elif self.listed:
            found["storage-credentials"] = [{"prefix": place, "config": self._credential(place)}]
        else:
            found["config"] = {**found.get("config", {}), **self._credential(place)}

    def _credential(self, place: str) -> dict[str, str]:
        credential = credential_of(self.store, place)
        self.handed.append(credential)
        config = {} if self.left_ms is None else {"s3.session-token-expires-at-ms": str(_now_ms() + self.left_ms)}
        return {
            "s3.access-key-id": credential["AccessKeyId"],
            "s3.secret-access-key": credential["SecretAccessKey"],
            "s3.session-token": credential["SessionToken"],
            **config,
        }


def credential_of(store: ObjectServer, place: str) -> dict[str, str]:
    """Get a new temporary credential of a server for one place: an access key id, its secret, and a token."""
    client = boto3.client(
        "sts",
        endpoint_url=store.options["endpoint"],
        region_name="us-east-1",
        aws_access_key_id=store.options["access_key_id"],
        aws_secret_access_key=store.options["secret_access_key"],
    )
    policy = json.dumps(_only(place.removeprefix("s3://")))
    answer = client.assume_role(RoleArn=ROLE, RoleSessionName="table", Policy=policy, DurationSeconds=3600)
    return {name: str(value) for name, value in answer["Credentials"].items()}


def _only(place: str) -> dict[str, Any]:
    bucket, _, prefix = place.partition("/")
    objects = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"]
    return {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": objects, "Resource": f"arn:aws:s3:::{bucket}/{prefix}/*"},
            {
                "Effect": "Allow",
                "Action": "s3:ListBucket",
                "Resource": f"arn:aws:s3:::{bucket}",
                "Condition": {"StringLike": {"s3:prefix": [f"{prefix}/*", prefix]}},
            },
        ],
    }


def _plain(answer: Answer) -> Answer:
    headers = {name.lower(): value for name, value in answer.headers}
    body = gzip.decompress(answer.body) if headers.pop("content-encoding", "") == "gzip" else answer.body
    headers.pop("content-length", None)
    return Answer(answer.status, body, tuple(headers.items()))


def _json(found: Any, status: int = 200) -> Answer:
    return Answer(status, json.dumps(found).encode(), (("content-type", "application/json"),))


def _now_ms() -> int:
    return int(time.time() * 1000)


@contextlib.contextmanager
def running_vending(catalog: str, store: ObjectServer) -> Iterator[Vending]:
    """Start a proxy before a catalog; stop it at the end of the block.

    Args:
        catalog: the catalog's address.
        store: the object store.
    """
    proxy: Proxy
    with running_proxy(int(catalog.rpartition(":")[2])) as proxy:
        made = Vending(store, f"http://127.0.0.1:{proxy.port}")
        with proxy.faulty(made.answer):
            yield made
