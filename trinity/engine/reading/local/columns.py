"""Rows in storage form as users see them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from trinity.engine.writing.casts import cast_array
from trinity.spi import Column

__all__ = ["to_user_columns"]


def to_user_columns(page: pa.RecordBatch, columns: Sequence[Column]) -> pa.RecordBatch:
    """Return a page under the names and in the logical types of some columns."""
    shown = pa.schema([c.to_arrow() for c in columns])
    arrays = [cast_array(a, f.type, f"column '{f.name}'", "UTC") for f, a in zip(shown, page.columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=shown)
