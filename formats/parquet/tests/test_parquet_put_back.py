"""A folder that was copied, put back or mixed: its table is read right, or reported to consist of two tables."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import trinity
from tests.support.put_back import rewound, swapped
from trinity import Column, Session, Table, TrinityError

PUT_BACK = 4
"""The version to which the table is put back."""
CHECKPOINT = 10
"""The first version with a checkpoint."""
LOG = "_trinity/log"


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return trinity.connect(tmp_path / "warehouse")


@pytest.fixture
def pages(session: Session) -> Table:
    """Make a plain table with the rows 1 to 4, one a version; every tenth version has a checkpoint."""
    table = session.create_table("parquet.default.pages", [Column("v", "int")])
    for value in range(1, PUT_BACK + 1):
        add(table, value)
    return table


def add(table: Table, *values: int) -> None:
    table.append(pa.table({"v": pa.array(values, pa.int32())}))


def shown(table: Table, version: int | None = None) -> list[int]:
    return sorted(table.to_arrow(version=version)["v"].to_pylist())


def elsewhere(table: Table, name: str = "pages") -> Table:
    """Open the table in a new session."""
    return trinity.connect(Path(table.location).parents[2]).table(f"parquet.default.{name}")


def copied(table: Table, name: str = "copy", *left_out: str) -> Path:
    folder = Path(table.location).with_name(name)
    shutil.copytree(table.location, folder, ignore=shutil.ignore_patterns(*left_out))
    return folder


put_back = pytest.mark.parametrize("put", [swapped, rewound])


@put_back
@pytest.mark.parametrize("since", [1, 9])
@pytest.mark.parametrize("again", [0, 1, 9])
def test_a_session_sees_what_was_put_back(
    pages: Table, put: Callable[[Table, Path], None], since: int, again: int
) -> None:
    copy = copied(pages)
    for value in range(since):
        add(pages, 100 + value)
        assert len(shown(pages)) == PUT_BACK + value + 1
    put(pages, copy)
    for value in range(again):
        add(elsewhere(pages), 200 + value)
    wanted = [1, 2, 3, 4, *range(200, 200 + again)]
    assert shown(pages) == wanted
    add(pages, 300)
    assert shown(elsewhere(pages)) == shown(pages) == [*wanted, 300]


def test_a_session_that_wrote_last_sees_what_was_put_back(pages: Table) -> None:
    """The session has read nothing after its own commit."""
    copy = copied(pages)
    add(pages, 100)
    rewound(pages, copy)
    add(elsewhere(pages), 200)
    assert shown(pages) == [1, 2, 3, 4, 200]


@pytest.mark.parametrize("ahead", [1, 8])
@pytest.mark.parametrize("behind", [1, 2, 6, 7])
def test_a_copy_that_is_put_over_a_table_that_went_on_is_noticed(pages: Table, ahead: int, behind: int) -> None:
    """No read returns rows that no version had, though commits that a checkpoint covers are not read."""
    copied(pages)
    copy = elsewhere(pages, "copy")
    for value in range(behind):
        add(copy, 100 + value)
    for value in range(behind + ahead):
        add(pages, 200 + value)
    shutil.copytree(copy.location, pages.location, dirs_exist_ok=True)
    table = elsewhere(pages)
    if PUT_BACK + behind < CHECKPOINT <= PUT_BACK + behind + ahead:
        assert shown(table) == [1, 2, 3, 4, *range(200, 200 + behind + ahead)]
        return
    with pytest.raises(TrinityError, match="two histories") as caught:
        shown(table)
    assert caught.value.code == "BAD_DATA"
    with pytest.raises(TrinityError, match="two histories"):
        add(table, 300)
    back_to = table.session.repair("parquet.default.pages", dry_run=True).back_to
    assert back_to == PUT_BACK + behind
    assert not table.session.repair("parquet.default.pages", version=back_to).skipped
    add(table, 300)
    assert shown(elsewhere(pages)) == [1, 2, 3, 4, *range(100, 100 + behind), 300]


@pytest.mark.parametrize("name", ["00000000000000000004.json", "00000000000000000002.json"])
def test_a_manifest_of_another_table_is_noticed(session: Session, pages: Table, name: str) -> None:
    other = session.create_table("parquet.default.other", [Column("v", "int")])
    for value in range(5):
        add(other, value)
    shutil.copy2(Path(other.location, LOG, name), Path(pages.location, LOG, name))
    with pytest.raises(TrinityError, match="two tables") as caught:
        shown(elsewhere(pages))
    assert caught.value.code == "BAD_DATA"


@pytest.mark.parametrize("behind", [0, 1])
def test_a_checkpoint_of_another_table_is_noticed(session: Session, pages: Table, behind: int) -> None:
    other = session.create_table("parquet.default.other", [Column("v", "int")])
    for table, count in ((pages, CHECKPOINT - PUT_BACK + behind), (other, CHECKPOINT)):
        for value in range(count):
            add(table, value)
    name = f"{LOG}/{CHECKPOINT:020d}.checkpoint.json"
    assert Path(pages.location, name).exists()
    shutil.copy2(Path(other.location, name), Path(pages.location, name))
    with pytest.raises(TrinityError, match="two tables"):
        shown(elsewhere(pages))


def test_a_copied_folder_is_a_table_by_itself(pages: Table) -> None:
    copied(pages)
    copy = elsewhere(pages, "copy")
    add(copy, 5)
    add(pages, 6)
    assert (shown(copy), shown(pages)) == ([1, 2, 3, 4, 5], [1, 2, 3, 4, 6])


def test_a_copy_that_lacks_files_says_so(pages: Table) -> None:
    [first, *_] = sorted(Path(pages.location).glob("*.parquet"))
    copied(pages, "copy", first.name)
    with pytest.raises(TrinityError, match=first.name) as caught:
        shown(elsewhere(pages, "copy"))
    assert caught.value.code == "BAD_DATA"


def test_a_copy_without_manifests_is_no_table(pages: Table) -> None:
    copied(pages, "copy", "_trinity")
    with pytest.raises(TrinityError) as caught:
        elsewhere(pages, "copy")
    assert caught.value.code == "TABLE_NOT_FOUND"
