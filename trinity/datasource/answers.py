"""Answers of the driver's process about tables: their columns, their newest offsets, the files of a batch."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from trinity.clock import now_ms
from trinity.datasource.columns import as_json, columns_of, differences
from trinity.datasource.offsets import Batch, Offset, batch, commits_after
from trinity.datasource.parts import CHANGE_COLUMNS
from trinity.engine.feed.compaction_intervals import starting_commit
from trinity.engine.feed.interval import Bound, interval, unknown_version
from trinity.engine.feed.shape import check_names
from trinity.engine.feed.spark.stored_changes import write_files
from trinity.engine.feed.steps import another_table, makes_another
from trinity.engine.feed.stored_changes import store_changes
from trinity.engine.feed.stored_form import stored_columns
from trinity.engine.feed.usable_changes import TableChangelog, prune
from trinity.engine.reading.spark.merged_read import merged_read
from trinity.engine.time_travel import epoch_ms, version_at
from trinity.errors import TrinityError
from trinity.merge.properties import ChangelogProducer, changelog_producer
from trinity.names import TableName
from trinity.spark.settings import pinned
from trinity.spark.texts import char_metadata
from trinity.spi import HistoryEntry, TableDefinition
from trinity.storage import Location
from trinity.storage.changelog import StoredChanges
from trinity.storage.grants import to_learn
from trinity.storage.spark_files import spark_schema
from trinity.target import Target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ExternalFolders(Protocol):
    """The external tables of a session, as the data source uses them."""

    def metadata_folder(self, name: TableName) -> str | None:
        """Return the folder for files about an external table; None if there is no place for one."""
        ...


class Tables(Protocol):
    """A session, as the data source uses it."""

    @property
    def external(self) -> ExternalFolders:
        """The session's external tables."""
        ...

    def table(self, name: str) -> Target:
        """Return the table of a name, as :meth:`trinity.Session.table`."""
        ...


def answer(sessions: Callable[[], Sequence[Tables]], question: Mapping[str, Any]) -> Any:
    """Answer a question, as JSON.

    ``question`` has ``ask``, the kind of question, ``table``, the table's name, and further fields of that kind.

    Raises:
        TrinityError: CATALOG_NOT_FOUND, SCHEMA_NOT_FOUND, TABLE_NOT_FOUND; CONFIGURATION_INVALID without an open
            session; INVALID_ARGUMENTS where the name means different tables in different sessions; and the errors of
            the kind of question.
    """
    session, table = _session_and_table(sessions, question["table"])
    if question["ask"] in _OF_FILES:
        external = table.definition.external
        folder = session.external.metadata_folder(table.name) if external else None
        return _OF_FILES[question["ask"]](table, folder, question)
    return _ANSWERS[question["ask"]](table, question)


def _session_and_table(sessions: Callable[[], Sequence[Tables]], name: str) -> tuple[Tables, Target]:
    found, missing = _tables_by_location(sessions(), name)
    if len(found) > 1:
        found, missing = {}, None
        gc.collect()  # removes sessions that were dropped without being closed
        found, missing = _tables_by_location(sessions(), name)
    if len(found) > 1:
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"'{name}' names different tables in the open sessions of this process: {', '.join(sorted(found))}. Close "
            "the sessions that are not meant.",
        )
    for known in found.values():
        return known
    raise missing or TrinityError(
        "CONFIGURATION_INVALID",
        f"Table '{name}': this process has no open session of Trinity's. Keep the one of trinity.connect open.",
    )


def _tables_by_location(
    sessions: Sequence[Tables], name: str
) -> tuple[dict[str, tuple[Tables, Target]], TrinityError | None]:
    """Return the tables of a name by their locations, and the error of a session that has none."""
    found: dict[str, tuple[Tables, Target]] = {}
    missing: TrinityError | None = None
    for session in sessions:
        try:
            table = session.table(name)
            found.setdefault(table.location, (session, table))
        except TrinityError as error:
            missing = missing or error
    return found, missing


def _columns(table: Target, question: Mapping[str, Any]) -> Any:
    """Return the columns of a version, or of the newest one, and the version."""
    at = question["at"]
    splits = table.splits(version_at(table, at) if isinstance(at, str) else at)
    check_names(table, splits.definition)
    columns = splits.definition.visible
    shown = (*columns, *(CHANGE_COLUMNS if question["changes"] else ()))
    schema = spark_schema(pa.schema([column.to_arrow() for column in shown]))
    for field, column in zip(schema, shown, strict=True):
        field.metadata = char_metadata(column)
    known = {"columns": as_json(columns), "schema": schema.jsonValue()}
    return {"table": str(table.name), "version": splits.version, **known}


def _milliseconds(table: Target, question: Mapping[str, Any]) -> int:
    return epoch_ms(question["timestamp"], table.session.timezone)


def _offset(table: Target, question: Mapping[str, Any]) -> Any:
    """Return the newest offset that a stream can reach from its present one."""
    start = Offset.from_dict(question["start"])
    splits = table.splits()
    _check_id(table, splits.definition, start)
    if start.begins is None and start.version == splits.version:
        start.check(str(table.name), splits)
        return start.to_dict()
    most = question["most"]
    all_now = (most is not None or not question["begun"]) and reads_all_now(table.session.spark)
    if all_now and not question["begun"]:  # Spark asks once before it passes the checkpoint's offset
        unread = [HistoryEntry(splits.version, splits.timestamp_ms, "", commit=splits.commit)]
    else:
        unread = commits_after(str(table.name), _history(table), start)[: None if all_now else most]
    if "columns" in question:
        unread = _commits_of_same_columns(table, unread, question)
    return Offset.after(unread[-1], splits.definition.id).to_dict() if unread else start.to_dict()


def _commits_of_same_columns(
    table: Target, unread: list[HistoryEntry], question: Mapping[str, Any]
) -> list[HistoryEntry]:
    """Return the commits before the first one with other columns than the stream's.

    Versions that are not newer than the one of the stream's columns are read with these, whatever columns they had.

    Raises:
        TrinityError: NOT_SUPPORTED when the first commit has other columns, or made another table.
    """

    def differ(entry: HistoryEntry) -> list[str]:
        return differences(wanted, table.splits(entry.version).definition.visible, chosen=question["chosen"])

    wanted = columns_of(question["columns"])
    if not unread or not differ(unread[-1]):
        return unread
    for index, entry in enumerate(unread):
        if entry.version > question["of"] and (found := differ(entry)):
            if index:
                return unread[:index]
            if makes_another(table, unread, index):
                raise another_table(table, entry.version)
            raise TrinityError(
                "NOT_SUPPORTED",
                f"Columns of table '{table.name}' have changed in version {entry.version}, where the stream has come "
                f"to: {', '.join(found)}. Spark cannot change the columns of a query that runs. Load the stream again "
                "and start it with the same checkpoint: it goes on from here with the new columns. With option "
                "onSchemaChange=ignore it keeps those that it has.",
            )
    return unread


def _batch(table: Target, folder: str | None, question: Mapping[str, Any]) -> Any:
    """Return the files of a micro-batch; write those that do not exist yet."""
    start, end = Offset.from_dict(question["start"]), Offset.from_dict(question["end"])
    definition = table.definition
    for offset in (start, end):
        _check_id(table, definition, offset)
    history = _history(table)
    found = batch(str(table.name), history, start, end)
    if found.rows is not None and changelog_producer(definition.properties) is ChangelogProducer.FULL_COMPACTION:
        # the changes of later batches begin after that version (C6)
        found = replace(found, rows=starting_commit(table, history, found.rows.version))
    return _files(table, folder, history, found)


def _read(table: Target, folder: str | None, question: Mapping[str, Any]) -> Any:
    """Return the files of the rows of a version; or, if ``start`` is given, of the changes from it to that version."""
    start, end, history = question["start"], question["end"], _history(table)
    if start is None:
        rows = next((entry for entry in history if entry.version == end), None)
        if rows is None:
            raise unknown_version(table, end, history)
        return _files(table, folder, history, Batch(rows=rows))
    part = interval(table, history, Bound(start, inclusive=True), Bound(end, inclusive=True))
    return _files(table, folder, history, Batch(changes=tuple(part.entries)))


def _files(table: Target, folder: str | None, history: list[HistoryEntry], found: Batch) -> list[dict[str, Any]]:
    parts: list[tuple[HistoryEntry, StoredChanges]] = []
    if folder is not None:  # an external table's, which no vacuum removes
        prune(table, history, now_ms() - _KEPT_MS, folder)
    if found.rows is not None:
        parts.append((found.rows, stored_rows(table, found.rows, folder)))
    if found.changes:
        stored = store_changes(table, history, [entry.version for entry in found.changes], folder)
        parts += zip(found.changes, stored, strict=True)
    return [
        {
            "version": entry.version,
            "timestamp_ms": entry.timestamp_ms,
            "rows": entry is found.rows,
            "columns": as_json(changes.columns),
            "files": changes.files,
            "bytes": changes.bytes,
            "store": _store(changes.files[0]),
        }
        for entry, changes in parts
        if changes.files
    ]


def _store(file: str) -> str | None:
    """Return the text from which workers learn how to reach a file's bucket; None for a file on a disk."""
    location = Location.of(file)
    return None if location.on_disk else to_learn(location)


def _history(table: Target) -> list[HistoryEntry]:
    return table.connector.metadata.history(table.handle)


def _check_id(table: Target, definition: TableDefinition, offset: Offset) -> None:
    if offset.table and definition.id and offset.table != definition.id:
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"Table '{table.name}' is another one than the checkpoint is of: it was dropped and made anew. Begin a new "
            "checkpoint.",
        )


_ANSWERS: Final[Mapping[str, Callable[[Target, Mapping[str, Any]], Any]]] = {
    "columns": _columns,
    "milliseconds": _milliseconds,
    "offset": _offset,
}
_OF_FILES: Final[Mapping[str, Callable[[Target, str | None, Mapping[str, Any]], Any]]] = {
    "batch": _batch,
    "read": _read,
}
"""The answers that consist of files; for an external table they need a folder."""
_KEPT_MS: Final = 7 * 24 * 3600 * 1000
"""Milliseconds for which files in an external table's folder stay once no version needs them."""
_ONCE: Final = ("AvailableNowTrigger", "OneTimeTrigger")


def reads_all_now(spark: SparkSession) -> bool:
    """Return whether a query runs that ends once all present data is read. Its one batch has to read everything."""
    state: Any = spark._jsparkSession.sharedState()
    return any(str(query.trigger().toString()) in _ONCE for query in list(state.activeStreamingQueries().values()))


def stored_rows(table: Target, entry: HistoryEntry, folder: str | None) -> StoredChanges:
    """Return the rows of a version, in files that the next vacuum removes; write them if they do not exist yet.

    ``folder`` is the folder for the changes; None for the table's own, which an external table lacks.

    Raises:
        TrinityError: INVALID_ARGUMENTS for a version that cannot be read; NOT_SUPPORTED for an external table without a
            folder; and as reading and writing files.
    """
    from trinity.calls import spark_errors

    known = TableChangelog.of(table, folder)
    if (found := known.changelog.find(entry.version, known.rows_tag(entry))) is not None:
        return found
    splits = table.splits(entry.version)
    columns = stored_columns(splits.definition.visible)
    with pinned(table.session.spark), spark_errors():
        rows = merged_read(table.session.spark, splits)
        files = write_files(table, known.changelog.store.root, TableDefinition("", "", columns), rows)
    return known.changelog.put(entry.version, known.rows_tag(entry), columns, files)
