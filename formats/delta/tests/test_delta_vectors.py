"""Deletion vectors without a JVM: the form that Delta's protocol gives them, in files and in the log."""

from __future__ import annotations

import dataclasses
import json
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.adapter import rewrite_in
from trinity.errors import TrinityError
from trinity.spi import DataFile, SinkId
from trinity.storage import DeletesFragment, ObjectStore
from trinity_delta.actions import loosened
from trinity_delta.deletes import (
    DeletionVectorSink,
    deletion_vector,
    from_z85,
    is_vector_file,
    to_z85,
    vectors_of_fragments,
)

BITMAP = bytes.fromhex("d1d339640100000000000000000000003a3000000100000000000500100000000300040007000b0012001d00")
"""A magic number, the number of bitmaps, the key of the first one, and that in Roaring's portable form."""
INLINE: dict[str, Any] = {
    "storageType": "i",
    "pathOrInlineDv": to_z85(BITMAP),
    "sizeInBytes": len(BITMAP),
    "cardinality": 6,
}


def written(folder: Path, *files: tuple[DataFile, list[int]]) -> dict[str, DeletesFragment]:
    rewrite = rewrite_in(folder)
    sink = DeletionVectorSink(rewrite, SinkId())
    for file, positions in files:
        sink.delete_rows(file, pa.array(positions, pa.int64()))
    return vectors_of_fragments(rewrite, sink.finish())


def test_the_form_is_the_protocols(tmp_path: Path) -> None:
    found = deletion_vector(ObjectStore(str(tmp_path)), INLINE)
    assert found.positions().to_pylist() == [3, 4, 7, 11, 18, 29]
    assert (found.paths, found.to_action()) == ((), INLINE)
    relative = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "sizeInBytes": 40, "cardinality": 6}
    [path] = deletion_vector(ObjectStore("/t"), relative).paths
    assert path == "/t/ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    absolute = {**relative, "storageType": "p", "pathOrInlineDv": "file:/elsewhere/x.bin"}
    assert deletion_vector(ObjectStore("/t"), absolute).paths == ("/elsewhere/x.bin",)


def test_r1_one_file_has_the_vectors_of_many(tmp_path: Path) -> None:
    dense, sparse = list(range(1000, 90_000)), [5, 2**33, 1]
    files = [DataFile(f"/t/{n}.parquet", 10, 2**34) for n in range(2)]
    found = written(tmp_path, (files[0], dense), (files[1], sparse))
    assert {path for made in found.values() for path in made.deletes.paths} == {str(p) for p in tmp_path.iterdir()}
    for file, positions in zip(files, (dense, sparse), strict=True):
        assert found[file.path].deletes.rows == len(positions)
        assert found[file.path].deletes.positions().to_pylist() == sorted(positions)
    [path] = tmp_path.iterdir()
    assert sum(made.size for made in found.values()) == path.stat().st_size - 1
    assert path.stat().st_size < 1000  # runs of rows are runs
    assert is_vector_file(str(path))
    again = written(tmp_path, (dataclasses.replace(files[1], deletes=found[files[1].path].deletes), [7, 5]))
    assert again[files[1].path].deletes.positions().to_pylist() == [1, 5, 7, 2**33]


def test_vectors_of_a_file_from_two_tasks_come_together(tmp_path: Path) -> None:
    rewrite, fragments = rewrite_in(tmp_path), list[bytes]()
    for order, positions in enumerate([[5, 6], [7]]):
        sink = DeletionVectorSink(rewrite, SinkId(order))
        sink.delete_rows(DataFile("/t/a.parquet", 10, 100), pa.array(positions, pa.int64()))
        fragments += sink.finish()
    [both] = vectors_of_fragments(rewrite, fragments).values()
    assert (both.deletes.rows, both.deletes.positions().to_pylist()) == (3, [5, 6, 7])


def test_an_abort_leaves_no_file(tmp_path: Path) -> None:
    sink = DeletionVectorSink(rewrite_in(tmp_path), SinkId())
    sink.delete_rows(DataFile("/t/a.parquet", 10, 100), pa.array([1], pa.int64()))
    sink.finish()
    sink.abort()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["missing", "corrupt", "short", "other"])
def test_a_damaged_file_of_vectors_is_named(tmp_path: Path, damage: str) -> None:
    [made] = written(tmp_path, (DataFile("/t/a.parquet", 10, 100), [1, 2, 3])).values()
    [path] = tmp_path.iterdir()
    data = bytearray(path.read_bytes())
    if damage == "missing":
        path.unlink()
    elif damage == "corrupt":
        data[-6] ^= 1
        path.write_bytes(data)
    else:
        path.write_bytes(data[:-3] if damage == "short" else b"")
    with pytest.raises(TrinityError, match=path.name) as caught:
        made.deletes.positions()
    assert caught.value.code == "BAD_DATA"


@pytest.mark.parametrize(
    "message",
    [
        {**INLINE, "pathOrInlineDv": INLINE["pathOrInlineDv"][:18]},
        {**INLINE, "pathOrInlineDv": "~~~~~"},
        {**INLINE, "pathOrInlineDv": "@@@@@"},
        {**INLINE, "sizeInBytes": 20},
        {**INLINE, "pathOrInlineDv": to_z85(bytes(8)), "sizeInBytes": 8},
        {**INLINE, "storageType": "x"},
    ],
    ids=str,
)
def test_a_damaged_vector_in_the_log_is_bad_data(tmp_path: Path, message: dict[str, Any]) -> None:
    with pytest.raises(TrinityError, match=r"_delta_log|log of") as caught:
        deletion_vector(ObjectStore(str(tmp_path)), message).positions()
    assert caught.value.code == "BAD_DATA"


def test_bytes_as_text() -> None:
    number = uuid.uuid4().bytes
    assert (len(to_z85(number)), from_z85(to_z85(number))) == (20, number)
    assert to_z85(bytes.fromhex("864FD26FB559F75B")) == "HelloWorld"  # the example of ZeroMQ's RFC 32


@pytest.mark.parametrize(
    "given", ['{"numRecords":3}', '{"tightBounds":true,"numRecords":3}', '{"numRecords":3,"tightBounds":true}']
)
def test_statistics_of_a_file_that_lost_rows(given: str) -> None:
    assert json.loads(loosened(given)) == {"numRecords": 3, "tightBounds": False}
    assert json.loads(loosened(loosened("{}"))) == {"tightBounds": False}
