"""Repair: it removes only versions that are provably damaged, and first reports what would be lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support.iceberg import pyiceberg
from tests.support.pages import some
from tests.support.refusals import refusal
from tests.support.tables import reopened
from trinity import Session, Table, TrinityError
from trinity.cli.main import app
from trinity.storage import ObjectStore


def values(table: Table) -> list[int]:
    return sorted(reopened(table).to_arrow()["v"].to_pylist())


def damage(table: Table, behind: int) -> tuple[Path, bytes]:
    """Damage what the commit of a row wrote, and return the file and its bytes; ``behind`` is the row before it."""
    kind = str(table.name.catalog)
    if kind == "iceberg":
        metadata = pyiceberg(table).metadata
        manifests = [m for s in metadata.snapshots for m in s.manifests(pyiceberg(table).io)]
        path = Path(
            sorted({(m.sequence_number, m.manifest_path) for m in manifests})[behind][1].removeprefix("file://")
        )
    else:
        folder = {"parquet": "_trinity/log", "delta": "_delta_log"}[kind]
        path = sorted(Path(table.location, folder).glob("*[0-9].json"))[1 + behind]
    before = path.read_bytes()
    path.write_bytes(before[: len(before) // 2])
    return path, before


def test_commits_that_are_whole_are_lost_by_confirmation_alone(session: Session, pages: Table) -> None:
    path, whole = damage(pages, 1)  # the commit of row 2; those of 3 and 4 are undamaged, and depend on it
    again = reopened(pages).session
    preview = again.repair(str(pages.name), dry_run=True)
    assert [commit.damaged for commit in preview.lost] == [False, False, True]
    assert path.name in preview.lost[-1].what
    back = preview.back_to
    says = rf"goes back to version {back}, 2 of which may be whole, and loses 3 commits.*version={back}"
    refusal("INVALID_ARGUMENTS", lambda: again.repair(str(pages.name)), says)
    refusal("INVALID_ARGUMENTS", lambda: again.repair(str(pages.name), version=77), "not to version 77")
    path.write_bytes(whole)
    assert values(pages) == [1, 2, 3, 4]
    assert reopened(pages).session.repair(str(pages.name), dry_run=True).skipped
    damage(pages, 1)
    done = reopened(pages).session.repair(str(pages.name), version=preview.back_to)
    assert (done.skipped, done.back_to) == (False, preview.back_to)
    assert [commit.version for commit in done.lost] == [commit.version for commit in preview.lost]
    assert values(pages) == [1]


def test_a_store_that_does_not_answer_is_no_damage(
    session: Session, pages: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repair during a failure must not take files that cannot be read now for lost."""
    again = reopened(pages).session
    get = ObjectStore.get

    def silent(store: ObjectStore, name: str) -> bytes:
        if name.endswith(("4.json", "index.json", ".metadata.json")):
            raise TrinityError("FILESYSTEM_ERROR", "The store does not answer.")
        return get(store, name)

    with monkeypatch.context() as patch:
        patch.setattr(ObjectStore, "get", silent)
        if pages.name.catalog == "iceberg":
            metadata: Any = again.table(str(pages.name)).connector.metadata
            patch.setattr(metadata._tables, "load", lambda table: silent(ObjectStore(table.location), ".metadata.json"))
        refusal("FILESYSTEM_ERROR", lambda: again.repair(str(pages.name)), "does not answer")
    assert values(pages) == [1, 2, 3, 4]


def test_the_command_tells_first(session: Session, warehouse: Path, pages: Table) -> None:
    damage(pages, 1)

    def run(*options: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, ["repair", str(pages.name), "-w", str(warehouse), *options])
        return done.exit_code, done.output

    code, output = run("--dry-run")
    assert code == 0
    assert "may be whole" in output
    assert "would be current" in output
    assert run()[0] != 0
    version = output.rpartition("version ")[2].split()[0]
    assert run("--version", version)[0] == 0
    assert values(pages) == [1]


# -- Iceberg: metadata that PyIceberg does not know -----------------------------------------------------------


def variant(metadata: dict[str, Any]) -> None:
    metadata["format-version"] = 3
    metadata["next-row-id"] = 0
    metadata["schemas"][-1]["fields"].append({"id": 9, "name": "any", "required": False, "type": "variant"})


def nested_variant(metadata: dict[str, Any]) -> None:
    within = {"id": 10, "name": "some", "required": False, "type": "variant"}
    kind = {"type": "struct", "fields": [within]}
    metadata["schemas"][-1]["fields"].append({"id": 9, "name": "st", "required": False, "type": kind})


def version_4(metadata: dict[str, Any]) -> None:
    metadata["format-version"] = 4
    del metadata["last-sequence-number"]


def unknown_thing(metadata: dict[str, Any]) -> None:
    metadata["refs"]["main"]["type"] = "stack"


UNKNOWN: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "variant": (variant, "column 'any' of type 'variant'"),
    "nested variant": (nested_variant, "column 'st.some' of type 'variant'"),
    "version 4": (version_4, "format version 4"),
    "another kind of reference": (unknown_thing, "does not understand.*refs"),
}


@pytest.mark.parametrize("how", UNKNOWN)
@pytest.mark.parametrize("fmt", ["iceberg"])
def test_what_is_not_understood_is_no_damage(session: Session, pages: Table, how: str) -> None:
    change, says = UNKNOWN[how]
    path = Path(pyiceberg(pages).metadata_location.removeprefix("file://"))
    before = path.read_text()
    metadata = json.loads(before)
    change(metadata)
    path.write_text(json.dumps(metadata))
    again = reopened(pages)
    calls: list[Callable[[], object]] = [
        again.to_arrow,
        lambda: again.append(some(5)),
        again.history,
        lambda: again.session.repair(str(pages.name)),
        lambda: again.session.repair(str(pages.name), dry_run=True),
    ]
    for call in calls:
        refusal("NOT_SUPPORTED", call, says)
    assert json.loads(path.read_text()) == metadata
    path.write_text(before)
    assert values(pages) == [1, 2, 3, 4]
    again.append(some(5))
    assert values(pages) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("fmt", ["iceberg"])
def test_a_version_that_is_refused_is_no_damage(session: Session, pages: Table) -> None:
    theirs = pyiceberg(pages)
    with theirs.transaction() as changes:
        changes.set_properties({"schema.name-mapping.default": theirs.schema().name_mapping.model_dump_json()})
    with theirs.update_schema() as schema:
        schema.rename_column("v", "w")
    again = reopened(pages)
    refusal("NOT_SUPPORTED", again.to_arrow, "renamed columns")
    assert again.session.repair(str(pages.name)).skipped
    assert pyiceberg(pages).metadata.current_snapshot_id == theirs.metadata.current_snapshot_id


@pytest.mark.parametrize("fmt", ["iceberg"])
def test_a_table_that_is_not_understood_can_be_dropped(session: Session, pages: Table) -> None:
    path = Path(pyiceberg(pages).metadata_location.removeprefix("file://"))
    metadata = json.loads(path.read_text())
    version_4(metadata)
    path.write_text(json.dumps(metadata))
    reopened(pages).session.drop_table(str(pages.name))
    assert not Path(pages.location).exists()
