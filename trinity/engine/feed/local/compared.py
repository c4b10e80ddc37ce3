"""The changes of a step that may have rewritten files, found by comparing two merged reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from trinity.engine.executes import NotLocal
from trinity.engine.feed.local.images import NONE, Pairs
from trinity.engine.feed.local.rows import InColumns
from trinity.engine.feed.steps import Step
from trinity.engine.reading.local.executor import LocalExecutor
from trinity.engine.reading.plan import plan_read
from trinity.merge.kernels.keys import Keys
from trinity.spi import Column, SplitSource


def compared_pairs(step: Step, columns: Sequence[Column], key: Sequence[str]) -> Pairs:
    """Return the pairs of images of a step."""
    before, after = _images(step.before, columns), _images(step.after, columns)
    rows = pa.concat_tables([before, after])
    keys, numbers = Keys.of(rows, key)
    was, there = np.full(len(keys), NONE), np.full(len(keys), NONE)
    was[numbers[: len(before)]] = np.arange(len(before))
    there[numbers[len(before) :]] = np.arange(len(before), len(rows))
    return Pairs(rows, was, there, np.full(len(keys), step.version)).that_differ()


def _images(splits: SplitSource, columns: Sequence[Column]) -> pa.Table:
    known = {c.identity for c in columns}
    old = [c for c in splits.definition.visible if c.identity in known]
    pages = LocalExecutor(old).rows(plan_read(splits))
    assert not isinstance(pages, NotLocal)
    shown = InColumns(splits, columns)
    return pa.Table.from_batches([shown.shown(page, old) for page in pages], shown.schema)
