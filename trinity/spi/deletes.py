"""Rows of a data file that are deleted by position: the file keeps them, but the table no longer has them (R1)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import pyarrow as pa

__all__ = ["Deletes"]


@dataclass(frozen=True)
class Deletes(ABC):
    """The deleted rows of one data file: which files record them, and how many there are. Picklable.

    The shared class is :class:`trinity.storage.PositionDeletes`. A format that records deletes in its own way has its
    own class.

    Attributes:
        rows: number of deleted rows, each counted once.
    """

    rows: int

    @property
    @abstractmethod
    def paths(self) -> tuple[str, ...]:
        """Absolute paths of the files that record the deletes; vacuum keeps these as long as the data file."""

    @abstractmethod
    def positions(self) -> pa.Int64Array:
        """Return the positions of the deleted rows in the data file, counted from 0, ascending.

        Called on the driver and on executors.

        Raises:
            TrinityError: BAD_DATA naming a file that is missing or corrupt.
        """
