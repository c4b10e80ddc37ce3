"""A bench for merge sinks without Spark: tables of an adapter, handmade merge pages, and the rows that they store."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import pyarrow as pa

from trinity import Column, Session
from trinity.spi import (
    CommitResult,
    DataFile,
    MergeSink,
    MergeTableHandle,
    Operation,
    ReadScope,
    SinkId,
    TableHandle,
    arrival_order,
)
from trinity.storage import ObjectStore
from trinity.storage.parquet_files import open_parquet
from trinity_conformance.model.values import Json, decode
from trinity_conformance.playing.cases import Record, in_words

_NUMBERS = count()


@dataclass(frozen=True)
class MergePageRow:
    """One row of a merge page.

    Attributes:
        operation: a number of :class:`~trinity.spi.Operation`, or an invalid one.
        new: encoded data by column; empty: NULL in every column, as in deleted rows (S3).
        row_id: identifies the row of the target, by field; None for a new row.
        case: the case number.
    """

    operation: int | None
    new: Mapping[str, Json] = field(default_factory=dict)
    row_id: Mapping[str, Any] | None = None
    case: int = 0

    @property
    def in_words(self) -> str:
        """The operation's name, the new values, and the visible part of the row's identity."""
        known = {int(number): number.name for number in Operation}
        name = known.get(self.operation) if self.operation is not None else "NULL"
        row = "" if self.row_id is None else f" of {dict(self.row_id) if 'file' not in self.row_id else 'a stored row'}"
        new = f" {dict(self.new)}" if self.new else ""
        return f"{name or self.operation}{row}{new}"


@dataclass(frozen=True)
class SinkTable:
    """A table under test.

    Attributes:
        session: the session of the table.
        table: Trinity's table.
        columns: its columns in order.
        key: its primary key; empty for a plain table.
        record: records the steps on it.
    """

    session: Session
    table: Any
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    record: Record

    @property
    def handle(self) -> TableHandle:
        """The unpinned handle."""
        found: TableHandle = self.table.handle
        return found

    @property
    def metadata(self) -> Any:
        """The adapter's metadata."""
        return self.session.connector(self.handle.catalog).metadata

    # -- writing ----------------------------------------------------------------------------------------

    def store(self, *rows: Mapping[str, Json]) -> None:
        """Append rows in this process, as one commit with one file."""
        schema = pa.schema([c.to_arrow() for c in self.columns])
        values = [[decode(c.type, row.get(c.name)) for row in rows] for c in self.columns]
        data = pa.Table.from_arrays([pa.array(v, f.type) for v, f in zip(values, schema, strict=True)], schema=schema)
        self._did(f"{'upsert' if self.key else 'append'} {in_words(data)}")
        (self.table.upsert if self.key else self.table.append)(data)

    def _did(self, what: str) -> None:
        self.record.did(str(self.table.name), what)

    def begin(self, **update_case_columns: tuple[str, ...]) -> MergeTableHandle:
        """Begin a merge; ``case0=("a",)`` says that case 0 updates column a (S5)."""
        cases = {int(name.removeprefix("case")): columns for name, columns in update_case_columns.items()}
        merge: MergeTableHandle = self.metadata.begin_merge(self.handle, cases)
        return merge

    def sink(self, merge: MergeTableHandle, order: int = 0) -> MergeSink:
        """Return a sink as an executor gets it: from pickled parts."""
        provider = self.session.connector(self.handle.catalog).sinks
        sinks, handle = pickle.loads(pickle.dumps((provider, merge)))
        made: MergeSink = sinks.create_merge_sink(handle, SinkId(order))
        return made

    def updates_in_place(self, merge: MergeTableHandle) -> bool:
        """Return whether the adapter's sinks accept new rows without the columns that keep their values (S5)."""
        found: bool = self.session.connector(self.handle.catalog).sinks.updates_in_place(merge)
        return found

    def run(self, merge: MergeTableHandle, *pages: Sequence[MergePageRow], order: int = 0) -> list[bytes]:
        """Return the fragments of one sink that takes these pages."""
        in_order = " | ".join(", ".join(change.in_words for change in page) or "nothing" for page in pages) or "no page"
        self._did(f"merge sink {order} takes {in_order}")
        sink = self.sink(merge, order)
        for changes in pages:
            sink.store_merged_rows(self.page(merge, changes))
        return sink.finish()

    def finish(self, merge: MergeTableHandle, fragments: Iterable[bytes]) -> CommitResult:
        """Commit fragments."""
        given = list(fragments)
        self._did(f"commit the merge, of {len(given)} fragments")
        done: CommitResult = self.metadata.finish_merge(replace(merge, scope=ReadScope()), given)
        return done

    def page(self, merge: MergeTableHandle, changes: Sequence[MergePageRow]) -> pa.RecordBatch:
        """Return a merge page: data columns in table order, operation, case number, row id (S1)."""
        storage = merge.insert.target.storage
        stored = merge.insert.definition.columns
        data = [
            pa.array([decode(c.type, change.new.get(c.name)) for change in changes], f.type)
            for c, f in zip(stored, storage, strict=True)
        ]
        facts = [
            pa.array([change.operation for change in changes], pa.int8()),
            pa.array([change.case for change in changes], pa.int32()),
            self._row_ids(merge, [change.row_id for change in changes]),
        ]
        names = [*storage.names, "operation", "case_number", merge.row_id]
        return pa.RecordBatch.from_arrays([*data, *facts], names=names)

    def _row_ids(self, merge: MergeTableHandle, row_ids: Sequence[Mapping[str, Any] | None]) -> pa.StructArray:
        """Return row ids. Plain: file and position. Keyed: key, ordering columns, then all others, as stored."""
        if not self.key:
            return pa.array(row_ids, pa.struct([("file", pa.string()), ("pos", pa.int64())]))
        storage = dict(zip((c.name for c in merge.insert.definition.columns), merge.insert.target.storage, strict=True))
        ordering = [n for n in merge.insert.definition.properties.get("watermark-key", "").split(",") if n]
        names = list(dict.fromkeys((*self.key, *ordering, *storage)))
        kinds = {c.name: c.type for c in merge.insert.definition.columns}
        decoded = [None if row is None else {n: decode(kinds[n], row.get(n)) for n in names} for row in row_ids]
        return pa.array(decoded, pa.struct([pa.field(n, storage[n].type) for n in names]))

    # -- reading ----------------------------------------------------------------------------------------

    def files(self) -> list[DataFile]:
        """Return the files of the newest version, in arrival order."""
        return sorted(self.metadata.get_splits(self.handle).files, key=arrival_order)

    def rows(self) -> list[dict[str, Any]]:
        """Return every stored row of the newest version, in arrival order, read without Spark."""
        definition, storage = self.table.definition, self.metadata.get_splits(self.handle).storage
        found = []
        for file in self.files():
            with open_parquet(file.path) as opened:
                data = opened.read()
            present = [(c.name, f.name) for c, f in zip(definition.columns, storage, strict=True)]
            columns = {n: data.column(s).to_pylist() if s in data.column_names else None for n, s in present}
            found += [{n: v[i] if v else None for n, v in columns.items()} for i in range(data.num_rows)]
        return found

    def values(self, *names: str) -> list[tuple[Any, ...]]:
        """Return stored rows as tuples of some columns, sorted."""
        return sorted((tuple(row[n] for n in names) for row in self.rows()), key=repr)

    def row_id(self, **values: Json) -> dict[str, Any]:
        """Return file and position of the one row of a plain table that has these values."""
        for file in self.files():
            with open_parquet(file.path) as opened:
                stored = opened.read().to_pylist()
            for position, row in enumerate(stored):
                by_name = dict(zip((c.name for c in self.columns), row.values(), strict=False))
                if all(by_name[name] == value for name, value in values.items()):
                    return {"file": file.path, "pos": position}
        raise KeyError(f"no row has {values}")

    def stored(self) -> set[str]:
        """Return all Parquet files in the table's folder, whether a version has them or not."""
        return {name for name, _ in ObjectStore(self.handle.location).walk(".parquet", hidden="")}


@dataclass(frozen=True)
class SinkBench:
    """A bench that makes tables for sink checks.

    Attributes:
        session: a session.
        catalog: a catalog of the session, of the adapter under test.
        record: records the steps.
    """

    session: Session
    catalog: str
    record: Record = field(default_factory=Record)

    def plain(self, *rows: tuple[int, str | None]) -> SinkTable:
        """Make a plain table (k int, s string) with these rows in one file."""
        made = self._create((Column("k", "int"), Column("s", "string")), ())
        if rows:
            made.store(*({"k": k, "s": s} for k, s in rows))
        return made

    def keyed(self, *rows: tuple[int, int | None, str | None], changed: bool = False) -> SinkTable:
        """Make a keyed table (k int, w bigint, gone boolean, s string), watermark w, tombstone gone.

        Args:
            rows: values of k, w and s, stored in one file.
            changed: True for the paradigm CHANGE_ONLY_UPDATED_COLUMNS.
        """
        made = self.keyed_by({"k": "int"}, "CHANGE_ONLY_UPDATED_COLUMNS" if changed else "DELETE_ROW_AND_INSERT_ROW")
        if rows:
            made.store(*({"k": k, "w": w, "s": s} for k, w, s in rows))
        return made

    def keyed_by(self, key: Mapping[str, str], paradigm: str = "DELETE_ROW_AND_INSERT_ROW") -> SinkTable:
        """Make an empty table like that of :meth:`keyed`, with other key columns: name -> type."""
        columns = (
            *(Column(name, kind, nullable=False) for name, kind in key.items()),
            *(Column("w", "bigint"), Column("gone", "boolean"), Column("s", "string")),
        )
        options = {"watermark-key": "w", "tombstone-key": "gone", "row-change-paradigm": paradigm}
        return self._create(columns, tuple(key), options)

    def _create(
        self, columns: tuple[Column, ...], key: tuple[str, ...], options: Mapping[str, str] | None = None
    ) -> SinkTable:
        name = f"{self.catalog}.default.sinks{next(_NUMBERS)}"
        listed = ", ".join(f"{column.name} {column.type}" for column in columns)
        self.record.made(name, f"create_table t ({listed}), primary_key={key}, properties={dict(options or {})}")
        table = self.session.create_table(name, list(columns), primary_key=list(key), properties=dict(options or {}))
        return SinkTable(self.session, table, columns, key, self.record)
