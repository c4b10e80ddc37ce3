"""Options of the data source, for ``spark.readStream.option`` and ``spark.read.option``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from trinity.datasource.offsets import Offset
from trinity.errors import TrinityError, nearest

_STREAM: Final = ("maxVersionsPerTrigger", "onSchemaChange")
_BATCH: Final = ("endingVersion", "endingTimestamp", "versionAsOf", "timestampAsOf", "readChangeFeed")
_NAMES: Final = ("table", "startingVersion", "startingTimestamp", *_STREAM, *_BATCH)
_APART: Final = (
    ("startingVersion", "startingTimestamp"),
    ("endingVersion", "endingTimestamp"),
    ("versionAsOf", "timestampAsOf"),
    ("startingVersion", "versionAsOf"),
    ("startingVersion", "timestampAsOf"),
    ("startingTimestamp", "versionAsOf"),
    ("startingTimestamp", "timestampAsOf"),
)
"""Pairs of options that exclude each other."""

Moment = int | str
"""A version, or a time as ISO text."""


@dataclass(frozen=True)
class Options:
    """The options: the table, and what is read of it.

    Attributes:
        table: the table's name, as :meth:`trinity.Session.table` takes it.
        start: the first version, or time, whose changes are read; ``latest`` for changes from now on; None for the
            rows.
        end: the last version, or time, of a batch's changes; None for the newest.
        at: the version, or time, whose rows a batch reads; None for the newest.
        most: maximum number of versions in one micro-batch; None for all.
        follow: True to go on with the stream's columns when the table's change.
        changes: False to leave out the change columns.
        given: names of the given options, in canonical spelling.
    """

    table: str
    start: Moment | Literal["latest"] | None = None
    end: Moment | None = None
    at: Moment | None = None
    most: int | None = None
    follow: bool = False
    changes: bool = True
    given: frozenset[str] = frozenset()

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Options:
        """Parse the given options, whose names ignore case.

        Raises:
            TrinityError: INVALID_ARGUMENTS for an unknown option, an invalid value, two options that exclude each
                other, and a missing table.
        """
        values = {_option_name(name): value.strip() for name, value in given.items()}
        if not values.get("table"):
            raise TrinityError("INVALID_ARGUMENTS", 'Which table? Give option("table", "catalog.schema.table").')
        for one, other in _APART:
            if one in values and other in values:
                raise TrinityError("INVALID_ARGUMENTS", f"Give option {one} or {other}, not both.")
        latest = values.get("startingVersion", "").lower() == "latest"
        most = values.get("maxVersionsPerTrigger")
        return cls(
            values["table"],
            "latest" if latest else _moment(values, "startingVersion", "startingTimestamp"),
            _moment(values, "endingVersion", "endingTimestamp"),
            _moment(values, "versionAsOf", "timestampAsOf"),
            None if most is None else _number("maxVersionsPerTrigger", most, least=1),
            _one_of(values, "onSchemaChange", {"fail": False, "ignore": True}, default="fail"),
            _one_of(values, "readChangeFeed", {"true": True, "false": False}, default="true"),
            frozenset(values),
        )

    def for_stream(self) -> Options:
        """Return these options. Raise INVALID_ARGUMENTS for an option that only a batch has."""
        return self._only(_BATCH, "spark.readStream has no option {}; it is one of spark.read.")

    def for_batch(self) -> Options:
        """Return these options. Raise INVALID_ARGUMENTS for an option that only a stream has, or that needs another."""
        if self.start == "latest":
            raise TrinityError("INVALID_ARGUMENTS", "startingVersion=latest: a batch has no changes yet to come.")
        if self.end is not None and self.start is None:
            raise TrinityError("INVALID_ARGUMENTS", "endingVersion and endingTimestamp need where changes begin.")
        if self.start is not None and not self.changes:
            raise TrinityError("INVALID_ARGUMENTS", "Changes are read with the columns that tell what changed.")
        return self._only(_STREAM, "spark.read has no option {}; it is one of spark.readStream.")

    def _only(self, others: tuple[str, ...], message: str) -> Options:
        for name in others:
            if name in self.given:
                raise TrinityError("INVALID_ARGUMENTS", message.format(name))
        return self

    def beginning(self, milliseconds: Callable[[str], int]) -> Offset:
        """Return the offset at which a new stream begins; ``milliseconds`` tells those since the epoch of ISO text."""
        if self.start is None:
            return Offset(begins="rows")
        if self.start == "latest":
            return Offset(begins="latest")
        if isinstance(self.start, int):
            return Offset(self.start, begins="version")
        return Offset(begins="timestamp", timestamp_ms=milliseconds(self.start))


def _option_name(name: str) -> str:
    found = {known.lower(): known for known in _NAMES}.get(name.lower())
    if found is None:
        message = f"Unknown option '{name}'.{nearest(name, _NAMES)} There are: {', '.join(_NAMES)}."
        raise TrinityError("INVALID_ARGUMENTS", message)
    return found


def _moment(values: Mapping[str, str], version: str, timestamp: str) -> Moment | None:
    return _number(version, values[version], least=0) if version in values else values.get(timestamp)


def _number(name: str, value: str, *, least: int) -> int:
    if not (value.isascii() and value.isdigit()) or int(value) < least:
        raise TrinityError("INVALID_ARGUMENTS", f"Option {name}={value}: give a whole number, {least} or more.")
    return int(value)


def _one_of(values: Mapping[str, str], name: str, known: Mapping[str, bool], *, default: str) -> bool:
    value = values.get(name, default).lower()
    if value not in known:
        raise TrinityError("INVALID_ARGUMENTS", f"Option {name}={value}: it is {' or '.join(known)}.")
    return known[value]
