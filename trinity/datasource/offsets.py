"""Offsets of a stream of changes, and the commits that lie between two of them. Pure: no Spark, no files.

An offset is JSON in Spark's checkpoint. A new stream begins at a symbol and not at a version: Spark asks for it again
when the first batch is repeated, and what the batch has must not depend on when it was asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from trinity.errors import TrinityError
from trinity.spi import HistoryEntry

__all__ = ["Batch", "Offset", "batch", "commits_behind"]

Beginning = Literal["rows", "latest", "version", "timestamp"]
_BEGINNINGS: Final = ("rows", "latest", "version", "timestamp")
_REMEDY: Final = "Begin a new checkpoint: without startingVersion it starts with the rows as they are then."


@dataclass(frozen=True)
class Offset:
    """A place in a table's history: what is before it, a stream has read; or where one begins.

    Attributes:
        version: the newest version that it has read; of a beginning at a version the first that it is to read.
        table: the id of the table, which tells it from others that have had the name; empty where there is none.
        begins: ``rows`` for the table's rows and then what changes, ``latest`` for what changes from now on,
            ``version``, ``timestamp``; None once something was read.
        timestamp_ms: of a beginning at a time, milliseconds since the epoch.
    """

    version: int | None = None
    table: str = ""
    begins: Beginning | None = None
    timestamp_ms: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The offset as JSON. Spark compares its text, so that the order of its fields is always the same."""
        fields = (("begins", self.begins), ("version", self.version), ("timestamp_ms", self.timestamp_ms))
        return {**{name: value for name, value in fields if value is not None}, "table": self.table}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Offset:
        """The offset that :meth:`to_dict` gave. Raises INVALID_ARGUMENTS for what is none."""
        version, begins, at = data.get("version"), data.get("begins"), data.get("timestamp_ms")
        fits = all(value is None or type(value) is int for value in (version, at))
        needed = {"version": version, "timestamp": at, None: version}.get(begins, 0)
        if not fits or begins not in (*_BEGINNINGS, None) or needed is None:
            raise TrinityError(
                "INVALID_ARGUMENTS", f"The checkpoint's offset {dict(data)} is none of a stream of Trinity's."
            )
        return cls(version, str(data.get("table", "")), begins, at)


@dataclass(frozen=True)
class Batch:
    """The rows and changes between two offsets.

    Attributes:
        rows: the commit whose rows a new stream begins with.
        changes: the commits whose changes come, in their order.
    """

    rows: HistoryEntry | None = None
    changes: tuple[HistoryEntry, ...] = ()


def batch(name: str, history: Sequence[HistoryEntry], start: Offset, end: Offset) -> Batch:
    """The content of a batch: the same whenever it is asked for, as long as it can be read.

    Args:
        name: the table's, for messages.
        history: the readable commits, oldest first.
        start: where the batch before it ended.
        end: where it ends itself.

    Raises:
        TrinityError: INVALID_ARGUMENTS for versions that were vacuumed, naming the oldest readable one, or that the
            table has never had.
    """
    if start == end or start.begins == "latest":
        return Batch()
    last = next((entry for entry in history if entry.version == end.version), None)
    if last is None:
        raise _unreadable(name, history, end)
    if start.begins == "rows":
        return Batch(rows=last)
    return Batch(changes=tuple(e for e in commits_behind(name, history, start) if e.version <= last.version))


def commits_behind(name: str, history: Sequence[HistoryEntry], start: Offset) -> list[HistoryEntry]:
    """The commits whose changes are still to come; of a stream that begins with the rows, or later ones, the newest.

    Arguments and errors as for :func:`batch`.
    """
    if start.begins in ("rows", "latest"):
        return [history[-1]]
    if start.timestamp_ms is not None:
        if start.timestamp_ms > history[-1].timestamp_ms:
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"startingTimestamp is behind the newest commit of table '{name}', version {history[-1].version}; "
                "startingVersion=latest streams what comes from now on.",
            )
        return [entry for entry in history if entry.timestamp_ms >= start.timestamp_ms]
    version = start.version or 0
    first = version if start.begins else version + 1
    if version not in {entry.version for entry in history} and first != history[0].version:
        raise _unreadable(name, history, start)
    return [entry for entry in history if entry.version >= first]


def _unreadable(name: str, history: Sequence[HistoryEntry], at: Offset) -> TrinityError:
    oldest, newest = history[0].version, history[-1].version
    if at.begins:
        message = f"no version {at.version} to begin with; its oldest readable one is {oldest}, its newest {newest}."
    elif (at.version or 0) > newest:
        message = (
            f"no version {at.version}, which the stream has come to; its newest is {newest}: it was repaired, or put "
            f"back to an earlier state. {_REMEDY}"
        )
    else:
        message = (
            f"no version {at.version} any more, which the stream has come to: it was vacuumed, and what changed since "
            f"is not known; the oldest version still readable is {oldest}, the newest {newest}. {_REMEDY} Stream more "
            "often, or vacuum with a longer retain."
        )
    return TrinityError("INVALID_ARGUMENTS", f"Table '{name}' has {message}")
