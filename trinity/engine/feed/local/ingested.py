"""The rows of a commit as they came, with their row kinds, as ``changelog-producer`` = ``input`` shows them (C6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.arrays import where_true
from trinity.engine.feed.local.images import feed_schema
from trinity.engine.feed.local.rows import InColumns
from trinity.engine.feed.steps import Step
from trinity.engine.reading.data_files import located_pages
from trinity.engine.reading.local.selection import to_user_columns
from trinity.merge.arrow.fold import is_deleted
from trinity.merge.spec import MergeSpec, merge_spec
from trinity.spi import CARRIED, Column


def ingested_rows(step: Step, columns: Sequence[Column]) -> pa.Table:
    """Return the rows that a commit added, in the columns of the feed. Raises BAD_DATA naming a file."""
    splits = step.after
    definition, spec, shows = splits.definition, merge_spec(splits.definition), InColumns(splits, columns)
    names = dict(zip(definition.columns, splits.storage.names, strict=True))
    stored = [names[column] for column in definition.visible]
    found = [feed_schema(columns).empty_table()]
    for file in step.added:
        for page, _ in located_pages(file, splits.storage):
            shown = shows.shown(to_user_columns(page.select(stored), definition.visible), definition.visible)
            kinds = _kinds(spec, pa.Table.from_batches([page]))
            marks = [kinds, pa.repeat(step.version, page.num_rows)]
            found.append(pa.Table.from_arrays([*shown.columns, *marks], schema=found[0].schema))
    return pa.concat_tables(found)


def _kinds(spec: MergeSpec, rows: pa.Table) -> pa.Array:
    """Return the change type of each row, by its row kind, its mark of deletion and its carried columns."""
    row_kinds = pc.utf8_rtrim(rows.column(spec.row_kind), " ") if spec.row_kind else pa.nulls(len(rows), pa.string())
    kinds = np.full(len(rows), "insert", object)
    if CARRIED in rows.column_names:  # the row of an update marks the columns that it carries
        kinds[where_true(pc.match_substring(rows.column(CARRIED), "1"))] = "update_postimage"
    kinds[where_true(pc.equal(row_kinds, "+U"))] = "update_postimage"
    kinds[where_true(is_deleted(spec, rows))] = "delete"  # a writer's delete copies the row's kind, too
    kinds[where_true(pc.equal(row_kinds, "-U"))] = "update_preimage"
    return pa.array(kinds, pa.string())
