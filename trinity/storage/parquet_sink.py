"""The shared Parquet sink: Arrow pages in, one Parquet file and its fragment out."""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from trinity.errors import TrinityError, system_code
from trinity.limits import Limit
from trinity.spi import STAMP, ColumnStats, DataFile, PageSink, SinkId, Tier, WriteTarget, stored_name, stored_schema
from trinity.storage.errors import store_trouble, with_renewed_credentials
from trinity.storage.grants import is_granted
from trinity.storage.location import Location
from trinity.storage.store import ObjectStore

ROW_GROUP_ROWS: Final = Limit(1_000_000)
ROW_GROUP_BYTES: Final = Limit(128 * 1024 * 1024)
"""Either limit closes a row group. One row group per Arrow batch would make files a tenth larger."""

PAGE_ROWS: Final = Limit(5_000)
"""Rows in a page of a sorted file. A look-up decodes one page per key; with pages of 2,000 a scan takes 20 % longer."""

_SAMPLE: Final = 10_000
LARGE_BYTES: Final = Limit(16 * 1024 * 1024)
"""Bytes in Arrow of a first row group from which a file is written like a base file: with codecs and a page index."""
_WORTH: Final = 0.8
"""Snappy is used for a column only if it shrinks to this share of its bytes; else a scan is faster without Snappy."""
OWN_ENDING: Final = ".trinity"
"""The ending of Parquet files in a table's folder that hold none of its rows, but tombstones, positions of deleted
rows, or changes. Other readers take every ``.parquet`` file of the folder for rows. Older releases used ``.parquet``
here too."""
_ENDINGS: Final = (".parquet", OWN_ENDING)
_SINK_FILE: Final = re.compile(r"[0-9a-f]{32}-\d{6,}-[0-9a-f]{8}(-\d{6,})?(_\d{5,}\.c000)?\.(parquet|trinity)")


def attempt_id() -> str:
    """Return a new id, which keeps the files of two attempts at one task apart (S6)."""
    return uuid.uuid4().hex[:8]


@dataclass(frozen=True)
class SinkFile:
    """One of a sink's files.

    Attributes:
        attempt: see :func:`attempt_id`.
        number: position among the files of a sink that writes several; None for a sink that writes one.
        folder: folder of the file's partition, relative to the target's.
        partition: its partition values.
    """

    attempt: str = field(default_factory=attempt_id)
    number: int | None = None
    folder: str = ""
    partition: Mapping[str, Any] = field(default_factory=dict)


def file_name(target: WriteTarget, sink: SinkId, file: SinkFile) -> str:
    """Return the name of a sink's file.

    Names sort in the arrival order of the commit. By the part with the bucket's number Spark recognises buckets.
    """
    number = f"-{file.number:06d}" if file.number is not None else ""
    bucket = f"_{sink.bucket.index:05d}.c000" if sink.bucket else ""
    return f"{target.statement}-{sink.order:06d}-{file.attempt}{number}{bucket}{target.ending}"


def is_parquet(name: str) -> bool:
    """Return whether a name is that of a Parquet file in a table's folder, whatever the file holds."""
    return name.endswith(_ENDINGS)


def is_sink_file(name: str) -> bool:
    """Return whether :func:`file_name` made the name; no other engine makes such names."""
    return _SINK_FILE.fullmatch(name) is not None


class ParquetPageSink(PageSink):
    """A sink that writes pages to one Parquet file, which the first row group opens.

    Args:
        target: where and how to write.
        sink: identifies the sink.
        file: which of the sink's files it is, for a sink that writes several.
    """

    def __init__(self, target: WriteTarget, sink: SinkId, file: SinkFile | None = None) -> None:
        self._target = target
        self._sink = sink
        self._schema = file_schema(stored_schema(target.storage))
        self._file = file = file or SinkFile()
        self._store = ObjectStore(target.folder)
        self._name = "/".join(filter(None, [file.folder, file_name(target, sink, file)]))
        self.path = self._store.path(self._name)
        self._writer: pq.ParquetWriter | None = None
        self._footers: list[pq.FileMetaData] = []
        self._pages: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def append_page(self, page: pa.RecordBatch) -> None:
        """Buffer the page; write a row group when the buffer is large enough."""
        if page.num_rows == 0:
            return
        self._pages.append(page)
        self._rows += page.num_rows
        self._bytes += page.nbytes
        if self._rows >= ROW_GROUP_ROWS.value or self._bytes >= ROW_GROUP_BYTES.value:
            self.flush()

    @property
    def buffered(self) -> int:
        """Bytes that are buffered."""
        return self._bytes

    @property
    def opened(self) -> bool:
        """True once the file has been opened."""
        return self._writer is not None

    def finish(self) -> list[bytes]:
        """Close the file and return its fragment. Without rows there is no file and no fragment."""
        fragments = self.close()
        if fragments:
            sync_folders_of(self._target, [self.path])
        return fragments

    def close(self) -> list[bytes]:
        """Close the file and return its fragment. Syncs the file as :attr:`WriteTarget.sync` says, but not its folder.

        If the store refuses a key that can be renewed, a file that has not been opened yet is written again.
        """
        if self._writer is not None or self._store.on_disk or not is_granted(self._store.location):
            return self._close()
        pages = self._pages, self._rows, self._bytes

        def write_again() -> list[bytes]:
            self._leave()
            self._pages, self._rows, self._bytes = [*pages[0]], *pages[1:]
            return self._close()

        return with_renewed_credentials(self._store.location, write_again)

    def _close(self) -> list[bytes]:
        self.flush()
        if self._writer is None:
            return []
        with file_errors(self.path):
            self._writer.close()
            if self._target.sync:
                self._store.sync(self._name)
            return [described(self._target, self._sink, self._file, self._footers[0]).to_fragment()]

    def abort(self) -> None:
        """Remove the file."""
        self._pages.clear()
        if self._leave():
            with contextlib.suppress(TrinityError):
                self._store.delete([self._name])

    def _leave(self) -> bool:
        """Close an unfinished file without its footer; return whether there was one."""
        writer, self._writer = self._writer, None
        self._footers.clear()
        if writer is None:
            return False
        # the RuntimeError is pyarrow's: after a failed write there is no footer to collect
        with contextlib.suppress(OSError, pa.ArrowException, RuntimeError):
            writer.close()
        return True

    def flush(self) -> None:
        """Write the buffered rows as a row group."""
        if not self._pages:
            return
        table = self._stamped(pa.Table.from_batches(self._pages, self._target.storage))
        table = as_in_file(table.rename_columns(self._schema.names), self._schema)
        self._pages, self._rows, self._bytes = [], 0, 0
        with file_errors(self.path):
            if self._writer is None:
                self._store.make_folder(self._file.folder, sync=self._target.sync)
                self._writer = pq.ParquetWriter(
                    Location.of(self.path).for_arrow,
                    self._schema,
                    filesystem=self._store.filesystem,
                    metadata_collector=self._footers,
                    **writer_options(table, self._schema, self._sink.tier),
                )
            self._writer.write_table(table, row_group_size=ROW_GROUP_ROWS.value)

    def _stamped(self, table: pa.Table) -> pa.Table:
        index = table.schema.get_field_index(STAMP)
        if self._target.stamp is None or index < 0:
            return table
        stamps = pc.fill_null(table.column(index), self._target.stamp)
        return table.set_column(index, table.schema.field(index), stamps)


def writer_options(first: pa.Table, schema: pa.Schema, tier: Tier) -> dict[str, Any]:
    """Return pyarrow's options for writing a file.

    Args:
        first: the rows of its first row group.
        schema: its schema.
        tier: its tier.
    """
    leaves = _leaves(schema)
    paths = dict.fromkeys(path for path, _ in leaves)
    floating = {path for path, kind in leaves if kind in ("FLOAT", "DOUBLE")}
    columns = dict(zip(first.schema.names, first.columns, strict=True))
    dictionaries = [path for path in paths if path not in columns or _repeats(columns[path])]
    lasts = tier is Tier.BASE or first.nbytes >= LARGE_BYTES.value
    return {
        # files of few rows are soon compacted: for them it is not worth choosing codecs
        "compression": _codecs(first, dictionaries) if lasts else "snappy",
        "store_decimal_as_integer": True,
        "use_dictionary": dictionaries,
        # Arrow's bounds leave NaN out, and Spark would skip a row group in which f > 100 holds for NaN alone (K3)
        "write_statistics": [path for path in paths if path not in floating],
        # sorted files: a key look-up reads few pages
        "write_page_index": lasts,
        "max_rows_per_page": PAGE_ROWS.value if lasts else None,
    }


def described(target: WriteTarget, sink: SinkId, file: SinkFile, footer: pq.FileMetaData) -> DataFile:
    """Return a written file as its sink reports it."""
    store = ObjectStore(target.folder)
    path = store.path("/".join(filter(None, [file.folder, file_name(target, sink, file)])))
    about = store.stat(path)
    if about is None:
        raise FileNotFoundError(path)
    return DataFile(
        path=path,
        size=about.size,
        rows=footer.num_rows,
        tier=sink.tier,
        commit=sink.commit,
        bucket=sink.bucket,
        partition={stored_name(target.storage, c): v for c, v in file.partition.items()},
        stats=footer_statistics(footer, [stored_name(target.storage, c) for c in target.statistics]),
        column_sizes=_column_sizes(footer),
    )


def sync_folders_of(target: WriteTarget, paths: Iterable[str]) -> None:
    """Sync the folders of a target's new files, and those above, each once."""
    if target.sync:
        store = ObjectStore(target.folder)
        with file_errors(store.root):
            store.sync_folders(folder for path in paths for folder in _folders_of(store.relative(path)))


def _folders_of(name: str) -> list[str]:
    """Return the folders of an object below its store, the lowest first and the store's own last."""
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(len(parts) - 1, -1, -1)]


def _leaves(storage: pa.Schema) -> list[tuple[str, str]]:
    """Return path and physical type of every stored column, those within nested types too.

    A column whose name has a dot may have the path of a field within another one.
    """
    footers: list[pq.FileMetaData] = []
    with pq.ParquetWriter(pa.BufferOutputStream(), storage, metadata_collector=footers):
        pass  # the footer of a file without rows has the paths and types already
    columns = [footers[0].schema.column(i) for i in range(footers[0].num_columns)]
    return [(c.path, c.physical_type) for c in columns]


def _repeats(column: pa.ChunkedArray) -> bool:
    """Return whether a dictionary is worth its bytes: False for a column whose first values hardly repeat.

    Arrow uses a dictionary until it is full. If all values differ, that takes a quarter more bytes than plain values.
    """
    sample = column.slice(0, _SAMPLE)
    return bool(pc.count_distinct(sample, mode="all").as_py() <= len(sample) // 2)


def _codecs(rows: pa.Table, dictionaries: Sequence[str]) -> dict[str, str]:
    """Return path -> codec of every stored column: Snappy, or none if Snappy hardly shrinks its first page."""
    footers: list[pq.FileMetaData] = []
    with pq.ParquetWriter(
        pa.BufferOutputStream(),
        rows.schema,
        compression="snappy",
        store_decimal_as_integer=True,
        use_dictionary=dictionaries,
        metadata_collector=footers,
    ) as page:
        page.write_table(rows.slice(0, PAGE_ROWS.value))
    chunks = [footers[0].row_group(0).column(i) for i in range(footers[0].num_columns)]
    return {
        c.path_in_schema: "snappy" if c.total_compressed_size <= _WORTH * c.total_uncompressed_size else "none"
        for c in chunks
    }


def _column_sizes(footer: pq.FileMetaData) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for group in range(footer.num_row_groups):
        for index in range(footer.num_columns):
            chunk = footer.row_group(group).column(index)
            sizes[chunk.path_in_schema] = sizes.get(chunk.path_in_schema, 0) + chunk.total_compressed_size
    return sizes


def footer_statistics(
    footer: pq.FileMetaData, columns: Sequence[str], group: int | None = None
) -> dict[str, ColumnStats]:
    """Return statistics of top-level columns, from all row groups of a footer, or from row group ``group``.

    Bounds that Python cannot hold (years beyond 1 to 9999) are left out.
    """
    leaves = ((i, footer.schema.column(i)) for i in range(footer.num_columns))
    # a leaf within a column has a path that is not its name, and that may be the name of another column
    wanted = {leaf.path: i for i, leaf in leaves if leaf.path in columns and leaf.path == leaf.name}
    groups = range(footer.num_row_groups) if group is None else [group]
    found = {}
    for name, index in wanted.items():
        chunks = [footer.row_group(g).column(index).statistics for g in groups]
        if all(c is not None and c.has_null_count for c in chunks):
            found[name] = _combine(chunks)
    return found


def _combine(chunks: list[Any]) -> ColumnStats:
    nulls = sum(c.null_count for c in chunks)
    filled = [c for c in chunks if c.num_values > 0]
    if not filled or not all(c.has_min_max for c in filled):
        return ColumnStats(nulls=nulls)
    lows, highs = [_bound(c, "min") for c in filled], [_bound(c, "max") for c in filled]
    return ColumnStats(None if None in lows else min(lows), None if None in highs else max(highs), nulls)


def _bound(chunk: Any, side: str) -> Any:
    try:
        return getattr(chunk, side)
    except (OverflowError, ValueError):
        return None


_LAST_CHARACTER: Final = "\U0010ffff"
_CHARACTER_AFTER: Final = {"\ud7ff": "\ue000"}
"""The last character before the surrogates -> the first one after them: surrogates are no characters."""


def upper_bound(text: str, length: int) -> str | None:
    """Return a text of at most ``length`` characters that is not smaller than the given one; None if there is none."""
    if len(text) <= length:
        return text
    kept = text[:length].rstrip(_LAST_CHARACTER)
    return kept[:-1] + _CHARACTER_AFTER.get(kept[-1], chr(ord(kept[-1]) + 1)) if kept else None


class file_errors:
    """A context of a write that maps errors of system and store to TrinityErrors; a missing file is a conflict."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, FileNotFoundError):
            raise TrinityError(
                "TRANSACTION_CONFLICT",
                f"'{self.path}' is gone while it was written: its table was dropped, or vacuumed, meanwhile. Run the "
                "statement again.",
            ) from error
        if error is not None and (trouble := store_trouble(error, self.path)) is not None:
            raise trouble from error
        if isinstance(error, OSError):
            raise TrinityError(system_code(error), f"'{self.path}' cannot be written: {error}.") from error


# -- rows in the form of files ------------------------------------------------------------------------------
#
# A format may require NOT NULL for fields within columns. In storage schemas all nested fields are nullable, since in
# Arrow a NULL struct has NULL in its fields. Files declare the fields as the format requires. There a field of a NULL
# struct has some value, which nobody sees.

REQUIRED: Final = {b"trinity.required": b"true"}
"""Metadata of a nested field in a storage schema that is NOT NULL in files."""


def file_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with its marked fields NOT NULL."""
    return pa.schema([f.with_type(_in_file(f.type)) for f in schema])


def _in_file(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(_field(kind.value_field))
    if pa.types.is_map(kind):
        return pa.map_(_field(kind.key_field), _field(kind.item_field))
    return pa.struct([_field(f) for f in kind]) if pa.types.is_struct(kind) else kind


def _field(field: pa.Field) -> pa.Field:
    about = dict(field.metadata or {})
    required = bool(about.items() & REQUIRED.items())
    kept = {key: value for key, value in about.items() if key not in REQUIRED}
    return pa.field(field.name, _in_file(field.type), field.nullable and not required, kept)


def as_in_file(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows of a storage schema in the form of files.

    Raises:
        TrinityError: CONSTRAINT_VIOLATION for NULL in older rows, where another engine has since added NOT NULL.
    """
    if rows.schema.types == schema.types:
        return rows
    columns = zip(rows.columns, schema.types, strict=True)
    arrays = [pa.chunked_array([_filled(column.combine_chunks(), kind)], kind) for column, kind in columns]
    return pa.Table.from_arrays(arrays, schema=schema)


def _part(values: pa.Array, field: pa.Field) -> pa.Array:
    if values.null_count and not field.nullable:
        raise TrinityError(
            "CONSTRAINT_VIOLATION",
            f"Stored rows have NULL in '{field.name}', which another engine has made NOT NULL within its column since: "
            "let that engine take NOT NULL away, or give these rows a value there.",
        )
    return _filled(values, field.type)


def _filled(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if values.type == kind:
        return values
    if values.null_count:
        present = pc.is_valid(values)
        indexes = pc.subtract(pc.cumulative_sum(present.cast(pa.int64())), 1)
        nothing = pa.array([None], kind)  # Arrow itself puts empty values into the fields of the NULL
        found = pa.concat_arrays([_filled(values.drop_null(), kind), nothing])
        return found.take(pc.if_else(present, indexes, len(found) - 1))
    if pa.types.is_struct(kind):
        parts = [_part(part, field) for part, field in zip(values.flatten(), kind, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=list(kind))
    offsets = pc.subtract(values.offsets, values.offsets[0])
    if pa.types.is_map(kind):
        first, last = values.offsets[0].as_py(), values.offsets[-1].as_py()
        keys, items = values.keys[first:last], values.items[first:last]
        return pa.MapArray.from_arrays(offsets, _part(keys, kind.key_field), _part(items, kind.item_field), kind)
    return pa.ListArray.from_arrays(offsets, _part(values.flatten(), kind.value_field), kind)
