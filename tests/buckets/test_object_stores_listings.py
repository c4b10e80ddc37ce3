"""Tables in a bucket whose listings lag: objects that they do not show yet are not lost, made twice, or overwritten."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.support.bucket_lake import COLUMNS, ROWS, BucketLake, bucket_lake, stored
from tests.support.fault_proxy import Answer, Proxy, Request
from tests.support.object_store import ObjectServer
from tests.support.refusals import refusal
from trinity import Session, Table


@pytest.fixture(params=["parquet", "delta"])
def cloud(request: pytest.FixtureRequest, object_server: ObjectServer, bucket: str) -> BucketLake:
    """Return a catalog that finds names, and versions of tables, by listing."""
    return bucket_lake(str(request.param), object_server, bucket, {})


@contextmanager
def lagging(proxy: Proxy, hidden: str, *, conflicts: int = 1) -> Iterator[list[str]]:
    """Hide objects of matching keys from listings until puts were refused because of them. Yield the hidden keys."""
    left_out: list[str] = []
    refused: list[Request] = []

    def lags(request: Request, ask: Callable[[], Answer]) -> Answer | None:
        answer = ask()
        if request.conditional and answer.status == 412 and re.search(hidden, request.path):
            refused.append(request)
        if request.method != "GET" or "list-type=2" not in request.path or len(refused) >= conflicts:
            return answer

        def shown(found: re.Match[bytes]) -> bytes:
            [key] = re.findall(r"<Key>(.*?)</Key>", found[0].decode())
            if not re.search(hidden, key):
                return found[0]
            left_out.append(key)
            return b""

        body = re.sub(rb"<Contents>.*?</Contents>", shown, answer.body, flags=re.DOTALL)
        headers = tuple(one for one in answer.headers if one[0].lower() != "content-length")
        return Answer(answer.status, body, headers)

    with proxy.faulty(lags):
        yield left_out


def version(number: int) -> str:
    """Return a pattern of the keys of a version's metadata."""
    return rf"/{number:020d}\."


@pytest.mark.parametrize("conflicts", [1, 3])
def test_a_commit_that_no_listing_shows_is_not_put_over(
    plain: Table, cloud: BucketLake, object_server: ObjectServer, conflicts: int
) -> None:
    plain.append(ROWS)
    with cloud.connect() as other:
        other.table("plain").append(ROWS)
    with lagging(object_server.proxy, version(2), conflicts=conflicts) as left_out:
        assert plain.append(ROWS).version == 3
    assert left_out
    assert len(stored(object_server, plain)) == 6


def test_a_transaction_that_no_listing_shows_is_not_made_twice(
    plain: Table, cloud: BucketLake, object_server: ObjectServer
) -> None:
    plain.append(ROWS)
    with cloud.connect() as other:
        other.table("plain").append(ROWS, txn=("app", 1))
    with lagging(object_server.proxy, version(2)) as left_out:
        assert plain.append(ROWS, txn=("app", 1)).skipped
    assert left_out
    assert len(stored(object_server, plain)) == 4


def test_a_reader_that_is_shown_an_older_version_reads_it_whole(
    plain: Table, cloud: BucketLake, object_server: ObjectServer
) -> None:
    plain.append(ROWS)
    plain.append(ROWS)
    with cloud.connect() as fresh, lagging(object_server.proxy, version(2)) as left_out:
        found = fresh.table("plain")
        assert found.splits().version == 1
        assert len(stored(object_server, found)) == 2
    assert left_out
    assert plain.splits().version == 2


def test_a_name_that_no_listing_shows_is_taken(s3: Session, cloud: BucketLake, object_server: ObjectServer) -> None:
    """The table that has the name stays untouched."""
    plain = s3.create_table("plain", COLUMNS)
    plain.append(ROWS)
    with cloud.connect() as other, lagging(object_server.proxy, "_trinity/tables/.*/plain/") as left_out:
        refusal("TABLE_ALREADY_EXISTS", lambda: other.create_table("plain", COLUMNS))
    assert left_out
    assert s3.table("plain").location == plain.location
    assert len(stored(object_server, plain)) == 2


def test_a_vacuum_keeps_what_listings_do_not_show_yet(
    plain: Table, cloud: BucketLake, object_server: ObjectServer
) -> None:
    plain.append(ROWS)
    with cloud.connect() as other:
        other.table("plain").append(ROWS)
    with lagging(object_server.proxy, version(2)):
        plain.vacuum("1 hour")
    assert len(stored(object_server, plain)) == 4
    assert plain.append(ROWS).rows == 2
