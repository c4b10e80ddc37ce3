"""The newest version of a table with many commits: found by few requests, whatever the hint says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.adapter import KEYED, append
from tests.support.counting import counted
from trinity.errors import TrinityError
from trinity.spi import Connector, ConnectorContext, TableHandle
from trinity.storage import ObjectStore
from trinity.storage.commits import checkpoint_step
from trinity_parquet import ParquetFormat

COMMITS = 45


def opened(warehouse: Path) -> Connector:
    def no_spark() -> Any:
        raise AssertionError("the adapter needs no Spark")

    return ParquetFormat().create("lake", {"warehouse": str(warehouse)}, ConnectorContext(no_spark))


@pytest.fixture
def handle(tmp_path: Path) -> TableHandle:
    lake = opened(tmp_path)
    made = lake.metadata.create_table(KEYED)
    for n in range(COMMITS):
        append(lake, made, (n, "v"))
    return made


def test_opening_a_table_takes_no_more_questions_after_many_commits(handle: TableHandle, tmp_path: Path) -> None:
    with counted(ObjectStore, "get", "exists", "list") as found:
        assert opened(tmp_path).metadata.get_splits(handle).version == COMMITS
    assert found["exists"] <= 10  # versions since the last checkpoint
    assert found["get"] <= 12  # those, a checkpoint, the hint, each checkpoint that is asked for
    assert found["list"] == 0


@pytest.mark.parametrize("hint", [None, b"", b"[]", b'{"version": "x"}', b'{"version": 999}', b'{"version": 3}'])
def test_the_newest_version_is_found_whatever_the_hint_says(
    handle: TableHandle, tmp_path: Path, hint: bytes | None
) -> None:
    file = Path(handle.location, "_trinity/log/_newest.json")
    assert file.read_bytes() == b'{"version":40}'
    file.unlink() if hint is None else file.write_bytes(hint)
    lake = opened(tmp_path)
    splits = lake.metadata.get_splits(handle)
    assert (splits.version, len(splits.files)) == (COMMITS, COMMITS)
    assert append(lake, handle, (99, "w")).version == COMMITS + 1


def test_a_hint_of_a_vacuumed_version_is_none(handle: TableHandle, tmp_path: Path) -> None:
    file = Path(handle.location, "_trinity/log/_newest.json")
    file.write_bytes(b'{"version": 7}')
    for version in range(1, 40):  # as a vacuum does it
        for ending in (".json", ".checkpoint.json"):
            Path(handle.location, "_trinity/log", f"{version:020d}{ending}").unlink(missing_ok=True)
    assert opened(tmp_path).metadata.get_splits(handle).version == COMMITS


def test_a_table_that_is_gone_is_told_as_gone(handle: TableHandle, tmp_path: Path) -> None:
    lake = opened(tmp_path)
    lake.metadata.drop_table(handle)
    with pytest.raises(TrinityError, match="does not exist"):
        opened(tmp_path).metadata.get_splits(handle)


@pytest.mark.parametrize("interval", [1, 10, 100])
def test_checkpoints_repeat_few_files_for_each_commit(interval: int) -> None:
    """This holds for any length of a log without compactions; and a reader opens few commits after a checkpoint."""
    repeated = 0
    for files in range(1, 20_000):
        step = checkpoint_step(interval, files)
        assert step <= max(interval, files // 20)
        if files % step == 0:
            repeated += files
        assert repeated <= 40 * files
