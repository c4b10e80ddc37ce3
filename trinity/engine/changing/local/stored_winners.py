"""The stored winner of some keys, dead ones too, in Arrow (M4, M9)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from trinity.arrays import as_arrow, as_numpy
from trinity.engine.not_local import NotLocal
from trinity.engine.reading.data_files import read_columns
from trinity.engine.reading.local.executor import LocalExecutor
from trinity.engine.reading.local.selection import to_user_columns
from trinity.engine.reading.plan import FoldPlan
from trinity.hidden import DELETED
from trinity.merge.arrow.fold import beats, compared_columns
from trinity.merge.arrow.keys import Keys
from trinity.merge.spec import MergeSpec
from trinity.spi import SplitSource

__all__ = ["stored_winners"]


def stored_winners(splits: SplitSource, spec: MergeSpec, keys: Keys) -> pa.Table | NotLocal:
    """Return the winning row version of each of some keys that has one.

    Returns:
        key and ordering columns in their logical types, and ``DELETED``; or why Spark has to look.

    Raises:
        TrinityError: BAD_DATA naming a corrupt or missing file.
    """
    fold = FoldPlan.of(splits, spec)
    log = _of_log(fold, spec, keys)
    if isinstance(log, NotLocal):
        return log
    base = pa.concat_tables([log.slice(0, 0), *_of_base(fold, spec, keys)])
    later = np.full(len(keys), -1)
    later[keys.numbers(log)] = np.arange(len(log))
    there = later[keys.numbers(base)]
    both = np.flatnonzero(there >= 0)
    wins = beats(spec, base.take(both), log.take(there[both]))
    stays = np.ones(len(log), bool)
    stays[there[both[wins]]] = False
    alone = np.ones(len(base), bool)
    alone[both[~wins]] = False
    return pa.concat_tables([log.filter(as_arrow(stays)), base.filter(as_arrow(alone))]).combine_chunks()


def _of_log(fold: FoldPlan, spec: MergeSpec, keys: Keys) -> pa.Table | NotLocal:
    if not (fold.log or fold.runs or fold.splits.sidecar):
        found = fold.splits.storage.empty_table().append_column(DELETED, pa.array([], pa.bool_()))
    else:
        winners = LocalExecutor().log_winners(fold)
        if isinstance(winners, NotLocal):
            return winners
        found = winners
    rows = _in_logical_types(fold.splits, spec, found).append_column(DELETED, found.column(DELETED))
    return rows.take(keys.lookup(rows)[0])


def _of_base(fold: FoldPlan, spec: MergeSpec, keys: Keys) -> Iterator[pa.Table]:
    for file in fold.base:
        rows = read_columns(file.path, fold.splits.storage, compared_columns(spec))
        places = np.arange(len(rows))
        if file.deletes is not None:
            places = np.setdiff1d(places, as_numpy(file.deletes.positions()), assume_unique=True)
        found = _in_logical_types(fold.splits, spec, rows.take(places))
        found = found.take(keys.lookup(found)[0])
        yield found.append_column(DELETED, as_arrow(np.zeros(len(found), bool)))


def _in_logical_types(splits: SplitSource, spec: MergeSpec, rows: pa.Table) -> pa.Table:
    """Return key and ordering columns of rows in storage form as they are compared with new ones."""
    columns = [splits.definition.column(name) for name in compared_columns(spec)]
    shown = rows.select([c.name for c in columns]).combine_chunks()
    pages = [to_user_columns(page, columns) for page in shown.to_batches()]
    return pa.Table.from_batches(pages, pa.schema([c.to_arrow() for c in columns]))
