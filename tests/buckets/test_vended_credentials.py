"""Iceberg tables with temporary credentials from their REST catalog, each for the place of one table."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import trinity
from tests.support.bucket_lake import COLUMNS, ROWS, objects, stored
from tests.support.fault_proxy import Request
from tests.support.object_store import ObjectServer, key_of
from tests.support.refusals import refusal
from tests.support.rest_catalog import running_rest_catalog
from trinity import Session, Table
from trinity.storage import ObjectStore

if TYPE_CHECKING:
    from tests.support.vending import Vending

pytestmark = pytest.mark.full  # the server is Java's


@pytest.fixture(autouse=True)
def no_other_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def s3(vending: Vending, place: str) -> Iterator[Session]:
    with trinity.connect(catalogs={"lake": vending.settings(place)}) as session:
        yield session


def with_two_more(table: Table) -> Table:
    """Append two rows to a table, and return it."""
    assert table.append(ROWS).rows == 2
    return table


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "in the configuration"])
def test_a_table_is_made_written_and_dropped(
    s3: Session, vending: Vending, object_server: ObjectServer, place: str, listed: bool
) -> None:
    vending.listed = listed
    table = with_two_more(s3.create_table("t", COLUMNS))
    assert with_two_more(table).splits().version == 3
    assert len(stored(object_server, table)) == 4
    assert {"create", "load"} <= set(vending.ways)
    s3.drop_table("t")
    assert objects(object_server, place) == []


def test_credentials_are_for_one_tables_place(s3: Session, vending: Vending, object_server: ObjectServer) -> None:
    """The store allows nothing outside of it; the table beside has credentials of its own."""
    first, second = with_two_more(s3.create_table("a", COLUMNS)), with_two_more(s3.create_table("b", COLUMNS))
    with_two_more(first)
    assert (len(stored(object_server, first)), len(stored(object_server, second))) == (4, 2)
    message = refusal("PERMISSION_DENIED", lambda: ObjectStore(first.location).get(f"{second.location}/metadata/x"))
    assert "the catalog hands out" in message


def used(requests: list[Request]) -> set[str]:
    """Return the temporary access keys that signed the requests. The catalog's own are left out."""
    return {key_of(request) for request in requests if key_of(request).startswith("ASIA")}


def test_credentials_are_used_while_they_hold(s3: Session, vending: Vending, object_server: ObjectServer) -> None:
    """Each load of the table hands out new credentials; clients with older ones continue."""
    table = with_two_more(s3.create_table("t", COLUMNS))
    given = len(vending.handed)
    with object_server.proxy.counting() as requests:
        with_two_more(with_two_more(table))
    assert len(used(requests)) == 1
    assert len(vending.handed) > given
    assert "alone" not in vending.ways


@pytest.mark.parametrize("alone", [True, False], ids=["alone", "with the table"])
def test_credentials_that_end_are_renewed(
    vending: Vending, object_server: ObjectServer, place: str, caplog: pytest.LogCaptureFixture, alone: bool
) -> None:
    vending.asked_alone, vending.left_ms = alone, 0
    with trinity.connect(catalogs={"lake": vending.settings(place)}) as session:
        table = with_two_more(session.create_table("t", COLUMNS))
        with object_server.proxy.counting() as requests:
            with_two_more(table)
        assert len(used(requests)) > 1
        assert ("alone" in vending.ways) is alone
        vending.broken = True
        assert "'lake'" in refusal("PERMISSION_DENIED", lambda: ObjectStore(table.location).list())
        vending.broken = False
        assert with_two_more(table).splits().version == 4
    assert [secret for secret in vending.secrets if secret in caplog.text] == []


@pytest.mark.parametrize("alone", [True, False], ids=["alone", "with the table"])
def test_credentials_that_are_refused_in_the_middle_are_renewed_once(
    vending: Vending, object_server: ObjectServer, place: str, alone: bool
) -> None:
    """At one request of an append after the other, the store refuses all credentials handed out until then."""
    vending.asked_alone = alone
    with trinity.connect(catalogs={"lake": vending.settings(place)}) as session:
        table = session.create_table("t", COLUMNS)
        number, done = 0, False
        while not done:
            with vending.refusing(at=number) as refused:
                with_two_more(table)
            number, done = number + 1, not refused
        assert number > 5
        assert len(stored(object_server, table)) == 2 * number
        table.vacuum("0 seconds")


def test_credentials_that_the_store_goes_on_to_refuse(s3: Session, vending: Vending) -> None:
    table = with_two_more(s3.create_table("t", COLUMNS))
    version = table.splits().version
    with vending.refusing(all_of_them=True):
        message = refusal("PERMISSION_DENIED", lambda: table.append(ROWS))
    assert table.location in message
    assert "the catalog hands out" in message
    assert [secret for secret in vending.secrets if secret in message] == []
    assert table.splits().version == version


@pytest.mark.parametrize(
    ("config", "code"), [({}, "PERMISSION_DENIED"), ({"s3.remote-signing-enabled": "true"}, "NOT_SUPPORTED")]
)
def test_a_catalog_that_hands_out_no_credentials(
    s3: Session, vending: Vending, config: dict[str, str], code: str
) -> None:
    table = with_two_more(s3.create_table("t", COLUMNS))
    vending.instead = config
    for call in (table.splits, lambda: s3.create_table("u", COLUMNS)):
        message = refusal(code, call)
        assert "'lake' hands out no keys for table 'default." in message


def test_credentials_stand_nowhere(s3: Session, vending: Vending, object_server: ObjectServer, place: str) -> None:
    table = with_two_more(s3.create_table("t", COLUMNS))
    lake = s3.connector("lake")
    shown = [repr(lake), repr(vars(lake)), repr(table), repr(table.handle), repr(table.splits())]
    kept = [object_server.files.open_input_stream(name).read() for name in objects(object_server, place)]
    assert len(kept) > 5
    assert [s for s in vending.secrets for text in shown if s in text] == []
    assert [s for s in vending.secrets for data in kept if s.encode() in data] == []
    assert [s for s in vending.secrets if s.encode() in pickle.dumps(table.handle)] == []


def test_a_catalog_that_chooses_the_place(rest_catalog_jars: Path, object_server: ObjectServer, place: str) -> None:
    """The warehouse is a name, as in most catalogs that hand out credentials."""
    from tests.support.vending import running_vending  # as in conftest.py

    with (
        running_rest_catalog(rest_catalog_jars, object_server.options, place) as address,
        running_vending(address, object_server) as vending,
        trinity.connect(catalogs={"lake": vending.settings("lake")}) as session,
    ):
        table = with_two_more(session.create_table("t", COLUMNS))
        assert table.location.startswith(place)
        assert len(stored(object_server, table)) == 2
        session.drop_table("t")
        assert objects(object_server, place) == []
