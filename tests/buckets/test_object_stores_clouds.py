"""Tables in Google's buckets and Azure's containers: the same code as for S3, on the stores' own protocols."""

from __future__ import annotations

import logging
import pickle
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trinity
from tests.support.bucket_lake import (
    COLUMNS,
    FIRST,
    ROWS,
    BucketLake,
    bucket_lake,
    lake_in_store,
    objects,
    race,
    stored,
)
from tests.support.fault_proxy import Answer, Request
from tests.support.google_server import GoogleServer
from tests.support.refusals import refusal
from trinity import Session, Table
from trinity.errors import TrinityError
from trinity.spi import SinkId
from trinity.storage import Location, ObjectStore

LAKES = ["gcs-parquet", *(pytest.param(f"gcs-{fmt}", marks=pytest.mark.full) for fmt in ("delta", "iceberg"))]
LAKES += [pytest.param(f"azure-{fmt}", marks=pytest.mark.full) for fmt in FIRST]
PARQUET = ["gcs-parquet", pytest.param("azure-parquet", marks=pytest.mark.full)]


@pytest.fixture(params=LAKES)
def cloud(request: pytest.FixtureRequest, tmp_path: Path) -> BucketLake:
    """Return a catalog of each format in each of these stores. Azure's, which comes from npm, is in the long tier."""
    return lake_in_store(request, tmp_path)


@pytest.fixture
def there(cloud: BucketLake) -> Iterator[Session]:
    """Yield a session that has this catalog alone."""
    with cloud.connect() as opened:
        yield opened


@pytest.fixture
def table(there: Session) -> Table:
    """Make a plain table in the bucket."""
    return there.create_table("plain", COLUMNS)


# -- tables -----------------------------------------------------------------------------------------------


def test_a_table_lives_there(there: Session, cloud: BucketLake) -> None:
    there.connector("lake").metadata.create_schema("sales_~x")
    table = there.create_table('lake."sales_~x".orders', COLUMNS, partition_by=["v"])
    table.append(ROWS, txn=("load", 1))
    table.append(pa.table({"k": [3], "v": ["a/b c"]}))
    assert table.append(ROWS, txn=("load", 1)).skipped
    assert [row["k"] for row in stored(cloud.server, table)] == [1, 2, 3]
    assert [row["k"] for row in stored(cloud.server, table, version=FIRST[cloud.fmt] + 1)] == [1, 2]
    keyed = there.create_table("keyed", COLUMNS, primary_key=["k"])
    for text in "xy":
        keyed.upsert(pa.table({"k": [1], "v": [text]}))
    assert sorted(row["v"] for row in stored(cloud.server, keyed)) == ["x", "y"]
    with cloud.connect() as other:
        seen = other.table('"sales_~x".orders')
        assert stored(cloud.server, seen) == stored(cloud.server, table)
        other.drop_table('"sales_~x".orders')
    refusal("TABLE_NOT_FOUND", lambda: table.append(ROWS))
    assert objects(cloud.server, table.location) == []
    there.connector("lake").metadata.drop_schema("sales_~x")


@pytest.mark.parametrize("cloud", LAKES[:1] + LAKES[3:], indirect=True)
def test_vacuum_forgets_versions_and_orphans(there: Session, cloud: BucketLake, table: Table) -> None:
    table.append(ROWS)
    folder = Location.of(table.splits().files[0].path).parent
    orphan = folder.join(f"{'0' * 32}-000000-00000000.parquet")
    pq.write_table(ROWS, orphan.for_arrow, filesystem=ObjectStore(folder).filesystem)
    there.connector("lake").metadata.truncate(table.handle)
    table.append(ROWS)
    assert table.vacuum("0 seconds").files == 2
    kept = [Location.of(file.path).for_arrow for file in table.splits().files]
    assert [name for name in objects(cloud.server, table.location) if name.endswith(".parquet")] == kept
    assert len(stored(cloud.server, table)) == 2


@pytest.mark.full
@pytest.mark.parametrize("cloud", ["gcs-delta", "azure-delta"], indirect=True)
def test_delta_rs_reads_what_is_there(table: Table, cloud: BucketLake) -> None:
    table.append(ROWS)
    given = cloud.server.options
    options = {"endpoint": given["endpoint"], "allow_http": "true", "account_key": given.get("account_key", "")}
    if isinstance(cloud.server, GoogleServer):
        options = {"base_url": given["endpoint"], "allow_http": "true", "service_account": given["service_account"]}
    found = deltalake.DeltaTable(table.location, storage_options=options).to_pyarrow_table()
    assert found.sort_by("k") == ROWS


@pytest.mark.full
@pytest.mark.parametrize("cloud", PARQUET, indirect=True)
def test_a_large_file_goes_up_in_parts_and_is_there_whole(table: Table, cloud: BucketLake) -> None:
    rows = pa.table(
        {"k": pa.array(range(3_000_000), pa.int32()), "v": [f"{n * 7919 % 1_000_003}" for n in range(3_000_000)]}
    )
    with cloud.server.proxy.counting() as requests:
        table.append(rows)
    assert len([r for r in requests if "partNumber=" in r.path or "comp=block&" in r.path]) > 1
    [file] = table.splits().files
    place = Location.of(file.path)
    assert pq.read_table(place.for_arrow, filesystem=cloud.server.files).select(["k", "v"]).sort_by("k") == rows
    assert ObjectStore(place).filesystem.get_file_info(place.for_arrow).size == file.size


@pytest.mark.full
@pytest.mark.parametrize("cloud", PARQUET, indirect=True)
def test_objects_that_are_gone_keep_no_others_from_being_deleted(there: Session, cloud: BucketLake) -> None:
    """One request deletes hundreds of objects in Azure, which reports missing ones; Google gets one for each object."""
    store = ObjectStore(f"{cloud.place}/many")
    names = [f"{number:03d}" for number in range(300)]
    with ThreadPoolExecutor(8) as puts:
        list(puts.map(lambda name: store.put(name, b"x"), names[::3]))
    store.delete(names)
    assert store.list() == []


@pytest.mark.parametrize("cloud", PARQUET, indirect=True)
def test_listings_begin_behind_a_name(there: Session, cloud: BucketLake) -> None:
    store = ObjectStore(f"{cloud.place}/listed")
    for name in ("a/1", "a/2", "a b/3", "b", "a/2x"):
        store.put(name, b"x")
    assert [entry.path for entry in store.list(after="a/2")] == ["a/2x", "b"]
    assert [entry.path for entry in store.list("a")] == ["a/1", "a/2", "a/2x"]
    assert sorted(store.names()) == ["a", "a b", "b"]
    assert store.is_folder("a")
    assert not store.is_folder("a/1")
    assert store.stat("b") == store.stat("b")
    assert store.stat("c") is None


@pytest.mark.parametrize("cloud", PARQUET, indirect=True)
def test_an_object_gets_another_name(there: Session, cloud: BucketLake) -> None:
    store = ObjectStore(f"{cloud.place}/moved")
    store.put("a b/1%2F", b"x")
    store.put("c/ü", b"another")
    store.move("a b/1%2F", "c/ü")
    assert [(entry.path, entry.size) for entry in store.list()] == [("c/ü", 1)]
    assert store.get("c/ü") == b"x"
    with pytest.raises(FileNotFoundError):
        store.move("a b/1%2F", "d")


@pytest.mark.parametrize("cloud", PARQUET, indirect=True)
def test_a_folder_of_others_takes_rows(there: Session, cloud: BucketLake) -> None:
    """The store copies the staged files into the folder."""
    folder = f"{cloud.place}/theirs"
    for number in (1, 2):
        data = pa.BufferOutputStream()
        pq.write_table(pa.table({"k": pa.array([number], pa.int32()), "v": ["theirs"]}), data)
        ObjectStore(folder).put(f"p=x y/{number}.parquet", data.getvalue().to_pybytes())
    table = there.register("theirs", "parquet", folder)
    for number in (3, 4):
        table.append(pa.table({"k": pa.array([number] * 2, pa.int32()), "v": ["ours"] * 2, "p": ["x y", "a/b"]}))
    with cloud.connect() as other:
        found = [(row["k"], row["v"]) for row in stored(cloud.server, other.table("theirs"))]
    assert found == [(1, "theirs"), (2, "theirs"), *[(3, "ours")] * 2, *[(4, "ours")] * 2]
    names = [name for name in objects(cloud.server, folder) if name.endswith(".parquet")]
    assert len(names) == 6
    assert not any(".trinity-staging" in name for name in names)


# -- one winner -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cloud", PARQUET, indirect=True)
def test_of_writers_of_one_name_one_wins(there: Session, cloud: BucketLake) -> None:
    store = ObjectStore(f"{cloud.place}/race")
    won = race(store, 8)
    assert won.count(True) == 1
    assert store.get("name") == b"%d" % won.index(True)


@pytest.mark.full
def test_sessions_that_append_at_once_lose_nothing(table: Table, cloud: BucketLake) -> None:
    def append(number: int) -> None:
        with cloud.connect() as session:
            session.table("plain").append(pa.table({"k": [number], "v": ["x"]}))

    with ThreadPoolExecutor(8) as writers:
        list(writers.map(append, range(16)))
    assert sorted(row["k"] for row in stored(cloud.server, table)) == list(range(16))
    assert table.splits().version == FIRST[cloud.fmt] + 16


def test_a_commit_whose_answer_is_lost_is_made_once(table: Table, cloud: BucketLake) -> None:
    with cloud.server.proxy.losing(lambda request: request.method == "PUT" and "json" in request.path) as lost:
        assert table.append(ROWS).version == FIRST[cloud.fmt] + 1
    assert lost
    assert len(stored(cloud.server, table)) == 2
    assert table.append(ROWS).version == FIRST[cloud.fmt] + 2


@pytest.mark.parametrize("cloud", PARQUET, indirect=True)
def test_a_store_that_puts_over_what_is_there_is_refused(cloud: BucketLake) -> None:
    lake = bucket_lake(cloud.fmt, cloud.server, cloud.server.new_bucket(), {})

    def forgets_the_condition(request: Request, ask: Any) -> Answer | None:
        if not request.conditional:
            return None
        found: Answer = ask()
        return Answer(201, b"", (("ETag", '"x"'),)) if found.status in (409, 412) else found

    with lake.connect() as session, lake.server.proxy.faulty(forgets_the_condition):
        message = refusal("CONFIGURATION_INVALID", lambda: session.create_table("t", COLUMNS))
    assert "conditional put" in message
    assert Location.of(lake.place).bucket in message
    assert objects(lake.server, lake.place) == []


# -- refusals ---------------------------------------------------------------------------------------------


def test_what_is_wrong_is_said_by_name(cloud: BucketLake) -> None:
    nowhere = bucket_lake(cloud.fmt, cloud.server, "no-such-bucket", cloud.database)
    message = refusal("FILESYSTEM_ERROR", lambda: nowhere.connect().list_tables("lake", "default"))
    assert "'no-such-bucket'" in message
    assert cloud.server.options["endpoint"] in message
    elsewhere = bucket_lake(cloud.fmt, cloud.server, "at-another-place", cloud.database)
    message = refusal(
        "FILESYSTEM_ERROR",
        lambda: elsewhere.connect(endpoint="http://127.0.0.1:1").list_tables("lake", "default"),
    )
    assert "http://127.0.0.1:1" in message
    assert "does not answer" in message


@pytest.mark.parametrize("cloud", PARQUET, indirect=True)
def test_a_wrong_key_is_refused(cloud: BucketLake) -> None:
    azure = "account_key" in cloud.server.options
    wrong = {"account_key": "AAAA" + cloud.server.secret[4:]} if azure else {"bearer_token": "ya29.wrong-token-0002"}
    others = {name: value for name, value in cloud.server.options.items() if name in ("endpoint", "allow_http")}
    lake = {"lake": {**cloud.settings(), "storage_options": {**others, **wrong}}}
    message = refusal("PERMISSION_DENIED", lambda: trinity.connect(catalogs=lake).list_tables("lake", "default"))
    assert "the key was refused" in message
    assert next(iter(wrong.values())) not in message


UNREAD = {
    "PERMISSION_DENIED": Answer(403, b"<Error><Code>AccessDenied</Code></Error>"),
    "FILESYSTEM_ERROR": Answer(400, b"<Error><Code>Unexpected</Code></Error>"),
}


@pytest.mark.parametrize("code", UNREAD)
def test_a_store_that_shows_no_data_file_is_not_told_as_damage(
    there: Session, cloud: BucketLake, table: Table, code: str
) -> None:
    """The store lists each file, but refuses to deliver its data. To compact a keyed table they are needed, too."""
    keyed = there.create_table("keyed", COLUMNS, primary_key=["k"])
    table.append(ROWS)
    for _ in range(2):
        keyed.upsert(ROWS)

    def hides(request: Request, ask: Any) -> Answer | None:
        return UNREAD[code] if request.method == "GET" and request.object.endswith("parquet") else None

    with cloud.server.proxy.faulty(hides):
        for one, call in ((table, table.to_arrow), (keyed, keyed.to_arrow), (keyed, lambda: keyed.compact("full"))):
            assert one.location in refusal(code, call)
    assert keyed.compact("full").files
    assert table.to_arrow().num_rows == keyed.to_arrow().num_rows == 2


@pytest.mark.full
@pytest.mark.parametrize("cloud", PARQUET, indirect=True)
def test_a_busy_store_is_asked_again(table: Table, cloud: BucketLake) -> None:
    refusals: list[str] = []

    def slow_down(request: Request, ask: Any) -> Answer | None:
        if len(refusals) < 3:
            refusals.append(request.path)
            return Answer(503, b"<Error><Code>ServerBusy</Code></Error>")
        return None

    with cloud.server.proxy.faulty(slow_down):
        table.append(ROWS)
    assert len(stored(cloud.server, table)) == 2


@pytest.mark.parametrize("cloud", PARQUET, indirect=True)
def test_the_environment_says_what_options_leave_out(cloud: BucketLake, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {
        "account_key": "AZURE_STORAGE_ACCOUNT_KEY",
        "service_account": "GOOGLE_APPLICATION_CREDENTIALS",
        "endpoint": "AZURE_STORAGE_ENDPOINT" if "account_key" in cloud.server.options else "GOOGLE_BASE_URL",
        "allow_http": "AZURE_ALLOW_HTTP" if "account_key" in cloud.server.options else "GOOGLE_ALLOW_HTTP",
    }
    for name, value in cloud.server.options.items():
        monkeypatch.setenv(names[name], str(value))
    with trinity.connect(catalogs={"lake": {**cloud.settings(), "storage_options": None}}) as session:
        table = session.create_table("t", COLUMNS)
        table.append(ROWS)
        assert len(stored(cloud.server, table)) == 2


def test_keys_are_told_to_nobody(cloud: BucketLake, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    key = cloud.server.key if isinstance(cloud.server, GoogleServer) else None  # given as text, not as a file
    with cloud.connect(**({"service_account": None, "service_account_key": key} if key else {})) as there:
        texts = said_with_a_key(there, cloud)
    texts += [record.getMessage() for record in caplog.records]
    texts += [str(cloud.server.files.open_input_stream(path).read()) for path in objects(cloud.server, cloud.place)]
    assert [text for text in texts if cloud.server.secret in text] == []


def said_with_a_key(there: Session, cloud: BucketLake) -> list[str]:
    """Return the texts and pickles of all objects that hold a key, and the message of an error that contains it."""
    table = there.create_table("plain", COLUMNS)
    table.append(ROWS)
    insert = table.connector.metadata.begin_insert(table.handle)
    sink = table.connector.sinks.create_page_sink(insert.target, SinkId())
    texts = [repr(x) for x in (there, table, table.handle, table.splits(), insert, sink, there.catalogs)]
    texts += [str(pickle.dumps((insert, table.connector.sinks)))]
    denied = Answer(403, f"<Error><Code>AuthenticationFailed</Code><K>{cloud.server.secret}</K></Error>".encode())
    with cloud.server.proxy.faulty(lambda request, ask: denied), pytest.raises(TrinityError) as caught:
        table.append(ROWS)
    return texts + traceback.format_exception(caught.value)
