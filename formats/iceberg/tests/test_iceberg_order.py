"""The adapter's knowledge of the order of rows that another engine may have rewritten (L3)."""

from __future__ import annotations

from pyiceberg.manifest import DataFile, ManifestEntry
from pyiceberg.table.snapshots import Operation, Snapshot, Summary

from trinity.spi import Origin, RowOrder
from trinity.storage.parquet_sink import is_sink_file
from trinity_iceberg.carried import order_after
from trinity_iceberg.manifests import origin_of

OWN = "0123456789abcdef0123456789abcdef-000003-89abcdef.parquet"
OTHERS = "00000-3-01234567-89ab-cdef-0123-456789abcdef-00001.parquet"


def snapshot(number: int, operation: Operation, added: int = 0, deleted: int = 0) -> Snapshot:
    counts = {"added-records": str(added), "deleted-records": str(deleted)}
    return Snapshot.model_validate(
        {
            "snapshot-id": number,
            "sequence-number": number,
            "timestamp-ms": number,
            "manifest-list": "none",
            "summary": Summary(operation=operation, **counts),
        }
    )


def entry(name: str, of_rows: int = 7) -> ManifestEntry:
    """Return the entry of a file that was committed with sequence number 7, and whose rows may have another one."""
    found = ManifestEntry.from_args(data_file=DataFile.from_args(file_path=f"file:///t/data/{name}"))
    found.sequence_number, found.file_sequence_number = of_rows, 7
    return found


def test_who_made_a_file() -> None:
    assert is_sink_file(OWN)
    assert is_sink_file(OWN.replace(".parquet", "-000001.parquet"))
    assert is_sink_file(OWN.replace(".parquet", "_00001.c000.parquet"))
    assert origin_of(entry(OWN), None) is Origin.OWN
    assert origin_of(entry(OTHERS), snapshot(7, Operation.APPEND)) is Origin.ADDED
    assert origin_of(entry(OTHERS), snapshot(7, Operation.REPLACE)) is Origin.REWRITTEN
    assert origin_of(entry(OTHERS), None) is Origin.UNSURE
    assert origin_of(entry(OTHERS, of_rows=5), None) is Origin.REWRITTEN


def test_rows_of_others_are_noticed_and_copies_are_not() -> None:
    known = RowOrder(through=6)
    assert order_after(known, [snapshot(7, Operation.APPEND, 1)], 7).strangers == 7
    assert order_after(known, [snapshot(7, Operation.OVERWRITE, 3, 2)], 7).strangers == 7
    assert order_after(known, [snapshot(7, Operation.OVERWRITE, 2, 2)], 7).strangers == 0
    assert order_after(known, [snapshot(7, Operation.REPLACE, 2, 2), snapshot(8, Operation.DELETE)], 8).strangers == 0


def test_an_expired_commit_may_have_added_rows() -> None:
    known = RowOrder(through=6)
    assert order_after(known, [snapshot(8, Operation.REPLACE)], 8).strangers == 8
    assert order_after(known, [], 6).strangers == 0
