"""Tables in an S3 bucket whose store fails, or is configured wrongly: what is done once, and what is refused."""

from __future__ import annotations

import logging
import pickle
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

import trinity
from tests.support.bucket_lake import COLUMNS, FIRST, ROWS, BucketLake, objects, stored
from tests.support.fault_proxy import LOST, Answer, Proxy, Request
from tests.support.object_store import READER, SECRET, ObjectServer
from tests.support.refusals import refusal
from trinity import Session, Table
from trinity.errors import TrinityError
from trinity.storage.store_kind import SILENCE

pytestmark = pytest.mark.inner

# -- faults -----------------------------------------------------------------------------------------------


def test_a_commit_whose_answer_is_lost_is_made_once(
    plain: Table, cloud: BucketLake, object_server: ObjectServer
) -> None:
    with object_server.proxy.losing(lambda request: request.method == "PUT" and request.path.endswith(".json")) as lost:
        assert plain.append(ROWS).version == FIRST[cloud.fmt] + 1
    assert lost
    assert len(stored(object_server, plain)) == 2
    assert plain.append(ROWS).version == FIRST[cloud.fmt] + 2


def test_a_commit_that_the_store_refuses_leaves_the_table_as_it_was(plain: Table, object_server: ObjectServer) -> None:
    version = plain.append(ROWS).version
    denied = Answer(403, b"<Error><Code>AccessDenied</Code></Error>")

    def denies(request: Request, ask: Any) -> Answer | None:
        return denied if request.method == "PUT" and request.path.endswith(".json") else None

    with object_server.proxy.faulty(denies):
        refusal("PERMISSION_DENIED", lambda: plain.append(ROWS))
        assert plain.splits().version == version
    assert plain.append(ROWS).version == version + 1
    assert len(stored(object_server, plain)) == 4


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


def reads_data(request: Request) -> bool:
    """Return whether a request reads a data file or its metadata."""
    return ".parquet" in request.path and request.method in ("GET", "HEAD")


@contextmanager
def silent(proxy: Proxy, meant: Callable[[Request], bool], *, times: int) -> Iterator[list[Request]]:
    """Do the first few requests that match, but do not answer them. Yield the list of these requests."""
    unanswered: list[Request] = []
    over = threading.Event()

    def says_nothing(request: Request, ask: Any) -> Answer | None:
        if not meant(request) or len(unanswered) == times:
            return None
        unanswered.append(request)
        ask()
        over.wait()
        return LOST

    with proxy.faulty(says_nothing):
        try:
            yield unanswered
        finally:
            over.set()


@pytest.mark.full
@pytest.mark.parametrize("ending", [".json", ".parquet"])
def test_what_a_store_does_and_does_not_say_is_done_once(
    plain: Table, cloud: BucketLake, object_server: ObjectServer, ending: str
) -> None:
    def puts(request: Request) -> bool:
        return request.method == "PUT" and request.path.endswith(ending)

    with silent(object_server.proxy, puts, times=1) as unanswered:
        assert plain.append(ROWS).version == FIRST[cloud.fmt] + 1
    assert len(unanswered) == 1
    assert len(stored(object_server, plain)) == 2
    assert plain.append(ROWS).version == FIRST[cloud.fmt] + 2


@pytest.mark.full
def test_a_store_that_says_nothing_is_named(cloud: BucketLake, object_server: ObjectServer) -> None:
    with silent(object_server.proxy, lambda _: True, times=99) as unanswered:
        message = refusal("FILESYSTEM_ERROR", cloud.connect)
    assert str(object_server.proxy.port) in message
    often = Counter((request.method, request.path) for request in unanswered)
    assert max(often.values()) * SILENCE.value <= timedelta(seconds=30), often


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
        message = refusal("CONFIGURATION_INVALID", lambda: session.create_table("t", COLUMNS))
    assert "conditional put" in message
    assert place.split("/")[2] in message
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
        message = refusal(code, lambda: plain.append(ROWS))
    assert words in message
    assert str(object_server.proxy.port) in message
    assert plain.append(ROWS).rows == 2


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Answer(403, b"<Error><Code>AccessDenied</Code></Error>"), "PERMISSION_DENIED"),
        pytest.param(Answer(503, b"<Error><Code>SlowDown</Code></Error>"), "FILESYSTEM_ERROR", marks=pytest.mark.full),
        pytest.param(LOST, "FILESYSTEM_ERROR", marks=pytest.mark.full),
    ],
)
def test_a_store_that_shows_no_data_file_is_not_told_as_damage(
    plain: Table, object_server: ObjectServer, answer: Answer, code: str
) -> None:
    plain.append(ROWS)

    def hides(request: Request, ask: Any) -> Answer | None:
        return answer if reads_data(request) else None

    with object_server.proxy.faulty(hides):
        assert plain.location in refusal(code, plain.to_arrow)
    assert plain.to_arrow().num_rows == 2


def test_a_store_that_shows_no_data_file_of_a_log_is_told_by_the_process(
    s3: Session, object_server: ObjectServer
) -> None:
    table = s3.create_table("keyed", COLUMNS, primary_key=["k"])
    table.upsert(ROWS)
    asking: list[str] = []

    def hides(request: Request, ask: Any) -> Answer | None:
        if not reads_data(request):
            return None
        asking.append(request.headers["user-agent"])
        return Answer(403, b"<Error><Code>AccessDenied</Code></Error>")

    with object_server.proxy.faulty(hides):
        assert table.location in refusal("PERMISSION_DENIED", table.to_arrow)
    assert asking
    assert not [agent for agent in asking if "Hadoop" in agent]
    assert table.to_arrow().num_rows == 2


@pytest.mark.full
def test_a_store_that_says_nothing_of_a_data_file_is_given_up(s3: Session, object_server: ObjectServer) -> None:
    table = s3.create_table("keyed", COLUMNS, primary_key=["k"])
    table.upsert(ROWS)
    with silent(object_server.proxy, reads_data, times=99) as unanswered:
        assert table.location in refusal("FILESYSTEM_ERROR", table.to_arrow)
    seconds_each = 5
    assert 1 < len(unanswered) * seconds_each < 30


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
def test_wrong_options_are_refused_by_name(cloud: BucketLake, wrong: Any, code: str, words: str) -> None:
    assert words in refusal(code, lambda: cloud.connect(**wrong))


def test_a_bucket_that_is_missing_or_read_only_is_named(cloud: BucketLake) -> None:
    missing = refusal("FILESYSTEM_ERROR", replace(cloud, place="s3://no-such-bucket/w").connect)
    assert "no bucket 'no-such-bucket'" in missing
    with cloud.connect(**READER) as session:
        refusal("PERMISSION_DENIED", lambda: session.create_table("t", COLUMNS))


@pytest.mark.full
def test_an_endpoint_that_is_down_is_named(cloud: BucketLake) -> None:
    elsewhere = replace(cloud, place="s3://somewhere/w")
    message = refusal("FILESYSTEM_ERROR", lambda: elsewhere.connect(endpoint="http://127.0.0.1:1"))
    assert "http://127.0.0.1:1" in message
    assert "does not answer" in message


def test_what_cannot_be_in_a_store_is_refused_at_connect(object_server: ObjectServer, place: str) -> None:
    lake = {"lake": {"connector": "memory", "warehouse": place, "storage_options": object_server.options}}
    assert "'lake'" in refusal("NOT_SUPPORTED", lambda: trinity.connect(catalogs=lake))
    assert "hdfs://b/w" in refusal("NOT_SUPPORTED", lambda: trinity.connect("hdfs://b/w"))
    assert "names no bucket" in refusal("CONFIGURATION_INVALID", lambda: trinity.connect("s3:///w"))
    refusal("CONFIGURATION_INVALID", lambda: trinity.connect("/tmp/w", storage_options=object_server.options))


@pytest.mark.parametrize("cloud", ["parquet"], indirect=True)
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
    object_server: ObjectServer, cloud: BucketLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"endpoint": "AWS_ENDPOINT_URL", "allow_http": "AWS_ALLOW_HTTP", "region": "AWS_REGION"}
    for name, value in object_server.options.items():
        monkeypatch.setenv(names.get(name, f"AWS_{name.upper()}"), str(value))
    settings = {**cloud.settings(), "warehouse": cloud.place.replace("s3:", "s3a:"), "storage_options": None}
    with trinity.connect(catalogs={"lake": settings}) as session:
        table = session.create_table("t", COLUMNS)
        table.append(ROWS)
        assert len(stored(object_server, table)) == 2


# -- secrets ----------------------------------------------------------------------------------------------


def test_keys_are_told_to_nobody(
    s3: Session, plain: Table, object_server: ObjectServer, cloud: BucketLake, caplog: pytest.LogCaptureFixture
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
    texts += [str(object_server.files.open_input_stream(path).read()) for path in objects(object_server, cloud.place)]
    secret = (SECRET, object_server.options["access_key_id"])
    assert [text for text in texts if any(word in text for word in secret)] == []
