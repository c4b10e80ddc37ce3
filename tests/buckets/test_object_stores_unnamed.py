"""Tables without a name in a bucket, as a kill leaves them: maintain() with a vacuum removes them, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.bucket_lake import COLUMNS, ROWS, BucketLake, bucket_lake, objects, stored
from tests.support.fault_proxy import Answer, Request
from tests.support.object_store import ObjectServer
from tests.support.refusals import refusal
from trinity import Session, Table
from trinity.storage import Location, ObjectStore
from trinity.storage.object_names import NameLog

pytestmark = pytest.mark.inner

DENIED = Answer(403, b"<Error><Code>AccessDenied</Code></Error>")


@pytest.fixture(params=["parquet", "delta"])
def cloud(request: pytest.FixtureRequest, object_server: ObjectServer, bucket: str) -> BucketLake:
    """Return a catalog that keeps its names in the bucket."""
    return bucket_lake(str(request.param), object_server, bucket, {})


def dropped(session: Session, cloud: BucketLake) -> Table:
    """Drop a table whose files cannot be deleted at that time."""
    table = session.create_table("t", COLUMNS)
    table.append(ROWS)
    with cloud.server.proxy.faulty(lambda request, ask: DENIED if "delete" in request.path else None):
        session.drop_table("t")
    assert len(objects(cloud.server, table.location)) > 2
    return table


def named(request: Request) -> bool:
    """Return whether a request gives a table its name."""
    return request.method == "PUT" and "/_trinity/tables/" in request.path


def unmade(session: Session, cloud: BucketLake) -> list[str]:
    """Fail to create a table when it gets its name, and return the names of the objects that this leaves."""
    before = set(objects(cloud.server, cloud.place))
    with cloud.server.proxy.faulty(lambda request, ask: DENIED if named(request) else None):
        refusal("PERMISSION_DENIED", lambda: session.create_table("t", COLUMNS))
    return sorted(set(objects(cloud.server, cloud.place)) - before)


def swept(session: Session, retain: str = "0 seconds") -> int:
    """Vacuum the whole catalog, and return the number of objects removed that belong to no table."""
    done = [kept for kept in session.maintain("lake.default", vacuum=retain) if kept.table == "lake.default"]
    assert [kept.error for kept in done if kept.error] == []
    return sum(kept.vacuumed.files for kept in done if kept.vacuumed)


def test_what_a_drop_and_a_create_have_left_goes(s3: Session, plain: Table, cloud: BucketLake) -> None:
    plain.append(ROWS)
    empty = s3.create_table("empty", COLUMNS)
    gone, left = dropped(s3, cloud), unmade(s3, cloud)
    assert left
    assert swept(s3, "1 day") == 0
    there = len(left) + len(objects(cloud.server, gone.location))
    assert swept(s3) == there
    assert swept(s3) == 0
    assert objects(cloud.server, gone.location) == []
    assert not set(left) & set(objects(cloud.server, cloud.place))
    assert len(stored(cloud.server, plain)) == 2
    assert empty.append(ROWS).rows == 2
    assert s3.create_table("t", COLUMNS).append(ROWS).rows == 2


def test_what_dropped_schemas_have_left_goes(s3: Session, cloud: BucketLake) -> None:
    """The sweep of ``default`` removes it, as no other schema is always there."""
    for schema in ("sales", "odd name.ä", "kept"):
        s3.create_schema(f"lake.`{schema}`")
        s3.create_table(f"lake.`{schema}`.t", COLUMNS).append(ROWS)
    with cloud.server.proxy.faulty(lambda request, ask: DENIED if "delete" in request.path else None):
        for schema in ("sales", "odd name.ä"):
            s3.drop_table(f"lake.`{schema}`.t")
            s3.drop_schema(f"lake.`{schema}`")
    s3.create_schema("lake.sales")
    s3.drop_schema("lake.sales")
    assert swept(s3, "1 day") == 0
    assert swept(s3) > 4
    assert swept(s3) == 0
    assert [name for name in objects(cloud.server, cloud.place) if "parquet" in name and "kept" not in name] == []
    assert s3.table("lake.kept.t").count() == len(ROWS)


def test_what_others_put_there_stays(s3: Session, plain: Table, cloud: BucketLake) -> None:
    """A vacuum keeps the files of a table that no name records as dropped."""
    store = ObjectStore(f"{cloud.place}/default/theirs-0123456789abcdef")
    for name in ("metadata/00000.metadata.json", "data/part.parquet"):
        store.put(name, b"{}")
    s3.drop_table("plain")
    kept = ObjectStore(plain.location)
    kept.put("_delta_log/00.json", b"{}")
    assert swept(s3) == 1  # an object that was put into the dropped table
    assert [entry.path for entry in store.list()] == ["data/part.parquet", "metadata/00000.metadata.json"]


def test_a_table_that_is_swept_before_it_has_its_name_is_not_made(s3: Session, cloud: BucketLake) -> None:
    removed: list[int] = []

    def sweeps(request: Request, ask: Any) -> None:
        if named(request) and not removed:
            removed.append(0)
            with cloud.connect() as other:
                removed.append(swept(other))

    with cloud.server.proxy.faulty(sweeps):
        assert "create it again" in refusal("TRANSACTION_CONFLICT", lambda: s3.create_table("t", COLUMNS))
    assert removed[1] > 0
    assert s3.list_tables("lake", "default") == []
    assert s3.create_table("t", COLUMNS).append(ROWS).rows == 2


def test_a_table_that_gets_its_name_while_it_is_swept_stays(s3: Session, cloud: BucketLake) -> None:
    [first, *_] = unmade(s3, cloud)
    place = "/".join(first.split("/")[first.split("/").index("default") :][:2])
    names = NameLog(ObjectStore(Location.of(cloud.place)), "_trinity/tables")
    late: list[str] = []

    def names_it(request: Request, ask: Any) -> None:
        if request.method == "PUT" and request.path.endswith("_trinity-going") and not late:
            late.append(place)
            names.take("default", "t", location=place)

    with cloud.server.proxy.faulty(names_it):
        assert swept(s3) == 0
    assert late
    table = s3.table("t")
    assert table.append(ROWS).rows == 2
    assert not [name for name in objects(cloud.server, table.location) if name.endswith("-going")]
