"""Reads of a version whose files only the format's own reader understands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from trinity.spi.files import DataFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["NATIVE_FILE", "NATIVE_ROW", "NativeScan"]

NATIVE_FILE: Final = "_trinity_file"
"""STRING column of a native scan: the row's file, as :meth:`NativeScan.name` says it."""
NATIVE_ROW: Final = "_trinity_row"
"""BIGINT column of a native scan: the row's place in its file, counted from 0 and over deleted rows too."""


class NativeScan(ABC):
    """Reads one pinned version through the format's own Spark reader, on the driver.

    For tables that other engines wrote: deletes, renamed columns and partition values that are not in the files are
    then honoured by those who define them. Such a version has no base and no sidecar, and its files come in arrival
    order.
    """

    @abstractmethod
    def rows(self, spark: SparkSession, files: Sequence[DataFile]) -> DataFrame:
        """The rows of some files of the version: its storage columns, :data:`NATIVE_FILE`, :data:`NATIVE_ROW`.

        Rows of other files may be among them. ``files`` is not empty.
        """

    @abstractmethod
    def name(self, file: DataFile) -> str:
        """Value of :data:`NATIVE_FILE` in the rows of a file."""

    @property
    def as_written(self) -> bool:
        """True when other engines may read the version's files one by one, for ``merge_view_sql``. On the driver.

        True: all rows of a file are rows of the table, under the names or field ids of the storage schema, but for
        the columns of :attr:`DataFile.partition`, which have that value.
        """
        return False
