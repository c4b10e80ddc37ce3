"""A table whose metadata a newer release wrote is refused by name, and nothing is written (L12)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

import trinity
from tests.support.refusals import refused
from trinity import Session, Table
from trinity.spi import schema

NEWER = schema.METADATA_VERSION + 1
SAYS = (
    "A newer release of Trinity wrote table 'default.t'",
    f"version {NEWER}, and this release reads up to {NEWER - 1}. Upgrade",
)


def digests(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.rglob("*.*")}


def as_newer(patch: pytest.MonkeyPatch) -> None:
    """Have this process write definitions as a newer release."""
    patch.setattr(schema, "METADATA_VERSION", NEWER)
    patch.setattr(schema.TableDefinition, "needed_version", NEWER)


def written_by_newer(warehouse: Path, fmt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a table, and change its definition as a release with a newer metadata version does."""
    with trinity.connect(warehouse, engine="local") as session:
        table = session.create_table(f"{fmt}.default.t", [{"id": 1, "v": "a"}], primary_key=["id"])
        with monkeypatch.context() as newer:
            as_newer(newer)
            table.set_properties({"keep-versions": "7"})
            table.upsert([{"id": 2, "v": "b"}])


READS: dict[str, Callable[[Session, str], object]] = {
    "table": lambda s, name: s.table(name).to_arrow(),
    "sql": lambda s, name: s.sql(f"SELECT * FROM {name}").fetchall(),
    "describe": lambda s, name: s.sql(f"DESCRIBE TABLE {name}").fetchall(),
}
WRITES: dict[str, Callable[[Session, str], object]] = {
    "upsert": lambda s, name: s.table(name).upsert([{"id": 1, "v": "c"}]),
    "delete": lambda s, name: s.sql(f"DELETE FROM {name} WHERE id = 1"),
    "alter": lambda s, name: s.sql(f"ALTER TABLE {name} ADD COLUMN w INT"),
    "compact": lambda s, name: s.table(name).compact("full"),
    "vacuum": lambda s, name: s.table(name).vacuum(),
    "repair": lambda s, name: s.repair(name),
}


def test_statements_are_refused_and_write_nothing(warehouse: Path, fmt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written_by_newer(warehouse, fmt, monkeypatch)
    before = digests(warehouse)
    with trinity.connect(warehouse, engine="local") as session:
        for statement in (READS | WRITES).values():
            with refused("NOT_SUPPORTED", *SAYS):
                statement(session, f"{fmt}.default.t")
    assert digests(warehouse) == before


def test_a_process_that_has_the_table_open_is_refused_too(
    warehouse: Path, fmt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with trinity.connect(warehouse, engine="local") as session:
        table = session.create_table(f"{fmt}.default.t", [{"id": 1, "v": "a"}], primary_key=["id"])
        assert table.count() == 1
        with trinity.connect(warehouse, engine="local") as other, monkeypatch.context() as newer:
            as_newer(newer)
            other.table(f"{fmt}.default.t").set_properties({"keep-versions": "7"})
        with refused("NOT_SUPPORTED", *SAYS):
            table.upsert([{"id": 2, "v": "b"}])
        with refused("NOT_SUPPORTED", *SAYS):
            table.count()


def test_its_neighbours_and_its_name_stay_usable(warehouse: Path, fmt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written_by_newer(warehouse, fmt, monkeypatch)
    with trinity.connect(warehouse, engine="local") as session:
        session.create_table(f"{fmt}.default.other", [{"id": 1}])
        assert session.tables(schema=f"{fmt}.default") == [f"{fmt}.default.other", f"{fmt}.default.t"]
        session.drop_table(f"{fmt}.default.t")
        assert session.tables(schema=f"{fmt}.default") == [f"{fmt}.default.other"]


def test_a_table_without_the_number_reads_as_before(warehouse: Path, fmt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_number(definition: schema.TableDefinition) -> dict[str, object]:
        return {k: v for k, v in as_now(definition).items() if k != "metadata_version"}

    as_now = schema.TableDefinition.to_dict
    with trinity.connect(warehouse, engine="local") as session, monkeypatch.context() as older:
        older.setattr(schema.TableDefinition, "to_dict", without_number)
        session.create_table(f"{fmt}.default.t", [{"id": 1, "v": "a"}], primary_key=["id"])
    with trinity.connect(warehouse, engine="local") as session:
        table: Table = session.table(f"{fmt}.default.t")
        table.upsert([{"id": 2, "v": "b"}])
        assert table.count() == 2
