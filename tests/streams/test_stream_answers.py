"""Answers to Spark's planning processes, and the socket that carries them; without Spark."""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import trinity
from tests.support.tables import put_ids
from trinity import Column, Session, Table, TrinityError
from trinity.datasource import answers, rendezvous
from trinity.datasource.answers import answer
from trinity.datasource.rendezvous import ask

pytestmark = pytest.mark.inner


@pytest.fixture
def opened(warehouse: Path) -> Iterator[Session]:
    with trinity.connect(warehouse) as session:
        yield session


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Link this process into Spark's folder, where Spark's planning processes look for it."""
    folder = tmp_path / "blockmgr"
    folder.mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},{folder}")
    with rendezvous._lock:
        (folder / "trinity-driver-1").symlink_to(rendezvous._socket())
    return folder


@pytest.fixture(params=["parquet", "iceberg"])
def table(request: pytest.FixtureRequest, opened: Session, monkeypatch: pytest.MonkeyPatch) -> Table:
    monkeypatch.setattr(answers, "reads_all_now", lambda spark: False)
    monkeypatch.setattr(Session, "spark", None)
    return opened.create_table(
        f"{request.param}.default.t", [Column("id", "int"), Column("n", "string")], primary_key=["id"]
    )


def columns(table: Table) -> dict[str, Any]:
    return dict(
        answer(lambda: [table.session], {"ask": "columns", "table": str(table.name), "at": None, "changes": True})
    )


def offset(table: Table, start: dict[str, Any], **more: Any) -> dict[str, Any]:
    question = {"ask": "offset", "table": str(table.name), "start": start, "begun": True, "most": None, **more}
    return dict(answer(lambda: [table.session], question))


def shown(found: dict[str, Any]) -> list[str]:
    """Return the columns of an answer, with their types in Spark's JSON."""
    return [f"{field['name']} {field['type']}" for field in found["schema"]["fields"]]


def test_columns_are_those_of_a_version(table: Table) -> None:
    first = put_ids(table, 1)
    table.add_column(Column("x", "bigint"))
    found = columns(table)
    assert shown(found)[:4] == ["id integer", "n string", "x long", "_change_type string"]
    assert found["version"] == put_ids(table, 2) - 1
    at = answer(lambda: [table.session], {"ask": "columns", "table": str(table.name), "at": first, "changes": False})
    assert (shown(at), at["version"]) == (["id integer", "n string"], first)


def test_an_offset_goes_as_far_as_it_may(table: Table) -> None:
    one, two, three = put_ids(table, 1), put_ids(table, 2), put_ids(table, 3)
    start = offset(table, {"begins": "rows", "table": ""})
    assert start["version"] == three
    assert offset(table, start) == start
    behind = {"version": one, "table": start["table"]}  # as older releases wrote it
    assert offset(table, behind)["version"] == three
    assert offset(table, behind, most=1)["version"] == two
    assert offset(table, {"begins": "version", "version": two, "table": ""}, most=1)["version"] == two
    with pytest.raises(TrinityError, match=r"no version 99 to begin with; its oldest readable one is \d+"):
        offset(table, {"begins": "version", "version": 99, "table": ""})
    with pytest.raises(TrinityError, match="dropped and made anew"):
        offset(table, {**start, "table": "another"})


def test_a_query_that_reads_all_now_is_not_held_back(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    one, _, three = put_ids(table, 1), put_ids(table, 2), put_ids(table, 3)
    monkeypatch.setattr(answers, "reads_all_now", lambda spark: True)
    start = {"version": one, "table": table.definition.id}
    assert offset(table, start, most=1)["version"] == three
    # the first version was vacuumed long ago; the query is about to read its checkpoint
    long_ago = {"begins": "version", "version": 99, "table": ""}
    assert offset(table, long_ago, most=1, begun=False)["version"] == three


def test_columns_that_change_stop_a_stream_before_them(table: Table) -> None:
    start = offset(table, {"begins": "rows", "table": ""})
    known = columns(table)
    having: dict[str, Any] = {"columns": known["columns"], "of": known["version"], "chosen": False}
    before = put_ids(table, 1)
    table.add_column(Column("x", "int"))
    table.rename_column("n", "name")
    put_ids(table, 2)
    end = offset(table, start, **having)
    assert end["version"] == before
    with pytest.raises(TrinityError, match=r"'x' was added.* Load the stream again .* the same checkpoint") as raised:
        offset(table, end, **having)
    assert raised.value.code == "NOT_SUPPORTED"
    table.drop_column("x")
    table.widen_column("id", "bigint")
    newest = put_ids(table, 3)
    assert offset(table, start)["version"] == newest
    chosen = {**having, "columns": [c for c in known["columns"] if c["name"] == "id"], "chosen": True}
    assert offset(table, start, **chosen)["version"] < newest  # new columns may be missing, a wider type may not
    again = columns(table)  # the columns of a stream that is loaded again, with which older versions are read
    assert offset(table, start, columns=again["columns"], of=again["version"], chosen=False)["version"] == newest


def test_a_table_is_found_in_one_session(table: Table, warehouse: Path, tmp_path: Path) -> None:
    with trinity.connect(warehouse) as same, trinity.connect(tmp_path / "another") as other:
        question = {"ask": "columns", "table": str(table.name), "at": None, "changes": True}
        assert answer(lambda: [other, same, table.session], question)["table"] == str(table.name)
        with pytest.raises(TrinityError, match="does not exist") as raised:
            answer(lambda: [other], question)
        assert raised.value.code == "TABLE_NOT_FOUND"
        other.create_table(table.name, [Column("k", "int")])
        with pytest.raises(TrinityError, match="different tables in the open sessions"):
            answer(lambda: [other, same], question)
    with pytest.raises(TrinityError, match="no open session"):
        answer(list, question)


def test_processes_meet_over_a_socket_of_this_user_alone(driver: Path, table: Table) -> None:
    place = Path(os.readlink(driver / "trinity-driver-1"))
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    question = {"ask": "columns", "table": str(table.name), "at": None, "changes": True}
    assert ask(question) == columns(table)
    with pytest.raises(TrinityError, match="Did you mean 't'") as raised:
        ask({**question, "table": f"{table.name}t"})
    assert raised.value.code == "TABLE_NOT_FOUND"
    # the link of a process that has ended is ignored
    (driver / "trinity-driver-0").symlink_to(driver / "nothing")
    assert ask(question) == columns(table)
    trinity.connect(warehouse := driver / "another").create_table(str(table.name), [Column("k", "int")])
    assert ask(question) == columns(table), f"the session of {warehouse} was not closed, but is not used any more"
    table.session.close()
    with pytest.raises(TrinityError, match="no open session of Trinity's"):
        ask(question)


def test_whatever_comes_is_answered_by_an_error(driver: Path) -> None:
    for data in (b"\n", b"[]\n", b"{}\n", b"\xff\n", json.dumps({"ask": "rm", "table": "t"}).encode() + b"\n"):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(os.readlink(driver / "trinity-driver-1"))
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            found = json.loads(connection.makefile("rb").readline())
        assert found["error"]["code"]


def test_without_a_session_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    with pytest.raises(TrinityError, match=r"trinity.connect\(\.\.\., spark=spark\)") as raised:
        ask({"ask": "columns"})
    assert raised.value.code == "CONFIGURATION_INVALID"
