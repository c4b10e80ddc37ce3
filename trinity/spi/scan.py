"""The native scan: reads of a version whose files only the format's own reader understands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from trinity.hidden import FILE, POSITION
from trinity.spi.files import DataFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NATIVE_FILE: Final = FILE
"""STRING column of a native scan: the row's file, as :meth:`NativeScan.name` returns it."""
NATIVE_ROW: Final = POSITION
"""BIGINT column of a native scan: the row's position in its file, from 0; deleted rows count."""


class NativeScan(ABC):
    """A scan of one pinned version by the format's own Spark reader. Used on the driver.

    It is for tables that other engines wrote: the format's reader applies deletes, renamed columns, and partition
    values that are not in the files. Such a version has no base and no sidecar, and its files are in arrival order.
    """

    @abstractmethod
    def rows(self, spark: SparkSession, files: Sequence[DataFile]) -> DataFrame:
        """Return the rows of some files of the version: its storage columns, :data:`NATIVE_FILE`, :data:`NATIVE_ROW`.

        Rows of other files may be among them. ``files`` is not empty.
        """

    @abstractmethod
    def name(self, file: DataFile) -> str:
        """Return the value of :data:`NATIVE_FILE` in the rows of a file."""

    @property
    def not_local(self) -> str | None:
        """The reason why this process cannot read the version's files one by one; None if it can. Read on the driver.

        If it can, :attr:`DataFile.deletes` has all deleted rows of a file, and the file's columns have the names or
        field ids of the storage schema, except those that the schema marks as values of :attr:`DataFile.partition`.
        """
        return "only the format's own reader, in Spark, reads its files"

    @property
    def files_stay(self) -> bool:
        """False if a file's name may be used again for another file. Read on the driver."""
        return True

    @property
    def as_written(self) -> bool:
        """True if other engines may read the version's files one by one, for ``merge_view_sql``. Read on the driver.

        Then all rows of a file are rows of the table, and its columns have the names or field ids of the storage
        schema, except the columns of :attr:`DataFile.partition`, whose values are there.
        """
        return False
