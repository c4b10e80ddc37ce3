"""No data file holds a deleted row after a full compaction and a vacuum, whatever a table keeps beside its rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from trinity import Session, Table

_KEPT = {
    "row versions": {"watermark-key": "ts", "keep-versions": "true"},
    "changes": {"watermark-key": "ts", "changelog-producer": "lookup"},
    "whole tombstones": {"watermark-key": "ts", "tombstone.keep-values": "true", "tombstone.retention": "0 seconds"},
    "rows of groups": {
        "merge-engine": "partial-update",
        "fields.ts.sequence-group": "name",
        "fields.name.aggregate-function": "listagg",
    },
    "rows by sequence": {"merge-engine": "partial-update", "sequence.field": "ts"},
}


@pytest.mark.parametrize("kept", _KEPT)
@pytest.mark.parametrize("fmt", ["parquet", "delta", "iceberg"])
def test_an_erased_row_is_in_no_data_file(local: Session, fmt: str, kept: str) -> None:
    people = local.create_table(
        f"{fmt}.default.people",
        [{"id": 1, "name": "Ann Old", "ts": 1}, {"id": 2, "name": "Bob", "ts": 1}],
        primary_key=["id"],
        properties=_KEPT[kept],
    )
    people.compact("full")
    people.upsert([{"id": 1, "name": "Ann New", "ts": 2}])
    people.compact("resolve")
    people.delete([1])
    people.set_properties({"tombstone.retention": "0 seconds"})
    people.compact("full")
    assert files_with(people, "Ann ")  # of older versions
    people.compact("full")  # removes the tombstone
    people.vacuum(retain="0 seconds")
    assert people.to_arrow(["name"]).to_pylist() == [{"name": "Bob"}]
    assert files_with(people, "Ann ") == []


def files_with(table: Table, text: str) -> list[Path]:
    """Return the table's Parquet files that contain a text in a row."""
    files = [path for path in Path(table.location).rglob("*") if path.suffix in (".parquet", ".trinity")]
    return [path for path in files if text in repr(pq.read_table(path, partitioning=None).to_pylist())]
