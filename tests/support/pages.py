"""Rows of a table with a row for each commit."""

from __future__ import annotations

import pyarrow as pa


def some(*values: int) -> pa.Table:
    """Return rows of the column ``v``."""
    return pa.table({"v": pa.array(values, pa.int32())})
