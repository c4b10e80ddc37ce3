"""Many commits: none reads or copies the versions before it, and old ones are forgotten where the table says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pyiceberg.catalog.sql import SqlCatalog

from tests.support.adapter import KEYED, append, code_of, stored
from tests.support.counting import counted
from tests.support.iceberg_lake import open_catalog
from trinity.spi import TableHandle
from trinity_iceberg import IcebergConnector
from trinity_iceberg.expire import EXPIRED_AT_ONCE
from trinity_iceberg.io import SyncedFileIO


def metadata_files(handle: TableHandle) -> list[Path]:
    return sorted(Path(handle.location, "metadata").glob("*.metadata.json"))


def test_a_commit_reads_no_metadata_file_and_writes_what_pyiceberg_reads(
    lake: IcebergConnector, handle: TableHandle
) -> None:
    append(lake, handle, (0, "a"))
    with counted(SyncedFileIO, "new_input", by=lambda io, location: location) as read:
        for n in range(1, 6):
            append(lake, handle, (n, "b"), txn=("app", n))
    assert [name for name in read if name.endswith(".metadata.json")] == []
    plain = SqlCatalog(lake._iceberg.name, **lake._iceberg.properties).load_table(("default", handle.table))
    known = lake._iceberg.load_table(("default", handle.table))
    assert known.metadata_location == plain.metadata_location
    assert known.metadata == plain.metadata
    assert len(plain.metadata.snapshots) == len(plain.metadata.snapshot_log) == 7


def test_a_metadata_file_that_is_another_one_now_is_read_again(lake: IcebergConnector, handle: TableHandle) -> None:
    append(lake, handle, (0, "a"))
    newest = metadata_files(handle)[-1]
    newest.write_bytes(b"x" * newest.stat().st_size)
    assert code_of(lambda: append(lake, handle, (1, "b")))[0] == "BAD_DATA"


AT_ONCE = 6


@EXPIRED_AT_ONCE.set_to(AT_ONCE)
def test_appends_forget_old_versions_where_the_table_says_so(lake: IcebergConnector) -> None:
    properties = {
        "history.expire.max-snapshot-age-ms": "0",
        "history.expire.min-snapshots-to-keep": "5",
        "write.metadata.previous-versions-max": "2",
    }
    table = lake.metadata.create_table(replace(KEYED, properties=properties))
    append(lake, table, (0, "a"), txn=("once", 7))
    sizes = []
    for n in range(1, 3 * AT_ONCE + 20):
        append(lake, table, (n % 3, "b"), txn=("app", n))
        sizes.append(metadata_files(table)[-1].stat().st_size)
    history = lake.metadata.history(table)
    assert 5 <= len(history) <= AT_ONCE + 6
    assert max(sizes[AT_ONCE:]) <= 1.05 * max(sizes[: AT_ONCE + 6])
    assert len(stored(lake, table)) == 3 * AT_ONCE + 20
    assert len(lake.metadata.get_splits(replace(table, version=history[0].version)).files) == history[0].version - 1
    code, message = code_of(lambda: lake.metadata.get_splits(replace(table, version=3)))
    assert code == "INVALID_ARGUMENTS"
    assert f"the oldest readable one is {history[0].version}" in message
    assert lake.metadata.recorded_txn(table, "once") == 7  # L4
    again = open_catalog(Path(table.location).parents[1])
    assert again.metadata.recorded_txn(table, "once") == 7


@EXPIRED_AT_ONCE.set_to(1)
def test_without_that_all_versions_stay(lake: IcebergConnector, handle: TableHandle) -> None:
    for n in range(3):
        append(lake, handle, (n, "a"))
    assert len(lake.metadata.history(handle)) == 4
