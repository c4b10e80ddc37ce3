"""Iceberg tables of a REST catalog, Iceberg's own server: answers that are lost, and what is told of faults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import trinity
from tests.support.bucket_lake import COLUMNS, ROWS, objects, refusal, stored
from tests.support.fault_proxy import LOST, Answer, Proxy, Request, running_proxy
from tests.support.object_store import ObjectServer
from trinity import Session
from trinity.table import Table

pytestmark = pytest.mark.full


@pytest.fixture
def catalog(rest_catalog: str) -> Iterator[Proxy]:
    """What stands before the catalog's server."""
    with running_proxy(int(rest_catalog.rpartition(":")[2])) as proxy:
        yield proxy


@pytest.fixture
def settings(catalog: Proxy, place: str, object_server: ObjectServer) -> dict[str, Any]:
    address = {"type": "rest", "uri": f"http://127.0.0.1:{catalog.port}"}
    return {"connector": "iceberg", "warehouse": place, **address, "storage_options": object_server.options}


@pytest.fixture
def s3(settings: dict[str, Any]) -> Iterator[Session]:
    with trinity.connect(catalogs={"lake": settings}) as session:
        yield session


def is_commit(request: Request) -> bool:
    return request.method == "POST" and request.path.endswith("/tables/plain")


def test_a_commit_whose_answer_is_lost_is_made_once(plain: Table, catalog: Proxy, object_server: ObjectServer) -> None:
    lost: list[str] = []

    def loses(request: Request, ask: Any) -> Answer | None:
        if is_commit(request) and not lost:
            lost.append(request.path)
            ask()
            return LOST
        return None

    with catalog.faulty(loses):
        assert plain.append(ROWS).version == 2
    assert lost
    assert len(stored(object_server, plain)) == 2
    assert plain.append(ROWS).version == 3


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Answer(500, b"<html>\n<p>no</p></html>"), "FILESYSTEM_ERROR"),
        (Answer(503, b"{}"), "FILESYSTEM_ERROR"),
        (Answer(401, b"{}"), "PERMISSION_DENIED"),
        (Answer(403, b"{}"), "PERMISSION_DENIED"),
        (LOST, "FILESYSTEM_ERROR"),
    ],
    ids=["500", "503", "401", "403", "lost"],
)
def test_what_a_catalog_says_is_told_by_its_name(
    plain: Table, s3: Session, catalog: Proxy, answer: Answer, code: str
) -> None:
    calls = {
        "read": plain.splits,
        "append": lambda: plain.append(ROWS),
        "make": lambda: s3.create_table("t", COLUMNS),
        "find": lambda: s3.table("other"),
        "list": lambda: s3.list_tables("lake", "default"),
        "drop": lambda: s3.drop_table("plain"),
    }
    with catalog.faulty(lambda request, ask: answer):
        for what, call in calls.items():
            said = refusal(code, call)
            assert "'lake'" in said, what
            assert "\n" not in said, what
    assert plain.append(ROWS).rows == 2


def test_a_commit_that_the_catalog_refuses_leaves_the_table_as_it_was(
    plain: Table, catalog: Proxy, object_server: ObjectServer
) -> None:
    version = plain.append(ROWS).version
    denied = Answer(403, b'{"error": {"message": "no", "type": "ForbiddenException", "code": 403}}')
    with catalog.faulty(lambda request, ask: denied if is_commit(request) else None):
        refusal("PERMISSION_DENIED", lambda: plain.append(ROWS))
        assert plain.splits().version == version
    assert plain.append(ROWS).version == version + 1
    assert len(stored(object_server, plain)) == 4


def test_a_commit_is_refused_by_a_catalog_that_says_nothing_more(
    plain: Table, catalog: Proxy, object_server: ObjectServer
) -> None:
    """As when the token expires during a statement: the commit and the look at it are both refused."""
    refused: list[Request] = []

    def expires(request: Request, ask: Any) -> Answer | None:
        if is_commit(request) or refused:
            refused.append(request)
            return Answer(401, b'{"error": {"message": "expired", "type": "NotAuthorizedException", "code": 401}}')
        return None

    with catalog.faulty(expires):
        assert "'lake'" in refusal("PERMISSION_DENIED", lambda: plain.append(ROWS))
    assert stored(object_server, plain) == []


def test_names_are_the_catalogs(s3: Session, object_server: ObjectServer, place: str) -> None:
    metadata = s3.connector("lake").metadata
    metadata.create_schema("sales.x~ é")
    made = s3.create_table('lake."sales.x~ é"."od d"', COLUMNS)
    made.append(ROWS)
    assert metadata.list_schemas() == ["default", "sales.x~ é"]
    assert metadata.list_tables("sales.x~ é") == ["od d"]
    refusal("SCHEMA_NOT_EMPTY", lambda: metadata.drop_schema("sales.x~ é"))
    s3.drop_table('lake."sales.x~ é"."od d"')
    metadata.drop_schema("sales.x~ é")
    assert metadata.list_schemas() == ["default"]
    assert objects(object_server, place) == []


def test_a_table_that_is_made_anew_has_nothing_of_the_one_before(s3: Session, object_server: ObjectServer) -> None:
    old = s3.create_table("t", COLUMNS)
    old.append(ROWS)
    s3.drop_table("t")
    new = s3.create_table("t", COLUMNS)
    refusal("TABLE_NOT_FOUND", lambda: old.append(ROWS))
    assert stored(object_server, new) == []
