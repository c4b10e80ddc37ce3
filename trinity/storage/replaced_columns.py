"""Copies of Parquet files in which some columns are replaced, while the bytes of all other columns are copied.

So an UPDATE decodes and encodes only the columns that it sets. Rows keep their positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from trinity.spi import DataFile, SinkId, WriteTarget, stored_schema
from trinity.storage.errors import with_renewed_credentials
from trinity.storage.location import Location
from trinity.storage.parquet_files import parquet_footer, reporting_unreadable_file, results_ahead, stored_row_groups
from trinity.storage.parquet_sink import (
    SinkFile,
    as_in_file,
    described,
    file_errors,
    file_name,
    file_schema,
    sync_folders_of,
    writer_options,
)
from trinity.storage.store import ObjectStore
from trinity.storage.thrift_compact import I64, STRUCT, Struct, chunks_of, raw_footer, read_struct, written
from trinity.storage.thrift_compact import field as of

_MAGIC: Final = b"PAR1"
_AT_ONCE: Final = 8 * 1024 * 1024
"""Bytes that are copied at once."""
_MOST_BYTES: Final = 512 * 1024 * 1024
"""A file is not copied if a row group has more bytes decoded, as each is held in memory as a whole."""
_MOST_CHUNKS: Final = 2_000
"""A file with more column chunks is not copied, as its footer is read and written in Python."""
_SAME: Final = (2, 5, 6, 7)
"""Fields of a footer that say how a file is read: schema, Arrow's schema, writer, order of bounds."""
_OFFSETS: Final = (9, 10, 11)
"""Fields of a column chunk's metadata: offsets of pages, index page and dictionary."""
_BLOOM: Final = (14, 15)
Replacement = Callable[[int, pa.Table], pa.Table]
"""A function from the position of a row group's first row, and its stored columns, to the new columns."""


def with_replaced_columns(
    target: WriteTarget, sink: SinkId, source: str, columns: pa.Schema, replacement: Replacement, threads: int
) -> DataFile | None:
    """Copy a file with some columns replaced; return None if sinks would write such a file differently today.

    Args:
        target: where and how to write.
        sink: identifies the sink.
        source: path of the file to copy.
        columns: the replaced columns, as the target stores them.
        replacement: makes the new columns.
        threads: how many row groups are decoded and encoded side by side.

    Raises:
        TrinityError: BAD_DATA naming the source; errors of ``replacement``; a sink's errors.
    """
    store = ObjectStore(source)
    with reporting_unreadable_file(source):
        opened = with_renewed_credentials(
            store.location, lambda: store.filesystem.open_input_file(store.location.for_arrow)
        )
    with opened:
        with reporting_unreadable_file(source):
            footer = raw_footer(opened)
        if not _is_copied(footer, file_schema(stored_schema(target.storage))):
            return None
        copy = _Copy(source, opened, footer, columns, replacement, sink, threads)
        return _written(target, sink, copy)


def _is_copied(footer: Struct, schema: pa.Schema) -> bool:
    with pq.ParquetWriter(new := pa.BufferOutputStream(), schema, store_decimal_as_integer=True):
        pass
    like = raw_footer(pa.BufferReader(new.getvalue()))
    groups = of(footer, 4)[1]
    return (
        all(footer.get(number) == like.get(number) for number in _SAME)
        and sum(len(of(group, 1)[1]) for group in groups) <= _MOST_CHUNKS
        and all(of(group, 2) <= _MOST_BYTES for group in groups)
    )


def _written(target: WriteTarget, sink: SinkId, copy: _Copy) -> DataFile:
    file = SinkFile()
    name, store = file_name(target, sink, file), ObjectStore(target.folder)
    path = store.path(name)
    try:
        with file_errors(path):
            store.make_folder(sync=target.sync)
            with store.filesystem.open_output_stream(Location.of(path).for_arrow) as out:
                for part in copy.parts():
                    out.write(part)
            if target.sync:
                store.sync(name)
        sync_folders_of(target, [path])
        return described(target, sink, file, parquet_footer(path))
    except BaseException:
        store.delete([name])
        raise


@dataclass
class _Copy:
    """A copy of a file, as the bytes of the new file in order.

    Attributes:
        source: path of the source.
        opened: the source, opened.
        footer: its footer.
        columns, replacement, sink, threads: arguments of :func:`with_replaced_columns`.
        at: bytes made so far.
    """

    source: str
    opened: Any
    footer: Struct
    columns: pa.Schema
    replacement: Replacement
    sink: SinkId
    threads: int
    at: int = 0

    def parts(self) -> Iterator[bytes]:
        """Yield the bytes of the new file in parts. Raises errors of the reads and of ``replacement``."""
        yield self._counted(_MAGIC)
        groups: list[Struct] = []
        moved: list[_Moved] = []
        made = results_ahead(self._encoders(), self.threads, self.threads)
        for group, (file, replaced) in zip(of(self.footer, 4)[1], made, strict=True):
            chunks = []
            for chunk in of(group, 1)[1]:
                new = replaced.get(tuple(of(of(chunk, 3), 3)[1]))
                here = _Moved(self.opened, chunk, self.at) if new is None else _Moved(file, new, self.at)
                moved.append(here)
                chunks.append(here.struct)
                yield from map(self._counted, self._read(here))
            groups.append(_group(group, chunks))
        for here in moved:
            yield from map(self._counted, here.bounds(self.at, self._bytes))
        for here in moved:
            yield from map(self._counted, here.pages(self.at, self._bytes))
        footer = written({**self.footer, 4: (self.footer[4][0], (STRUCT, groups))})
        yield footer + len(footer).to_bytes(4, "little") + _MAGIC

    def _counted(self, data: bytes) -> bytes:
        self.at += len(data)
        return data

    def _bytes(self, file: Any, start: int, length: int) -> bytes:
        with reporting_unreadable_file(self.source):
            found: bytes = file.read_at(length, start)
        return found

    def _read(self, here: _Moved) -> Iterator[bytes]:
        for start in range(here.first, here.end, _AT_ONCE):
            yield self._bytes(here.file, start, min(_AT_ONCE, here.end - start))

    # -- the replaced columns -----------------------------------------------------------------------------

    def _encoders(self) -> Iterator[Callable[[], tuple[Any, Mapping[tuple[bytes, ...], Struct]]]]:
        first = 0
        for number, group in enumerate(of(self.footer, 4)[1]):
            yield partial(self._encoded_columns, number, first)
            first += of(group, 3)

    def _encoded_columns(self, number: int, first: int) -> tuple[Any, Mapping[tuple[bytes, ...], Struct]]:
        """Return a file in memory with the new columns of a row group, and path of a column -> its chunk there."""
        with reporting_unreadable_file(self.source):
            pages = [page for _, page in stored_row_groups(self.source, self.columns, lambda _: [number])]
        rows = self.replacement(first, pa.Table.from_batches(pages, self.columns))
        schema = file_schema(stored_schema(self.columns))
        rows = as_in_file(rows.rename_columns(schema.names), schema)
        options = writer_options(rows, schema, self.sink.tier)
        with pq.ParquetWriter(out := pa.BufferOutputStream(), schema, **options) as writer:
            writer.write_table(rows, row_group_size=max(1, len(rows)))
        file = pa.BufferReader(out.getvalue())
        return file, {tuple(of(of(chunk, 3), 3)[1]): chunk for chunk in chunks_of(raw_footer(file), 0)}


class _Moved:
    """A column chunk at its new offset.

    Args:
        file: the file that has its bytes.
        chunk: its metadata in that file.
        at: its offset in the new file.
    """

    def __init__(self, file: Any, chunk: Struct, at: int) -> None:
        meta = of(chunk, 3)
        self.file, self.chunk = file, chunk
        self.first = min(of(meta, 9), of(meta, 11) or of(meta, 9))
        self.end = self.first + of(meta, 7)
        self.shift = at - self.first
        shifted = {number: (I64, of(meta, number) + self.shift) for number in _OFFSETS if of(meta, number)}
        kept = {number: value for number, value in meta.items() if number not in (*_OFFSETS, *_BLOOM)}
        self.struct: Struct = {2: chunk[2], 3: (STRUCT, {**kept, **shifted})}

    def bounds(self, at: int, read: Callable[[Any, int, int], bytes]) -> Iterator[bytes]:
        """Yield the bytes of the chunk's column index, if it has one, and record ``at`` as the index's offset."""
        if of(self.chunk, 6):
            self.struct.update({6: (I64, at), 7: self.chunk[7]})
            yield read(self.file, of(self.chunk, 6), of(self.chunk, 7))

    def pages(self, at: int, read: Callable[[Any, int, int], bytes]) -> Iterator[bytes]:
        """Yield the bytes of the chunk's offset index, if it has one, and record ``at`` as the index's offset."""
        if of(self.chunk, 4):
            index = read_struct(read(self.file, of(self.chunk, 4), of(self.chunk, 5)))
            for page in of(index, 1)[1]:
                page[1] = (I64, of(page, 1) + self.shift)
            data = written(index)
            self.struct.update({4: (I64, at), 5: (self.chunk[5][0], len(data))})
            yield data


def _group(group: Struct, chunks: Sequence[Struct]) -> Struct:
    metas = [of(chunk, 3) for chunk in chunks]
    first = min(of(meta, 9) if of(meta, 11) is None else of(meta, 11) for meta in metas)
    found: Struct = {
        1: (group[1][0], (STRUCT, list(chunks))),
        2: (I64, sum(of(meta, 6) for meta in metas)),
        3: group[3],
        5: (I64, first),
        6: (I64, sum(of(meta, 7) for meta in metas)),
    }
    return {**found, 7: group[7]} if 7 in group else found
