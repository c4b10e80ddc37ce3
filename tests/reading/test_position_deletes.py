"""Deleted rows by position without Spark: position delete files, and the array of bits by which a scan hides rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.adapter import rewrite_in
from trinity import TrinityError
from trinity.engine.reading.spark.deleted_rows import bits_of
from trinity.engine.reading.spark_hash import buckets_of
from trinity.spi import DataFile, SinkId
from trinity.storage import ParquetSinkProvider, PositionDeletes
from trinity.storage.position_deletes import deletes_of_fragments, named_files

pytestmark = pytest.mark.inner


def written(folder: Path, file: DataFile, positions: list[int]) -> PositionDeletes:
    sink = ParquetSinkProvider().create_delete_sink(rewrite_in(folder), SinkId())
    sink.delete_rows(file, pa.array(positions, pa.int64()))
    [fragment] = deletes_of_fragments(sink.finish())
    assert (fragment.of, fragment.size) == (file.path, Path(fragment.deletes.paths[0]).stat().st_size)
    assert isinstance(fragment.deletes, PositionDeletes)
    return fragment.deletes


def test_r1_positions_grow_from_one_resolve_to_the_next(tmp_path: Path) -> None:
    file = DataFile("/t/a.parquet", 10, 100)
    first = written(tmp_path, file, [7, 3, 99])
    assert (first.rows, first.positions().to_pylist()) == (3, [3, 7, 99])
    second = written(tmp_path, DataFile("/t/a.parquet", 10, 100, deletes=first), [4, 7])
    assert (second.rows, second.positions().to_pylist()) == (4, [3, 4, 7, 99])
    assert first.positions().to_pylist() == [3, 7, 99]  # a file of the previous version


def test_positions_of_a_file_from_two_tasks_come_together(tmp_path: Path) -> None:
    first = written(tmp_path, DataFile("/t/a.parquet", 10, 100), [3])
    file, fragments = DataFile("/t/a.parquet", 10, 100, deletes=first), []
    for order, positions in enumerate([[5, 6], [7]]):
        sink = ParquetSinkProvider().create_delete_sink(rewrite_in(tmp_path), SinkId(order))
        sink.delete_rows(file, pa.array(positions, pa.int64()))
        fragments += sink.finish()
    [both] = deletes_of_fragments(fragments)
    assert (both.deletes.rows, both.deletes.positions().to_pylist()) == (4, [3, 5, 6, 7])


def test_a_file_of_positions_is_one_of_iceberg_s(tmp_path: Path) -> None:
    deletes = written(tmp_path, DataFile("/t/a.parquet", 10, 100), [5])
    schema = pq.read_schema(deletes.files[0])
    ids = [int(field.metadata[b"PARQUET:field_id"]) for field in schema]
    assert list(zip(schema.names, ids, strict=True)) == [("file_path", 2147483546), ("pos", 2147483545)]
    assert pq.read_table(deletes.files[0]).to_pylist() == [{"file_path": "/t/a.parquet", "pos": 5}]


def test_a_file_of_positions_may_be_about_several_files(tmp_path: Path) -> None:
    path = str(tmp_path / "p.parquet")
    pq.write_table(pa.table({"file_path": ["a", "b", "a"], "pos": [1, 2, 3]}), path)
    assert PositionDeletes(2, (path,), "a").positions().to_pylist() == [1, 3]
    assert named_files(path) == {"a": 2, "b": 1}


def test_an_abort_leaves_no_file(tmp_path: Path) -> None:
    sink = ParquetSinkProvider().create_delete_sink(rewrite_in(tmp_path), SinkId())
    sink.delete_rows(DataFile("/t/a.parquet", 10, 100), pa.array([1], pa.int64()))
    assert [path.suffix for path in tmp_path.rglob("*-*")] == [".trinity"]
    sink.abort()
    assert list(tmp_path.rglob("*-*")) == []


@pytest.mark.parametrize("damage", ["missing", "corrupt", "other"])
def test_a_damaged_file_of_positions_is_named(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "p.parquet"
    if damage == "corrupt":
        path.write_bytes(b"PAR1 no PAR1")
    elif damage == "other":
        pq.write_table(pa.table({"x": [1]}), path)
    with pytest.raises(TrinityError, match=r"p\.parquet") as caught:
        PositionDeletes(1, (str(path),)).positions()
    assert caught.value.code == "BAD_DATA"
    with pytest.raises(TrinityError, match=r"p\.parquet"):
        named_files(str(path))


def left(files: list[DataFile], lengths: tuple[int, ...] = (1 << 10, 1 << 18)) -> dict[str, list[int]]:
    """Return the rows of each file that the bits keep, computed as in the scan's expression."""
    bits = bits_of(files, lengths=lengths)
    words = bits.words.to_pylist()
    found = {}
    for file in files:
        start = words[file.size % bits.sizes]
        if start is None:
            [place] = buckets_of(pa.table({"name": [file.name]}), ["name"], bits.names)
            start = words[bits.sizes + place]
        if start is None:
            start = bits.named.get(file.name, len(words))
        own = [word % 2**64 for word in words[start:]]
        gone = [n >> 6 < len(own) and bool(own[n >> 6] >> (n & 63) & 1) for n in range(file.rows)]
        found[file.name] = [n for n in range(file.rows) if not gone[n]]
    return found


@pytest.mark.parametrize(
    "sizes", [(10,), (10, 11, 12), (10, 10, 12), (64, 128, 192, 256), (7, 7, 7), (5, 5 + 2**20, 6)], ids=str
)
def test_bits_tell_every_file_from_the_others(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    check_bits(tmp_path, sizes)


def check_bits(tmp_path: Path, sizes: tuple[int, ...], *lengths: tuple[int, ...]) -> None:
    gone = [[0, 63, 64, 129], [], [5]]
    files = [DataFile(f"/t/{n}.parquet", size, 130) for n, size in enumerate(sizes)]
    for n, file in enumerate(files):
        if gone[n % 3]:
            files[n] = DataFile(file.path, file.size, 130, deletes=written(tmp_path / str(n), file, gone[n % 3]))
    expected = {f.name: [r for r in range(130) if r not in gone[n % 3]] for n, f in enumerate(files)}
    assert left(files, *lengths) == expected


def test_bits_of_many_files_are_few(tmp_path: Path) -> None:
    deletes = written(tmp_path, DataFile("/t/0.parquet", 1, 10), [1])
    sizes = np.random.default_rng(1).choice(10**8, 1000, replace=False)
    files = [DataFile(f"/t/{n}.parquet", int(size), 10, deletes=deletes) for n, size in enumerate(sizes)]
    bits = bits_of(files)
    assert len(bits.words) == bits.sizes + bits.names + 1000
    assert bits.sizes + bits.names < 300_000
    assert bits.named == {}
    assert left(files[:3]) == {f.name: [0, *range(2, 10)] for f in files[:3]}


@pytest.mark.parametrize("tables", [(1,), (2,), (4, 8)], ids=str)
def test_names_tell_files_that_no_table_does(tmp_path: Path, tables: tuple[int, ...]) -> None:
    check_bits(tmp_path, (5, 5, 7, 5, 5, 5, 7, 9), tables)
