"""Sinks: they take Arrow pages, on an executor or in the driver's process, and return fragments.

A sink does not use Spark. It may run twice for the same rows (retry, speculation). Only the fragments that
``finish_*`` receives count; other files are orphans, which vacuum removes (S6).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum, IntEnum

import pyarrow as pa

from trinity.spi.files import DataFile


class RowChangeParadigm(str, Enum):
    """The form in which a sink receives a changed row (Trino's ``RowChangeParadigm``)."""

    CHANGE_ONLY_UPDATED_COLUMNS = "CHANGE_ONLY_UPDATED_COLUMNS"
    """A changed row is one row, with the columns that changed."""
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
    """A sink of the rows of one task (Trino's ``ConnectorPageSink``)."""

    @abstractmethod
    def append_page(self, page: pa.RecordBatch) -> None:
        """Take rows in the target's storage schema, checked and cast by the engine. Empty pages do nothing."""

    @abstractmethod
    def finish(self) -> list[bytes]:
        """Close the files and return their fragments (:meth:`DataFile.to_fragment`); none when there was no row.

        Called once, after the last page. The driver passes the fragments to ``finish_*``.
        """

    @abstractmethod
    def abort(self) -> None:
        """Remove the written files, as far as possible. Called instead of :meth:`finish`; never raises."""


class MergeSink(ABC):
    """A sink of the changes of one task of a MERGE, UPDATE or DELETE (Trino's ``ConnectorMergeSink``)."""

    @abstractmethod
    def store_merged_rows(self, page: pa.RecordBatch) -> None:
        """Take a merge page (S1).

        Its columns are the data columns in table order, then ``operation`` int8, ``case_number`` int32, ``row_id``.
        A delete+insert sink gets operations 1, 2, 4, 5; a changed-columns sink 1, 2, 3 (S2). Any other is an error.
        """

    @abstractmethod
    def finish(self) -> list[bytes]:
        """Close the files and return the fragments of new files, and of removed ones (:func:`removal`).

        Called once, after the last page.
        """

    def abort(self) -> None:
        """Remove the written files, as far as possible. Called instead of :meth:`finish`; never raises."""


class DeleteSink(ABC):
    """A sink of the positions of rows that one task of a resolve deletes from base files (R1)."""

    @abstractmethod
    def delete_rows(self, file: DataFile, positions: pa.Int64Array) -> None:
        """Add to the deleted rows of a file. Called once for each file; no other sink gets positions of that file.

        Args:
            file: the file as it is in the pinned version, with the rows that are deleted already.
            positions: positions of further deleted rows, in no particular order.
        """

    @abstractmethod
    def finish(self) -> list[bytes]:
        """Close the files and return fragments for ``finish_resolve``. Called once, after the last file."""

    @abstractmethod
    def abort(self) -> None:
        """Remove the written files, as far as possible. Called instead of :meth:`finish`; never raises."""
