"""Iceberg tables of a catalog server: lost answers, errors, and names.

The REST server is Iceberg's own, Glue is moto's.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.view.metadata import ViewVersion

import trinity
from tests.support.bucket_lake import COLUMNS, ROWS, SERVERS, database_of, objects, stored
from tests.support.fault_proxy import LOST, Answer, Proxy, Request, running_proxy
from tests.support.fault_sequences import hurried
from tests.support.object_store import ObjectServer
from tests.support.refusals import refusal
from trinity import Session, Table


@dataclass(frozen=True)
class Catalog:
    """The server of a catalog, and the proxy before it."""

    kind: str
    proxy: Proxy

    def commits(self, request: Request) -> bool:
        """Return whether a request changes a table's metadata."""
        if self.kind == "iceberg-glue":
            return request.headers.get("x-amz-target") == "AWSGlue.UpdateTable"
        return request.method == "POST" and request.path.endswith("/tables/plain")

    def makes(self, request: Request) -> bool:
        """Return whether a request makes a table."""
        if self.kind == "iceberg-glue":
            return request.headers.get("x-amz-target") == "AWSGlue.CreateTable"
        return request.method == "POST" and request.path.endswith("/tables")

    def denies(self, status: int) -> Answer:
        """Return the answer to a request without permission, or with an expired one."""
        if self.kind == "iceberg-glue":
            code = {401: "ExpiredTokenException", 403: "AccessDeniedException"}[status]
            return Answer(400, b'{"__type": "%s", "message": "no"}' % code.encode())
        return Answer(status, b'{"error": {"message": "no", "type": "ForbiddenException", "code": %d}}' % status)


@pytest.fixture(params=[pytest.param("iceberg-rest", marks=pytest.mark.full), "iceberg-glue"])
def catalog(request: pytest.FixtureRequest) -> Iterator[Catalog]:
    kind = str(request.param)
    address = request.getfixturevalue(SERVERS[kind])
    with running_proxy(int(address.rpartition(":")[2])) as proxy:
        yield Catalog(kind, proxy)


@pytest.fixture
def settings(catalog: Catalog, place: str, object_server: ObjectServer, tmp_path: Path) -> dict[str, Any]:
    address = database_of(catalog.kind, tmp_path, f"http://127.0.0.1:{catalog.proxy.port}")
    return {"connector": "iceberg", "warehouse": place, **address, "storage_options": object_server.options}


@pytest.fixture
def s3(settings: dict[str, Any]) -> Iterator[Session]:
    with trinity.connect(catalogs={"lake": settings}) as session:
        yield session


def by_pyiceberg(settings: dict[str, Any], object_server: ObjectServer) -> IcebergCatalog:
    """Return the catalog as PyIceberg opens it without Trinity."""
    known = {f"s3.{option.replace('_', '-')}": str(value) for option, value in object_server.options.items()}
    address = {k: v for k, v in settings.items() if k in ("type", "uri") or k.startswith("glue.")}
    return load_catalog("other", **address, **known)


def test_a_commit_whose_answer_is_lost_is_made_once(
    plain: Table, catalog: Catalog, object_server: ObjectServer
) -> None:
    with catalog.proxy.losing(catalog.commits) as lost:
        assert plain.append(ROWS).version == 2
    assert lost
    assert len(stored(object_server, plain)) == 2
    assert plain.append(ROWS).version == 3


def test_of_two_commits_at_once_the_second_is_made_again(
    plain: Table, settings: dict[str, Any], catalog: Catalog, object_server: ObjectServer
) -> None:
    """PyIceberg commits after Trinity has read the table, and before Trinity's request arrives."""
    theirs = by_pyiceberg(settings, object_server).load_table(("default", "plain"))
    begun: list[int] = []

    def overtakes(request: Request, ask: Any) -> None:
        if catalog.commits(request) and not begun:
            begun.append(len(begun))
            theirs.append(ROWS)
            begun.append(len(theirs.snapshots()))

    with catalog.proxy.faulty(overtakes):
        assert plain.append(ROWS).version == 3
    assert begun == [0, 2]
    assert len(stored(object_server, plain)) == 4


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Answer(500, b"<html>\n<p>no</p></html>"), "FILESYSTEM_ERROR"),
        (Answer(503, b"{}"), "FILESYSTEM_ERROR"),
        (401, "PERMISSION_DENIED"),
        (403, "PERMISSION_DENIED"),
        (LOST, "FILESYSTEM_ERROR"),
    ],
    ids=["500", "503", "401", "403", "lost"],
)
def test_what_a_catalog_says_is_told_by_its_name(
    plain: Table, s3: Session, catalog: Catalog, answer: Answer | int, code: str
) -> None:
    given = catalog.denies(answer) if isinstance(answer, int) else answer
    calls = {
        "read": plain.splits,
        "append": lambda: plain.append(ROWS),
        "make": lambda: s3.create_table("t", COLUMNS),
        "find": lambda: s3.table("other"),
        "list": lambda: s3.list_tables("lake", "default"),
        "drop": lambda: s3.drop_table("plain"),
    }
    with catalog.proxy.faulty(lambda request, ask: given):
        for what, call in calls.items():
            message = refusal(code, call)
            assert "'lake'" in message, what
            assert "\n" not in message, what
    assert plain.append(ROWS).rows == 2


@pytest.mark.parametrize("then", [LOST, Answer(500, b"{}")], ids=["lost", "500"])
def test_a_commit_of_which_the_catalog_says_nothing_has_a_code_of_its_own(
    plain: Table, catalog: Catalog, object_server: ObjectServer, then: Answer
) -> None:
    """The commit took effect, and the catalog does not answer any more."""
    begun: list[Request] = []

    def goes(request: Request, ask: Any) -> Answer | None:
        if catalog.commits(request) and not begun:
            begun.append(request)
            ask()
            return LOST
        return then if begun else None

    with hurried(), catalog.proxy.faulty(goes):
        assert "same txn" in refusal("COMMIT_STATE_UNKNOWN", lambda: plain.append(ROWS, txn=("load", 1)))
    assert begun
    assert len(stored(object_server, plain)) == 2
    assert plain.append(ROWS, txn=("load", 1)).skipped


def test_a_commit_that_may_be_under_way_is_sent_again_as_it_is(
    plain: Table, catalog: Catalog, object_server: ObjectServer
) -> None:
    """The first request arrives late, if at all. The second one is the same, and only one of them takes effect."""
    lost: list[Any] = []

    def delays(request: Request, ask: Any) -> Answer | None:
        if catalog.commits(request) and not lost:
            lost.append(ask)
            return LOST
        return None

    with hurried(), catalog.proxy.faulty(delays):
        assert plain.append(ROWS).version == 2
    lost[0]()
    assert len(stored(object_server, plain)) == 2
    assert plain.append(ROWS).version == 3


def test_a_table_that_the_catalog_does_not_let_make(s3: Session, catalog: Catalog) -> None:
    denied = catalog.denies(403)
    with catalog.proxy.faulty(lambda request, ask: denied if catalog.makes(request) else None):
        assert "'lake' refuses" in refusal("PERMISSION_DENIED", lambda: s3.create_table("t", COLUMNS))
    assert s3.create_table("t", COLUMNS).append(ROWS).rows == 2


def test_a_commit_that_the_catalog_refuses_leaves_the_table_as_it_was(
    plain: Table, catalog: Catalog, object_server: ObjectServer
) -> None:
    version = plain.append(ROWS).version
    denied = catalog.denies(403)
    with catalog.proxy.faulty(lambda request, ask: denied if catalog.commits(request) else None):
        refusal("PERMISSION_DENIED", lambda: plain.append(ROWS))
        assert plain.splits().version == version
    assert plain.append(ROWS).version == version + 1
    assert len(stored(object_server, plain)) == 4


def test_a_commit_is_refused_by_a_catalog_that_says_nothing_more(
    plain: Table, catalog: Catalog, object_server: ObjectServer
) -> None:
    """The catalog refuses the commit and the read that follows it, as when a token expires during a statement."""
    refused: list[Request] = []

    def expires(request: Request, ask: Any) -> Answer | None:
        if catalog.commits(request) or refused:
            refused.append(request)
            return catalog.denies(401)
        return None

    with catalog.proxy.faulty(expires):
        assert "'lake'" in refusal("PERMISSION_DENIED", lambda: plain.append(ROWS))
    assert stored(object_server, plain) == []


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        (
            {"storage_options": {"access_key_id": "k", "secret_access_key": "s"}},
            "CONFIGURATION_INVALID",
            "hand out keys",
        ),
        ({"s3.region": "eu-west-1"}, "CONFIGURATION_INVALID", "storage_options"),
        ({"type": "glue"}, "NOT_SUPPORTED", "of type 'glue'"),
        ({"header.X-Iceberg-Access-Delegation": "remote-signing"}, "NOT_SUPPORTED", "to sign requests"),
    ],
)
def test_what_a_catalog_that_hands_out_keys_needs(settings: dict[str, Any], code: str, words: str) -> None:
    delegation = {"header.X-Iceberg-Access-Delegation": "vended-credentials"}
    given = {
        "connector": "iceberg",
        "type": "rest",
        "uri": "http://127.0.0.1:1",
        "warehouse": "w",
        **delegation,
        **settings,
    }
    assert words in refusal(code, lambda: trinity.connect(catalogs={"lake": given}))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"type": "rest", "warehouse": ""}, "Check 'type', 'uri'"),
        ({"type": "glue"}, "lacks the option 'warehouse'"),
    ],
)
def test_what_a_catalog_needs(settings: dict[str, Any], words: str, place: str, object_server: ObjectServer) -> None:
    given: dict[str, Any] = {"connector": "iceberg", **settings}
    if "warehouse" in settings:
        given |= {"warehouse": place, "storage_options": object_server.options}
    message = refusal("CONFIGURATION_INVALID", lambda: trinity.connect(catalogs={"lake": given}))
    assert "'lake'" in message
    assert words in message


@pytest.mark.parametrize(
    ("kind", "module", "extra"), [("glue", "boto3", "trinity-merge[glue]"), ("hive", "thrift", "pyiceberg[hive]")]
)
def test_a_catalog_whose_packages_are_not_installed(
    kind: str, module: str, extra: str, place: str, object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, f"pyiceberg.catalog.{kind}", raising=False)
    given = {"connector": "iceberg", "type": kind, "uri": "thrift://127.0.0.1:1", "warehouse": place}
    lake = {**given, "storage_options": object_server.options}
    message = refusal("CONFIGURATION_INVALID", lambda: trinity.connect(catalogs={"lake": lake}))
    assert message.endswith(f"pip install '{extra}'.")


class OfOnesOwn(SqlCatalog):
    """A catalog class for the option ``py-catalog-impl``."""


def test_a_catalog_of_ones_own_class(tmp_path: Path) -> None:
    implementation = {"py-catalog-impl": f"{__name__}.OfOnesOwn", "uri": f"sqlite:///{tmp_path}/c.db"}
    settings = {"connector": "iceberg", "warehouse": f"file://{tmp_path}/w", **implementation}
    with trinity.connect(catalogs={"lake": settings}) as session:
        made = session.create_table("plain", COLUMNS)
        assert made.append(ROWS).rows == 2
        assert made.location.startswith(str(tmp_path / "w"))


def test_a_name_that_a_service_knows_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = {"connector": "iceberg", "type": "in-memory", "warehouse": "production"}
    with trinity.connect(catalogs={"lake": settings}) as session:
        message = refusal("CONFIGURATION_INVALID", lambda: session.register("lake.default.t", "parquet", tmp_path))
        assert "connect(warehouse=" in message
        assert session.catalogs["lake"].metadata.list_tables("default") == []
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("entry", [{"Parameters": {"classification": "csv"}}, {}], ids=["another kind", "no kind"])
def test_tables_of_glue_that_are_none_of_icebergs(
    glue: str, place: str, object_server: ObjectServer, entry: dict[str, Any]
) -> None:
    settings = {"connector": "iceberg", "warehouse": place, **database_of("iceberg-glue", Path(), glue)}
    options = {"region_name": "us-east-1", "aws_access_key_id": "k", "aws_secret_access_key": "s"}
    client = boto3.client("glue", endpoint_url=glue, **options)
    with trinity.connect(catalogs={"lake": {**settings, "storage_options": object_server.options}}) as session:
        client.create_table(DatabaseName="default", TableInput={"Name": "crawled", **entry})
        assert session.list_tables("lake", "default") == []
        refusal("TABLE_NOT_FOUND", lambda: session.table("crawled"))
        refusal("TABLE_ALREADY_EXISTS", lambda: session.create_table("crawled", COLUMNS))
        assert [f for f in objects(object_server, place) if not f.endswith("/")] == []


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


def check_namespaces_within(s3: Session, theirs: IcebergCatalog) -> None:
    """Check that the tables of a nested namespace are not listed elsewhere, and stay."""
    theirs.create_namespace(("sales",))
    theirs.create_namespace(("sales", "north"))
    theirs.create_table(("sales", "north", "orders"), ROWS.schema)
    metadata = s3.connector("lake").metadata
    assert metadata.list_schemas() == ["default", "sales"]
    assert metadata.list_tables("sales") == []
    refusal("SCHEMA_NOT_FOUND", lambda: s3.table('lake."sales.north".orders'))
    refusal("TABLE_NOT_FOUND", lambda: s3.table('lake.sales."north.orders"'))
    refusal("SCHEMA_NOT_EMPTY", lambda: metadata.drop_schema("sales"))
    metadata.create_schema("sales.north")
    assert s3.create_table('lake."sales.north".orders', COLUMNS).append(ROWS).rows == 2
    theirs.load_table(("sales", "north", "orders")).append(ROWS.slice(1))
    assert s3.table('lake."sales.north".orders').splits().files[0].rows == 2


def test_namespaces_within_a_namespace_of_a_database(tmp_path: Path) -> None:
    settings = {"connector": "iceberg", "warehouse": str(tmp_path), "catalog-name": "shared"}
    with trinity.connect(catalogs={"lake": settings}) as session:
        theirs = SqlCatalog("shared", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/theirs")
        check_namespaces_within(session, theirs)


@pytest.mark.full
@pytest.mark.parametrize("catalog", ["iceberg-rest"], indirect=True)
def test_namespaces_within_a_namespace_and_views_of_a_service(
    s3: Session, settings: dict[str, Any], object_server: ObjectServer
) -> None:
    theirs = by_pyiceberg(settings, object_server)
    check_namespaces_within(s3, theirs)
    theirs.create_namespace(("reports",))
    sql = {"type": "sql", "sql": "SELECT 1 AS k", "dialect": "spark"}
    version: dict[str, Any] = {"schema-id": 0, "default-namespace": ["reports"], "representations": [sql]}
    theirs.create_view(("reports", "v"), pa.schema([("k", pa.int32())]), ViewVersion(**version))
    metadata = s3.connector("lake").metadata
    assert metadata.list_tables("reports") == []
    refusal("TABLE_NOT_FOUND", lambda: s3.table("lake.reports.v"))
    refusal("TABLE_ALREADY_EXISTS", lambda: s3.create_table("lake.reports.v", COLUMNS))
    refusal("SCHEMA_NOT_EMPTY", lambda: metadata.drop_schema("reports"))
    assert theirs.view_exists(("reports", "v"))


def test_a_table_that_is_made_anew_has_nothing_of_the_one_before(s3: Session, object_server: ObjectServer) -> None:
    old = s3.create_table("t", COLUMNS)
    old.append(ROWS)
    s3.drop_table("t")
    new = s3.create_table("t", COLUMNS)
    refusal("TABLE_NOT_FOUND", lambda: old.append(ROWS))
    assert stored(object_server, new) == []


def rename_refused(plain: Table, catalog: Catalog) -> bool:
    """Return whether the catalog refuses to rename a table, and check that it then changes nothing.

    Glue has no step that renames a table: PyIceberg makes a second entry, then drops the first.
    """
    if catalog.kind == "iceberg-glue":
        assert "copy_to" in refusal("NOT_SUPPORTED", lambda: plain.rename("new"))
        assert plain.session.tables() == ["lake.default.plain"]
        assert plain.append(ROWS).rows == 2
    return catalog.kind == "iceberg-glue"


def test_a_table_gets_another_name(s3: Session, plain: Table, catalog: Catalog, object_server: ObjectServer) -> None:
    plain.append(ROWS, txn=("load", 1))
    if rename_refused(plain, catalog):
        return
    s3.create_schema("sales")
    renamed = plain.rename("sales.new")
    assert (s3.tables(), s3.tables(schema="sales")) == ([], ["lake.sales.new"])
    refusal("TABLE_NOT_FOUND", lambda: plain.append(ROWS))
    assert renamed.append(ROWS, txn=("load", 1)).skipped
    assert renamed.append(ROWS).version == 3
    assert s3.create_table("plain", COLUMNS).append(ROWS).rows == 2
    refusal("TABLE_ALREADY_EXISTS", lambda: renamed.rename("default.plain"))
    refusal("SCHEMA_NOT_FOUND", lambda: renamed.rename("nowhere.new"))
    assert len(stored(object_server, s3.table("sales.new"))) == 4


@pytest.mark.parametrize("reaches", [True, False], ids=["the answer is lost", "the request is lost"])
def test_a_new_name_of_which_the_catalog_says_nothing(
    s3: Session, plain: Table, catalog: Catalog, reaches: bool
) -> None:
    plain.append(ROWS)
    if rename_refused(plain, catalog):
        return

    def lost(request: Request, ask: Any) -> Answer | None:
        if not request.path.endswith("/tables/rename"):
            return None
        if reaches:
            ask()
        return LOST

    with catalog.proxy.faulty(lost):
        if reaches:
            assert plain.rename("new").append(ROWS).version == 3
        else:
            refusal("FILESYSTEM_ERROR", lambda: plain.rename("new"))
    assert s3.tables() == [f"lake.default.{'new' if reaches else 'plain'}"]
