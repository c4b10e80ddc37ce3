"""Rows of a data file that are deleted by position: the file stays as it is, and they are none of the table's (R1)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import pyarrow as pa

__all__ = ["Deletes"]


@dataclass(frozen=True)
class Deletes(ABC):
    """The deleted rows of one data file: where they are written down, and how many they are. Pickles.

    A format has a class of its own where it writes them in its own way; the shared one is
    :class:`trinity.storage.PositionDeletes`.

    Attributes:
        rows: number of deleted rows, each counted once.
    """

    rows: int

    @property
    @abstractmethod
    def paths(self) -> tuple[str, ...]:
        """Absolute paths of the files in which they are written down; vacuum keeps these as long as the data file."""

    @abstractmethod
    def positions(self) -> pa.Int64Array:
        """Places of the deleted rows in the data file, counted from 0, ascending. On the driver and on executors.

        Raises:
            TrinityError: BAD_DATA naming a file that is missing or corrupt.
        """
