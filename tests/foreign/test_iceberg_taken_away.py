"""The definition in an Iceberg table of Trinity, which another engine removes or changes: noticed, and repaired."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import trinity
from tests.support.iceberg import pyiceberg
from tests.support.refusals import refused
from trinity import Table

DEFINITION, STATE = "trinity.definition", "trinity.state"
NAME = "iceberg.default.seats"
OPTIONS = {"watermark-key": "ts", "tombstone-key": "gone"}
LATE = [{"id": "a", "ts": 5, "gone": False}]
LIVE = [{"id": "b", "ts": 1, "gone": False}]


@pytest.fixture
def seats(warehouse: Path) -> Iterator[Table]:
    """Yield a table in which b is live, and the tombstone of a is in the sidecar."""
    rows = [{"id": key, "ts": 1, "gone": False} for key in "ab"]
    with trinity.connect(warehouse, engine="local") as session:
        table = session.create_table(NAME, rows, primary_key=["id"], properties=OPTIONS)
        table.upsert([{"id": "a", "ts": 9, "gone": True}])
        table.compact(full=True)
        yield table


def take_away(table: Table, *names: str) -> None:
    with pyiceberg(table).transaction() as changes:
        changes.remove_properties(*names)


def unset(table: Table, text: str) -> None:
    take_away(table, DEFINITION)


def of_another_table(table: Table, text: str) -> None:
    other = table.session.create_table("iceberg.default.other", [{"id": "a", "n": 1}], primary_key=["id"])
    set_definition(table, pyiceberg(other).properties[DEFINITION])


def of_the_first_version(table: Table, text: str) -> None:
    table.set_properties({"keep-versions": "7"})
    set_definition(table, text)


def edited(table: Table, text: str) -> None:
    set_definition(table, json.dumps({**json.loads(text), "properties": {"watermark-key": "ts"}}))


def garbage(table: Table, text: str) -> None:
    set_definition(table, "{}")


def nothing(table: Table, text: str) -> None:
    set_definition(table, "null")


def set_definition(table: Table, text: str) -> None:
    with pyiceberg(table).transaction() as changes:
        changes.set_properties({DEFINITION: text})


def elsewhere(table: Table) -> Table:
    """Open the table in a new session."""
    return trinity.connect(Path(table.location).parents[2], engine="local").table(NAME)


def live(table: Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_arrow().to_pylist()
    return rows


@pytest.mark.parametrize("altered", [False, True], ids=["first", "altered"])
@pytest.mark.parametrize("change", [unset, of_another_table, of_the_first_version, edited, garbage, nothing])
def test_nobody_guesses_what_the_key_is(seats: Table, altered: bool, change: Callable[[Table, str], None]) -> None:
    text = pyiceberg(seats).properties[DEFINITION]
    if altered:
        seats.add_column(trinity.Column("v", "string"))
    change(seats, text)
    version = pyiceberg(seats).current_snapshot().sequence_number
    for table in (seats, elsewhere(seats)):
        for call in (
            lambda table=table: table.definition,
            table.splits,
            table.to_arrow,
            table.health,
            lambda table=table: table.upsert(LATE),
            lambda table=table: table.delete(["b"]),
            lambda table=table: table.compact(full=True),
            lambda table=table: table.session.sql(f"SELECT * FROM {NAME}").fetchall(),
        ):
            with refused("NOT_SUPPORTED", DEFINITION, "default.seats", "session.repair(", STATE):
                call()
    session = elsewhere(seats).session
    assert not session.repair(NAME, dry_run=True).skipped
    with refused("NOT_SUPPORTED", DEFINITION):
        live(seats)
    session.repair(NAME)
    assert seats.version == version
    for table in (seats, elsewhere(seats)):
        table.upsert(LATE)
        assert [row["id"] for row in live(table)] == ["b"]


def test_a_table_that_lost_it_is_dropped(seats: Table) -> None:
    take_away(seats, DEFINITION)
    session = elsewhere(seats).session
    session.drop_table(NAME)
    assert not session.table_exists(NAME)


def test_a_table_that_is_handed_over_is_external(seats: Table) -> None:
    """Without both properties the stored row versions remain, and none of Trinity's tombstones."""
    kept = {key for key in pyiceberg(seats).properties if key.startswith(f"{DEFINITION}.")}
    take_away(seats, DEFINITION, STATE, *kept)
    for table in (seats, elsewhere(seats)):
        assert table.definition.external
        assert live(table) == LIVE


def test_what_no_metadata_file_has_is_not_made_up(seats: Table) -> None:
    take_away(seats, DEFINITION)
    for entry in pyiceberg(seats).metadata.metadata_log:
        Path(entry.metadata_file.removeprefix("file://")).unlink()
    with refused("NOT_SUPPORTED", "No metadata file", "default.seats", DEFINITION):
        elsewhere(seats).session.repair(NAME)
