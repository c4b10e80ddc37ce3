"""Parquet tables in a bucket of S3, by a real server: what they hold, who wins, what is refused and how."""

from __future__ import annotations

import json
import logging
import pickle
import re
import traceback
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.fs as pf
import pyarrow.parquet as pq
import pytest

import trinity
from tests.support.fault_proxy import LOST, Answer, Request
from tests.support.object_store import READER, SECRET, ObjectServer
from trinity import Column, Session
from trinity.errors import TrinityError
from trinity.storage import AlreadyExists, ObjectStore
from trinity.table import Table

COLUMNS = [Column("k", "int"), Column("v", "string")]
ROWS = pa.table({"k": pa.array([1, 2], pa.int32()), "v": ["a", "b"]})


@pytest.fixture(scope="module")
def bucket(object_server: ObjectServer) -> str:
    return object_server.new_bucket()


@pytest.fixture
def place(bucket: str) -> str:
    """A warehouse of the test's own."""
    return f"s3://{bucket}/some where/100%/{uuid.uuid4().hex}"


@pytest.fixture
def s3(object_server: ObjectServer, place: str) -> Iterator[Session]:
    with trinity.connect(place, storage_options=object_server.options) as session:
        yield session


@pytest.fixture
def plain(s3: Session) -> Table:
    return s3.create_table("plain", COLUMNS)


def stored(server: ObjectServer, table: Table, version: int | None = None) -> list[dict[str, Any]]:
    """The rows of a plain table as another program reads its listed files."""
    files = [f.path.removeprefix("s3://") for f in table.splits(version).files]
    rows = [row for file in files for row in pq.read_table(file, filesystem=server.files).to_pylist()]
    return sorted(rows, key=lambda row: str(row["k"]))


def objects(server: ObjectServer, place: str) -> list[str]:
    selected = pf.FileSelector(place.removeprefix("s3://"), recursive=True, allow_not_found=True)
    return [str(found.path) for found in server.files.get_file_info(selected) if found.type == pf.FileType.File]


def refusal(code: str, call: Any) -> str:
    with pytest.raises(TrinityError) as caught:
        call()
    assert caught.value.code == code, caught.value.message
    return caught.value.message


# -- tables -----------------------------------------------------------------------------------------------


def test_a_table_lives_in_a_bucket(s3: Session, object_server: ObjectServer, place: str) -> None:
    s3.connector("parquet").metadata.create_schema("sales_~x")
    table = s3.create_table('parquet."sales_~x".orders', COLUMNS, partition_by=["v"])
    table.append(ROWS, txn=("load", 1))
    table.append(pa.table({"k": [3], "v": ["a/b c"]}))
    assert table.append(ROWS, txn=("load", 1)).skipped
    assert [row["k"] for row in stored(object_server, table)] == [1, 2, 3]
    assert [row["k"] for row in stored(object_server, table, version=1)] == [1, 2]
    history = s3.connector("parquet").metadata.history(table.handle)
    assert [entry.operation for entry in history] == ["create", "append", "append"]
    table.set_properties({"comment": "in a bucket"})
    with trinity.connect(place, storage_options=object_server.options) as other:
        seen = other.table('"sales_~x".orders')
        assert seen.properties["comment"] == "in a bucket"
        assert stored(object_server, seen) == stored(object_server, table)
        assert other.list_tables("parquet", "sales_~x") == ["orders"]
        other.drop_table('"sales_~x".orders')
    refusal("TABLE_NOT_FOUND", lambda: table.append(ROWS))
    assert objects(object_server, table.location) == []
    s3.connector("parquet").metadata.drop_schema("sales_~x")
    assert s3.connector("parquet").metadata.list_schemas() == ["default"]


def test_a_keyed_table_takes_row_versions(s3: Session, object_server: ObjectServer) -> None:
    table = s3.create_table("t", COLUMNS, primary_key=["k"])
    for text in "xy":
        table.upsert(pa.table({"k": [1], "v": [text]}))
    assert [row["v"] for row in sorted(stored(object_server, table), key=lambda row: str(row["v"]))] == ["x", "y"]
    assert [f.commit for f in table.splits().files] == [1, 2]
    assert "s3a://" in table.merge_view_sql("spark") or "s3://" in table.merge_view_sql("spark")


def test_a_table_that_is_made_anew_has_nothing_of_the_one_before(s3: Session, object_server: ObjectServer) -> None:
    old = s3.create_table("t", COLUMNS)
    old.append(ROWS)
    s3.drop_table("t")
    new = s3.create_table("t", COLUMNS)
    assert new.location != old.location
    refusal("TABLE_NOT_FOUND", lambda: old.append(ROWS))
    assert new.splits().files == ()
    refusal("TABLE_ALREADY_EXISTS", lambda: s3.create_table("t", COLUMNS))
    refusal("SCHEMA_NOT_FOUND", lambda: s3.create_table("nowhere.t", COLUMNS))


def test_vacuum_forgets_versions_and_orphans(s3: Session, plain: Table, object_server: ObjectServer) -> None:
    plain.append(ROWS)
    orphan = f"{plain.location}/{'0' * 32}-000000-00000000.parquet"
    pq.write_table(ROWS, orphan.removeprefix("s3://"), filesystem=object_server.files)
    s3.connector("parquet").metadata.truncate(plain.handle)
    plain.append(ROWS)
    assert plain.vacuum("0 seconds").files == 2
    assert len(stored(object_server, plain)) == 2
    refusal("INVALID_ARGUMENTS", lambda: plain.splits(1))
    assert [name for name in objects(object_server, plain.location) if name.endswith(".parquet")] == [
        f.path.removeprefix("s3://") for f in plain.splits().files
    ]


@pytest.mark.full
def test_others_commits_and_checkpoints_are_read(
    s3: Session, plain: Table, object_server: ObjectServer, place: str
) -> None:
    with trinity.connect(place, storage_options=object_server.options) as other:
        seen = other.table("plain")
        for number in range(12):
            plain.append(pa.table({"k": [number], "v": ["x"]}))
        assert seen.splits().version == 12
    with trinity.connect(place, storage_options=object_server.options) as late:
        assert len(late.table("plain").splits().files) == 12
        assert len(late.table("plain").splits(7).files) == 7


@pytest.mark.full
def test_a_table_may_be_registered_by_its_location(plain: Table, s3: Session, object_server: ObjectServer) -> None:
    plain.append(ROWS)
    found = s3.register("again", "parquet", plain.location)
    assert stored(object_server, found) == stored(object_server, plain)
    assert "folders of others" in refusal("NOT_SUPPORTED", lambda: s3.register("f", "parquet", f"{plain.location}/x"))
    s3.drop_table("again")
    assert len(stored(object_server, plain)) == 2


# -- one winner -------------------------------------------------------------------------------------------


def test_of_writers_of_one_name_one_wins(s3: Session, place: str) -> None:
    store = ObjectStore(f"{place}/race")

    def wins(number: int) -> bool:
        try:
            store.put_if_absent("name", b"%d" % number)
        except AlreadyExists:
            return False
        return True

    with ThreadPoolExecutor(16) as writers:
        won = list(writers.map(wins, range(16)))
    assert won.count(True) == 1
    assert store.get("name") == b"%d" % won.index(True)


@pytest.mark.full
def test_of_makers_of_one_table_one_wins(s3: Session, object_server: ObjectServer, place: str) -> None:
    def makes(_: int) -> Table | TrinityError:
        try:
            return s3.create_table("t", COLUMNS)
        except TrinityError as error:
            return error

    with ThreadPoolExecutor(4) as makers:
        found = list(makers.map(makes, range(4)))
    assert [e.code for e in found if isinstance(e, TrinityError)] == ["TABLE_ALREADY_EXISTS"] * 3
    [made] = [table for table in found if isinstance(table, Table)]
    made.append(ROWS)
    assert len(stored(object_server, s3.table("t"))) == 2


@pytest.mark.full
def test_sessions_that_append_at_once_lose_nothing(plain: Table, object_server: ObjectServer, place: str) -> None:
    def append(number: int) -> None:
        with trinity.connect(place, storage_options=object_server.options) as session:
            session.table("plain").append(pa.table({"k": [number], "v": ["x"]}))

    with ThreadPoolExecutor(8) as writers:
        list(writers.map(append, range(16)))
    assert sorted(row["k"] for row in stored(object_server, plain)) == list(range(16))
    assert plain.splits().version == 16


# -- faults -----------------------------------------------------------------------------------------------


def test_a_commit_whose_answer_is_lost_is_made_once(plain: Table, object_server: ObjectServer) -> None:
    lost: list[str] = []

    def loses(request: Request, ask: Any) -> Answer | None:
        if request.conditional and request.path.endswith(".json") and not lost:
            lost.append(request.path)
            ask()
            return LOST
        return None

    with object_server.proxy.faulty(loses):
        assert plain.append(ROWS).version == 1
    assert lost
    assert len(stored(object_server, plain)) == 2
    assert plain.append(ROWS).version == 2


@pytest.mark.full
def test_a_busy_store_is_asked_again(plain: Table, object_server: ObjectServer) -> None:
    refused: list[str] = []

    def slow_down(request: Request, ask: Any) -> Answer | None:
        if len(refused) < 3:
            refused.append(request.path)
            return Answer(503, b"<Error><Code>SlowDown</Code></Error>")
        return None

    with object_server.proxy.faulty(slow_down):
        plain.append(ROWS)
    assert len(stored(object_server, plain)) == 2


def test_a_store_that_puts_over_what_is_there_is_refused(object_server: ObjectServer) -> None:
    place = f"s3://{object_server.new_bucket()}/w"

    def forgets_the_condition(request: Request, ask: Any) -> Answer | None:
        if not request.conditional:
            return None
        found: Answer = ask()
        return Answer(200, b"", (("ETag", '"x"'),)) if found.status == 412 else found

    with (
        trinity.connect(place, storage_options=object_server.options) as session,
        object_server.proxy.faulty(forgets_the_condition),
    ):
        said = refusal("CONFIGURATION_INVALID", lambda: session.create_table("t", COLUMNS))
    assert "conditional put" in said
    assert place.split("/")[2] in said
    assert objects(object_server, place) == []


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        ((400, "AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>"), "CONFIGURATION_INVALID", "'eu-west-1'"),
        ((403, "ExpiredToken", ""), "PERMISSION_DENIED", "expired"),
        ((403, "AccessDenied", ""), "PERMISSION_DENIED", "permission"),
    ],
)
def test_what_a_store_says_is_told_with_a_remedy(
    plain: Table, object_server: ObjectServer, answer: tuple[int, str, str], code: str, words: str
) -> None:
    status, name, more = answer
    body = f"<?xml version='1.0'?><Error><Code>{name}</Code><Message>no</Message>{more}</Error>".encode()
    with object_server.proxy.faulty(lambda request, ask: Answer(status, body)):
        said = refusal(code, lambda: plain.append(ROWS))
    assert words in said
    assert str(object_server.proxy.port) in said
    assert plain.append(ROWS).version == 1


# -- bad input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "code", "words"),
    [
        ({"secret_access_key": "another-secret-of-mine"}, "PERMISSION_DENIED", "AWS_SECRET_ACCESS_KEY"),
        ({"access_key_id": "AKIANOBODY000000"}, "PERMISSION_DENIED", "access_key_id"),
        ({"allow_http": False}, "CONFIGURATION_INVALID", "allow_http=True"),
        ({"endpoint": "localhost:9000"}, "CONFIGURATION_INVALID", "https://host:9000"),
        ({"secret_access_key": None}, "CONFIGURATION_INVALID", "together"),
        ({"regions": "x"}, "CONFIGURATION_INVALID", "'region'"),
    ],
)
def test_wrong_options_are_refused_by_name(
    object_server: ObjectServer, place: str, wrong: Any, code: str, words: str
) -> None:
    assert words in refusal(code, lambda: trinity.connect(place, storage_options={**object_server.options, **wrong}))


def test_a_bucket_that_is_missing_or_read_only_is_named(object_server: ObjectServer, place: str) -> None:
    options = object_server.options
    missing = refusal("FILESYSTEM_ERROR", lambda: trinity.connect("s3://no-such-bucket/w", storage_options=options))
    assert "no bucket 'no-such-bucket'" in missing
    with trinity.connect(place, storage_options={**options, **READER}) as session:
        refusal("PERMISSION_DENIED", lambda: session.create_table("t", COLUMNS))


@pytest.mark.full
def test_an_endpoint_that_is_down_is_named() -> None:
    options = {"endpoint": "http://127.0.0.1:1", "allow_http": True, "access_key_id": "a", "secret_access_key": "b"}
    said = refusal("FILESYSTEM_ERROR", lambda: trinity.connect("s3://somewhere/w", storage_options=options))
    assert "http://127.0.0.1:1" in said
    assert "does not answer" in said


def test_what_cannot_be_in_a_store_is_refused_at_connect(object_server: ObjectServer, place: str) -> None:
    for connector in ("delta", "iceberg", "memory"):
        lake = {"lake": {"connector": connector, "warehouse": place, "storage_options": object_server.options}}
        assert "'lake'" in refusal("NOT_SUPPORTED", partial(trinity.connect, catalogs=lake))
    assert "gs://b/w" in refusal("NOT_SUPPORTED", lambda: trinity.connect("gs://b/w"))
    assert "names no bucket" in refusal("CONFIGURATION_INVALID", lambda: trinity.connect("s3:///w"))
    refusal("CONFIGURATION_INVALID", lambda: trinity.connect("/tmp/w", storage_options=object_server.options))


def test_a_bucket_is_reached_in_one_way(s3: Session, object_server: ObjectServer, place: str) -> None:
    elsewhere = {**object_server.options, "endpoint": "https://elsewhere.example"}
    assert "elsewhere.example" in refusal(
        "CONFIGURATION_INVALID", lambda: trinity.connect(place, storage_options=elsewhere)
    )
    own = {"connector": "parquet", "warehouse": f"{place}/x", "storage_options": READER}
    refusal(
        "CONFIGURATION_INVALID",
        lambda: trinity.connect(place, catalogs={"own": own}, storage_options=object_server.options),
    )


def test_the_environment_says_what_options_leave_out(
    object_server: ObjectServer, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"endpoint": "AWS_ENDPOINT_URL", "allow_http": "AWS_ALLOW_HTTP", "region": "AWS_REGION"}
    for name, value in object_server.options.items():
        monkeypatch.setenv(names.get(name, f"AWS_{name.upper()}"), str(value))
    with trinity.connect(place.replace("s3:", "s3a:")) as session:
        table = session.create_table("t", COLUMNS)
        table.append(ROWS)
        assert len(stored(object_server, table)) == 2


# -- secrets ----------------------------------------------------------------------------------------------


def test_keys_are_told_to_nobody(
    s3: Session, plain: Table, object_server: ObjectServer, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    plain.append(ROWS)
    insert = plain.connector.metadata.begin_insert(plain.handle)
    texts = [repr(x) for x in (s3, plain, plain.handle, plain.splits(), insert, plain.connector, s3.catalogs)]
    texts += [str(pickle.dumps((insert, plain.connector.sinks)))]
    denied = Answer(403, f"<Error><Code>SignatureDoesNotMatch</Code><K>{SECRET}</K></Error>".encode())
    for call in (partial(plain.append, ROWS), partial(s3.create_table, "x", COLUMNS)):
        with object_server.proxy.faulty(lambda request, ask: denied), pytest.raises(TrinityError) as caught:
            call()
        texts += traceback.format_exception(caught.value)
    texts += [record.getMessage() for record in caplog.records]
    texts += [str(object_server.files.open_input_stream(path).read()) for path in objects(object_server, place)]
    secret = (SECRET, object_server.options["access_key_id"])
    assert [text for text in texts if any(word in text for word in secret)] == []


# -- requests ---------------------------------------------------------------------------------------------


def test_requests_are_few_and_do_not_grow(plain: Table, s3: Session, object_server: ObjectServer, place: str) -> None:
    for number in range(30):
        plain.append(pa.table({"k": [number], "v": ["x"]}))
    counting = object_server.proxy.counting
    with counting() as append:
        plain.append(ROWS)
    with counting() as look:
        plain.splits()
    with trinity.connect(place, storage_options=object_server.options) as fresh:
        with counting() as find:
            table = fresh.table("plain")
        with counting() as first:
            table.splits()
    assert (len(append), len(look), len(find)) == (6, 1, 3)
    assert len(first) <= 2 + 10  # the log's names, a checkpoint, and what was committed since
    assert [r for r in first if re.search(r"\.parquet$", r.path)] == []


def test_a_manifest_names_what_lies_below_it(plain: Table, object_server: ObjectServer) -> None:
    plain.append(ROWS)
    manifest = f"{plain.location}/_trinity/log/{1:020d}.json".removeprefix("s3://")
    found = json.loads(object_server.files.open_input_stream(manifest).read())
    assert "/" not in found["add"][0]["path"]
