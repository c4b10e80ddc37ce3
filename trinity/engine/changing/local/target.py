"""The rows of a statement's target in Arrow, in the columns of the join (M1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from trinity.arrays import as_arrow
from trinity.engine.changing.local.changes import FILE_FIELD, PLACE_FIELD
from trinity.engine.changing.local.compiled import target_field
from trinity.engine.executes import NotLocal
from trinity.engine.reading.data_files import located_pages
from trinity.engine.reading.files import why_not_files
from trinity.engine.reading.local.executor import LocalExecutor
from trinity.engine.reading.local.selection import Selection, to_user_columns
from trinity.engine.reading.plan import plan_read
from trinity.engine.reading.predicate import Predicate
from trinity.spi import Column, DataFile, SplitSource, arrival_order
from trinity.storage import Location


def why_not_read(splits: SplitSource) -> NotLocal | None:
    """Return why this process cannot read the rows of a version; None when it can."""
    if splits.definition.keyed:
        return plan_read(splits).not_local
    return why_not_files(splits)


def target_schema(splits: SplitSource, columns: Sequence[Column]) -> pa.Schema:
    """Return the schema of the target's rows."""
    fields = [pa.field(target_field(splits.definition, c.name), c.to_arrow().type) for c in columns]
    if not splits.definition.keyed:
        fields += [pa.field(FILE_FIELD, pa.string()), pa.field(PLACE_FIELD, pa.int64())]
    return pa.schema(fields)


def located_rows(
    splits: SplitSource, files: Iterable[DataFile], columns: Sequence[Column], predicate: Predicate | None
) -> Iterator[Callable[[], Iterator[pa.RecordBatch]]]:
    """Yield functions that read the rows of a plain table's files for which a predicate is true, with positions.

    Raises:
        TrinityError: BAD_DATA naming a corrupt or missing file; the functions raise it, and the predicate's errors.
    """
    selection = Selection.of(splits, columns, predicate)
    storage = selection.storage if len(selection.storage) else pa.schema([splits.storage.field(0)])
    read = _Read(target_schema(splits, columns), selection, storage)
    for file in files:
        yield from (partial(read.rows, file, part) for part in selection.parts(file))


@dataclass(frozen=True)
class _Read:
    schema: pa.Schema
    selection: Selection
    storage: pa.Schema

    def rows(self, file: DataFile, group: int | None) -> Iterator[pa.RecordBatch]:
        uri, wanted = Location.of(file.path).uri, self.selection
        for page, positions in located_pages(file, self.storage, group):
            rows, at = to_user_columns(page.select(range(len(wanted.columns))), wanted.columns), as_arrow(positions)
            if wanted.columns and (holds := wanted.holds(rows)) is not None:
                rows, at = rows.filter(holds), at.filter(holds)
            columns = [*rows.columns[: len(wanted.names)], pa.repeat(uri, len(at)), at]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


def keyed_rows(
    splits: SplitSource,
    files: Sequence[DataFile],
    columns: Sequence[Column],
    keys: pa.Table | None,
    predicate: Predicate | None,
) -> Iterator[pa.RecordBatch] | NotLocal:
    """Return the merged rows of the wanted keys of a keyed table, from files that have all their versions.

    The wanted keys are among ``keys``, and the predicate is true for their rows; None where either is not known. Other
    rows may come, too.

    Raises:
        TrinityError: BAD_DATA naming a corrupt or missing file.
    """
    plan, schema = plan_read(splits, predicate, looks_keys_up=True), target_schema(splits, columns)
    if keys is not None and plan.state is not None and not plan.state.is_known:
        some = plan.state.of_keys(keys, files)
        if some.is_cheap_to_read:
            plan = replace(plan, state=some)
    pages = LocalExecutor(columns).rows(replace(plan, files=sorted(files, key=arrival_order)))
    if isinstance(pages, NotLocal):
        return pages
    return (pa.RecordBatch.from_arrays(page.columns, schema=schema) for page in pages)
