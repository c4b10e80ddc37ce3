"""Folders that Iceberg's own REST catalog chooses by the names of tables: two tables may be given the same one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog

import trinity
from tests.support.object_store import ObjectServer
from tests.support.rest_catalog import running_rest_catalog
from tests.support.vending import running_vending
from trinity import Session

pytestmark = pytest.mark.full

MINE, THEIRS = pa.table({"a": [1]}), pa.table({"b": ["x"]})


@dataclass(frozen=True)
class Server:
    """A server without a warehouse in a bucket that Trinity knows: it chooses the folders of tables.

    Attributes:
        address: the server's own address, by which PyIceberg reaches it with keys of its own.
        settings: Trinity's settings of the catalog.
    """

    address: str
    settings: dict[str, Any]


@pytest.fixture(params=["disk", "bucket"])
def rest_server(
    request: pytest.FixtureRequest, rest_catalog_jars: Path, object_server: ObjectServer, place: str, tmp_path: Path
) -> Iterator[Server]:
    """Yield a server that puts tables on a disk, or into a bucket, for which it hands out keys."""
    in_bucket = request.param == "bucket"
    warehouse = place if in_bucket else str(tmp_path / "w")
    with running_rest_catalog(rest_catalog_jars, object_server.options, warehouse) as address:
        if not in_bucket:
            yield Server(address, {"connector": "iceberg", "type": "rest", "uri": address})
            return
        with running_vending(address, object_server) as vending:
            yield Server(address, vending.settings("lake"))


@pytest.fixture
def session(rest_server: Server) -> Iterator[Session]:
    """Yield a session on the catalog."""
    with trinity.connect(catalogs={"lake": rest_server.settings}) as found:
        found.create_schema("lake.s")
        yield found


@pytest.fixture
def their_catalog(rest_server: Server, object_server: ObjectServer) -> Catalog:
    """Return the catalog as PyIceberg opens it without Trinity."""
    known = {f"s3.{option.replace('_', '-')}": str(value) for option, value in object_server.options.items()}
    return load_catalog("theirs", type="rest", uri=rest_server.address, **known)


def test_a_new_table_has_no_folder_of_a_renamed_one(session: Session) -> None:
    first = session.create_table("lake.s.t", MINE)
    first.rename("renamed")
    second = session.create_table("lake.s.t", THEIRS)
    assert second.location != first.location
    second.vacuum(retain="0 seconds")
    session.drop_table("lake.s.t")
    assert session.table("lake.s.renamed").to_arrow().equals(MINE)


def test_a_dropped_table_leaves_a_folder_that_it_shares(session: Session, their_catalog: Catalog) -> None:
    """Another engine renames Trinity's table, and makes one of its name."""
    location = session.create_table("lake.s.t", MINE).location
    their_catalog.rename_table(("s", "t"), ("s", "renamed"))
    theirs = their_catalog.create_table(("s", "t"), THEIRS.schema)
    theirs.append(THEIRS)
    assert session.table("lake.s.t").location == location
    session.table("lake.s.renamed").vacuum(retain="0 seconds")
    session.drop_table("lake.s.renamed")
    assert their_catalog.load_table(("s", "t")).scan().to_arrow()["b"].to_pylist() == ["x"]
    session.create_table("lake.s.alone", MINE)
    session.drop_table("lake.s.alone")
    assert session.tables(schema="lake.s") == ["lake.s.t"]
