"""Offsets of a stream of changes, and the commits between two of them. Pure: no Spark, no files.

An offset is JSON in Spark's checkpoint. A new stream begins at a symbolic offset and not at a version: Spark asks for
it again when the first batch is repeated, and the batch must not depend on the time of that call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from trinity.engine.feed.reader_position import ReaderPosition
from trinity.errors import TrinityError
from trinity.messages import value_text
from trinity.spi import CommitOperation, HistoryEntry, SplitSource

Beginning = Literal["rows", "latest", "version", "timestamp"]
_BEGINNINGS: Final = ("rows", "latest", "version", "timestamp")
_REMEDY: Final = "Begin a new checkpoint: without startingVersion it starts with the rows as they are then."


@dataclass(frozen=True)
class Offset:
    """A version of a table up to which a stream has read; or the one where a new stream begins.

    Attributes:
        version: the newest version that was read; of a beginning at a version, the first one to read.
        table: the id of the table, which other tables of its name do not have; empty where there is none.
        begins: ``rows`` for the table's rows and then its changes, ``latest`` for changes from now on, ``version`` and
            ``timestamp`` for changes from there; None once something was read.
        timestamp_ms: of a beginning at a time, milliseconds since the epoch.
        commit: as for :class:`ReaderPosition`; empty in the checkpoints of older releases too.
    """

    version: int | None = None
    table: str = ""
    begins: Beginning | None = None
    timestamp_ms: int | None = None
    commit: str = ""

    @classmethod
    def after(cls, found: HistoryEntry, table: str) -> Offset:
        """Return the offset after a commit of the table with this id."""
        return cls(found.version, table, commit=ReaderPosition.of(found).commit)

    def check(self, name: str, found: HistoryEntry | SplitSource) -> None:
        """Check that the commit of this version is the one that the stream has read. Raise INVALID_ARGUMENTS."""
        if self.begins is None and self.version is not None:
            ReaderPosition(self.version, self.commit).check(name, found, "the stream", _REMEDY)

    def to_dict(self) -> dict[str, Any]:
        """Return the offset as JSON. Spark compares its text, so the order of its fields is always the same."""
        fields = (
            ("begins", self.begins),
            ("version", self.version),
            ("timestamp_ms", self.timestamp_ms),
            ("commit", self.commit or None),
        )
        return {**{name: value for name, value in fields if value is not None}, "table": self.table}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Offset:
        """Return the offset that :meth:`to_dict` wrote. Raise INVALID_ARGUMENTS for anything else."""
        version, begins, at = data.get("version"), data.get("begins"), data.get("timestamp_ms")
        fits = all(value is None or type(value) is int for value in (version, at))
        needed = {"version": version, "timestamp": at, None: version}.get(begins, 0)
        if not fits or begins not in (*_BEGINNINGS, None) or needed is None:
            raise TrinityError(
                "INVALID_ARGUMENTS", f"The checkpoint's offset {value_text(data)} is none of a stream of Trinity's."
            )
        return cls(version, str(data.get("table", "")), begins, at, str(data.get("commit", "")))


@dataclass(frozen=True)
class Batch:
    """The rows and changes between two offsets.

    Attributes:
        rows: the commit with whose rows a new stream begins.
        changes: the commits whose changes follow, in their order.
    """

    rows: HistoryEntry | None = None
    changes: tuple[HistoryEntry, ...] = ()


def batch(name: str, history: Sequence[HistoryEntry], start: Offset, end: Offset) -> Batch:
    """Return the content of a batch, which is always the same as long as it can be read.

    Raises:
        TrinityError: INVALID_ARGUMENTS for versions that were vacuumed, naming the oldest readable one; that the
            table has never had; or that it lost when it was restored to an earlier one.
    """
    if start == end or start.begins == "latest":
        return Batch()
    last = next((entry for entry in history if entry.version == end.version), None)
    if last is None:
        raise _unreadable(name, history, end)
    end.check(name, last)
    if start.begins == "rows":
        return Batch(rows=last)
    return Batch(changes=tuple(e for e in commits_after(name, history, start) if e.version <= last.version))


def commits_after(name: str, history: Sequence[HistoryEntry], start: Offset) -> list[HistoryEntry]:
    """Return the commits whose changes are still to be read; for the beginnings ``rows`` and ``latest`` the newest.

    Arguments and errors as for :func:`batch`.
    """
    if start.begins in ("rows", "latest"):
        return [history[-1]]
    if start.timestamp_ms is not None:
        if start.timestamp_ms > history[-1].timestamp_ms:
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"startingTimestamp is after the newest commit of table '{name}', version {history[-1].version}; "
                "startingVersion=latest streams what comes from now on.",
            )
        return [entry for entry in history if entry.timestamp_ms >= start.timestamp_ms]
    version = start.version or 0
    first = version if start.begins else version + 1
    found = next((entry for entry in history if entry.version == version), None)
    if found is None and (first != history[0].version or history[0].operation == CommitOperation.REPAIR):
        raise _unreadable(name, history, start)
    if found is not None:
        start.check(name, found)
    return [entry for entry in history if entry.version >= first]


def _unreadable(name: str, history: Sequence[HistoryEntry], at: Offset) -> TrinityError:
    oldest, newest = history[0].version, history[-1].version
    if not at.begins:
        ReaderPosition(at.version or 0).check_not_ahead(name, newest, "the stream", _REMEDY)
    if at.begins:
        message = f"no version {at.version} to begin with; its oldest readable one is {oldest}, its newest {newest}."
    elif (at.version or 0) > oldest or history[0].operation == CommitOperation.REPAIR:
        message = (
            f"no version {at.version} any more, which the stream has come to: it is none of those that led to the "
            f"newest, {newest}. The table was put back to an earlier state and written to since, so what changed in "
            f"between is not known. {_REMEDY}"
        )
    else:
        message = (
            f"no version {at.version} any more, which the stream has come to: it was vacuumed, and what changed since "
            f"is not known; the oldest version still readable is {oldest}, the newest {newest}. {_REMEDY} Stream more "
            "often, or vacuum with a longer retain."
        )
    return TrinityError("INVALID_ARGUMENTS", f"Table '{name}' has {message}")
