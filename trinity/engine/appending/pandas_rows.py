"""Rows of pandas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from trinity.errors import TrinityError, first_line

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["from_pandas"]


def from_pandas(frame: pd.DataFrame) -> pa.Table:
    """Return the rows of a data frame as Arrow data, without its index.

    Raises:
        TrinityError: DUPLICATE_COLUMN_NAME; TYPE_MISMATCH naming a column whose values Arrow has no type for.
    """
    names = [str(name) for name in frame.columns]
    for name in names:
        if names.count(name) > 1:
            raise TrinityError("DUPLICATE_COLUMN_NAME", f"The data has column '{name}' more than once; rename one.")
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        at, why = next(_without_type(frame), (0, error))
        raise TrinityError(
            "TYPE_MISMATCH",
            f"The values of column '{names[at]}' of the data have no type in common; give them one, as by astype(). "
            f"({first_line(why)})",
        ) from error


def _without_type(frame: pd.DataFrame) -> Iterator[tuple[int, Exception]]:
    """Yield the columns, by place, whose values Arrow cannot take, and why."""
    for at in range(frame.shape[1]):
        try:
            pa.array(frame.iloc[:, at], from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            yield at, error
