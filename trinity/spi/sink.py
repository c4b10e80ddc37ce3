"""Sinks: they take Arrow pages on an executor, or in the process, and return fragments.

A sink sees no Spark. It may be run twice for the same rows (retry, speculation): only the fragments that
``finish_*`` receives count, other files are orphans for vacuum (S6).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum, IntEnum

import pyarrow as pa

from trinity.spi.files import DataFile

__all__ = ["DeleteSink", "MergeSink", "Operation", "PageSink", "RowChangeParadigm"]


class RowChangeParadigm(str, Enum):
    """Representation of a changed row in a table (Trino's ``RowChangeParadigm``)."""

    CHANGE_ONLY_UPDATED_COLUMNS = "CHANGE_ONLY_UPDATED_COLUMNS"
    """A changed row is one row, told which columns changed."""
    DELETE_ROW_AND_INSERT_ROW = "DELETE_ROW_AND_INSERT_ROW"
    """A changed row is a deleted row and an inserted one."""


class Operation(IntEnum):
    """The ``operation`` column of a merge page (S2)."""

    INSERT = 1
    DELETE = 2
    UPDATE = 3
    UPDATE_INSERT = 4
    UPDATE_DELETE = 5


class PageSink(ABC):
    """Writes the rows of one task (Trino's ``ConnectorPageSink``)."""

    @abstractmethod
    def append_page(self, page: pa.RecordBatch) -> None:
        """Takes rows in the target's storage schema, checked and cast by the engine. Empty pages do nothing."""

    @abstractmethod
    def finish(self) -> list[bytes]:
        """Closes the files and returns their fragments (:meth:`DataFile.to_fragment`); none when there was no row.

        Called once, after the last page; then the driver has them for ``finish_*``.
        """

    @abstractmethod
    def abort(self) -> None:
        """Removes what was written, as far as possible. Called instead of :meth:`finish`; never raises."""


class MergeSink(ABC):
    """Stores the changes of one task of a MERGE, UPDATE or DELETE (Trino's ``ConnectorMergeSink``)."""

    @abstractmethod
    def store_merged_rows(self, page: pa.RecordBatch) -> None:
        """Takes a merge page (S1).

        Its columns: data columns in table order, then ``operation`` int8, ``case_number`` int32, ``row_id``.
        A delete+insert sink sees operations 1, 2, 4, 5; a changed-columns sink 1, 2, 3 (S2). Anything else is an error.
        """

    @abstractmethod
    def finish(self) -> list[bytes]:
        """Closes the files and returns their fragments: of new files, and of removed ones (:func:`removal`).

        Called once, after the last page.
        """

    def abort(self) -> None:
        """Removes what was written, as far as possible. Called instead of :meth:`finish`; never raises."""


class DeleteSink(ABC):
    """Writes down which rows of base files one task of a resolve deletes (R1)."""

    @abstractmethod
    def delete_rows(self, file: DataFile, positions: pa.Int64Array) -> None:
        """Adds to the deleted rows of a file. Called once for each file; no other sink has positions of it.

        Args:
            file: the file as it is in the pinned version, with the rows that are deleted already.
            positions: places of further rows, in no order.
        """

    @abstractmethod
    def finish(self) -> list[bytes]:
        """Closes the files and returns fragments for ``finish_resolve``. Called once, after the last file."""

    @abstractmethod
    def abort(self) -> None:
        """Removes what was written, as far as possible. Called instead of :meth:`finish`; never raises."""
