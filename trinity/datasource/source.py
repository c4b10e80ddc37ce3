"""The data source, with PySpark's interface. Spark calls it in separate processes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from trinity.calls import translated
from trinity.datasource.columns import as_json, columns_of, shown_columns
from trinity.datasource.offsets import Offset
from trinity.datasource.options import Options
from trinity.datasource.parts import CHANGE_COLUMNS, SourceFile, grouped
from trinity.datasource.rendezvous import ask
from trinity.spi import Column

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_PAUSE_S: Final = 0.2
"""Seconds between two checks of an unchanged table: Spark itself would check a hundred times a second."""


class TrinityDataSource(DataSource):
    """The data source of Trinity tables, which are given by name."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._options = Options.of(options)
        self._inferred: Mapping[str, Any] | None = None

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "trinity"

    def schema(self) -> StructType:
        """Return the table's columns and the change columns."""
        from trinity.spark_names import StructType

        self._inferred = found = self._table()
        return StructType.fromJson(found["schema"])

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch."""
        found = self._inferred or self._table()
        return _BatchReader(self._options.for_batch(), found["version"], _Files(found, schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - pyspark's name
        """Return the reader of a stream."""
        found = self._inferred or self._table()
        return _StreamReader(
            self._options.for_stream(), found["version"], _Files(found, schema, self._inferred is None)
        )

    def _table(self) -> Mapping[str, Any]:
        given = self._options
        at = given.end if given.at is None else given.at
        question = {"ask": "columns", "table": given.table, "at": at, "changes": given.changes}
        found: Mapping[str, Any] = ask(question)
        return found


class _Part(InputPartition):
    """The files of one task."""

    def __init__(self, files: Sequence[SourceFile]) -> None:
        super().__init__(None)
        self.files = tuple(files)


class _Files:
    """The reader of the files of parts. If the caller chose the schema, other columns of the table do not matter."""

    def __init__(self, found: Mapping[str, Any], schema: StructType, chosen: bool = False) -> None:
        self.chosen = chosen
        self.columns = shown_columns(found["table"], columns_of(found["columns"]), schema)
        self._schema = schema

    def read(self, part: _Part) -> Iterator[pa.RecordBatch]:
        """Return the rows of a part."""
        from pyspark.sql.pandas.types import to_arrow_schema

        from trinity.datasource.rows import pages  # only workers need it

        return translated(pages(part.files, self.columns, to_arrow_schema(self._schema)))


class _BatchReader(DataSourceReader):
    """The reader of a batch: of the rows of a version, or the changes of several versions."""

    def __init__(self, options: Options, version: int, files: _Files) -> None:
        self._options = options
        self._version = version
        self._files = files

    def partitions(self) -> list[InputPartition]:
        """Return the parts; files that do not exist yet are written."""
        question = {"ask": "read", "table": self._options.table, "start": self._options.start, "end": self._version}
        return _parts(ask(question))

    def read(self, partition: _Part) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        """Return the rows of a part; Spark passes None when there are no parts."""
        return self._files.read(partition) if partition is not None else iter(())


class _StreamReader(DataSourceStreamReader):
    """The reader of a stream: it asks for offsets and files in the planning process, and reads files in workers."""

    def __init__(self, options: Options, version: int, files: _Files) -> None:
        self._options = options
        self._version = version
        self._files = files
        self._offset: Offset | None = None
        self._looked = 0.0

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - pyspark's name
        """Return the offset at which a new stream begins."""
        return self._options.beginning(self._milliseconds).to_dict()

    def _milliseconds(self, timestamp: str) -> int:
        return int(ask({"ask": "milliseconds", "table": self._options.table, "timestamp": timestamp}))

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802 - pyspark's name
        """Return the newest offset that the stream can reach."""
        at = (self._offset or self._options.beginning(self._milliseconds)).to_dict()
        pause = self._looked + _PAUSE_S - time.monotonic()
        if pause > 0:
            time.sleep(pause)
        question: dict[str, Any] = {
            "ask": "offset",
            "table": self._options.table,
            "start": at,
            "begun": self._offset is not None,
            "most": self._options.most,
        }
        if not self._options.follow:
            columns = as_json(column for column in self._files.columns if column not in CHANGE_COLUMNS)
            question |= {"columns": columns, "of": self._version, "chosen": self._files.chosen}
        found: dict[str, Any] = ask(question)
        self._looked = time.monotonic() if found == at else 0.0
        return found

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the parts of a batch. Spark also calls it with equal offsets, to pass where a query goes on."""
        self._offset = Offset.from_dict(end)
        if start == end:
            return []
        return _parts(ask({"ask": "batch", "table": self._options.table, "start": start, "end": end}))

    def read(self, partition: _Part) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        """Return the rows of a part."""
        return self._files.read(partition)


def _parts(versions: Sequence[Mapping[str, Any]]) -> list[InputPartition]:
    return [_Part(files) for files in grouped(_files_of(versions))]


def _files_of(versions: Sequence[Mapping[str, Any]]) -> Iterator[SourceFile]:
    for found in versions:
        columns: tuple[Column, ...] = columns_of(found["columns"])
        size = found["bytes"] // len(found["files"])
        for path in found["files"]:
            yield SourceFile(
                path, size, columns, found["version"], found["timestamp_ms"], found["rows"], found["store"]
            )
