"""Messages of PostgreSQL's output plugin ``pgoutput``, protocol version 1, as transactions of changes.

Source: postgresql.org/docs, the chapter Logical Replication Message Formats.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Literal

from trinity.errors import TrinityError


class Unlogged(Enum):
    """A value that is not in the log."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unlogged.UNCHANGED
"""The value of a TOAST column that did not change."""
Value = str | Unlogged | None
"""A value in PostgreSQL's text form, :data:`UNCHANGED`, or None for NULL."""

_EPOCH: Final = int(dt.datetime(2000, 1, 1, tzinfo=dt.UTC).timestamp() * 1000)
"""The epoch of PostgreSQL's times, in milliseconds since 1970."""


@dataclass(frozen=True)
class Field:
    """A column of a relation: its name, the OID of its type, and whether the replica identity holds it."""

    name: str
    type: int
    identity: bool


@dataclass(frozen=True)
class Relation:
    """A table as it was when its changes were logged."""

    schema: str
    name: str
    fields: tuple[Field, ...]

    @property
    def full_name(self) -> str:
        """``schema.name``."""
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True)
class RelationChange:
    """A change of a row, or the truncation of a relation.

    Attributes:
        op: ``c`` (insert), ``u`` (update), ``d`` (delete), ``t`` (truncation), or ``r`` for a row as it was found:
            Debezium's letters.
        lsn: the position of the change in the log.
        before: the old row; or its replica identity's columns, the others None. None where it was not logged.
        whole: True when ``before`` is the whole row (REPLICA IDENTITY FULL).
    """

    relation: Relation
    op: Literal["c", "u", "d", "t", "r"]
    lsn: int
    before: Sequence[Value] | None = None
    after: Sequence[Value] | None = None
    whole: bool = False


@dataclass
class Transaction:
    """A transaction that was committed.

    Attributes:
        time_ms: when it was committed, in milliseconds since 1970.
        end: the LSN after its commit.
        changes: in the order in which they were made.
    """

    xid: int
    time_ms: int
    end: int = 0
    changes: list[RelationChange] = field(default_factory=list)


def transactions(messages: Iterable[tuple[int, bytes]]) -> Iterator[Transaction]:
    """Yield the transactions in messages: (LSN, message) as the slot gives them, from the beginning of a transaction.

    Raises:
        TrinityError: BAD_DATA for a message that is not of this protocol.
    """
    relations: dict[int, Relation] = {}
    current: Transaction | None = None
    for lsn, message in messages:
        kind = message[:1]
        if kind == b"B":
            _, time, xid = _BEGIN.unpack_from(message, 1)
            current = Transaction(xid, _EPOCH + time // 1000)
        elif kind == b"R":
            oid, relation = _relation(message)
            relations[oid] = relation
        elif kind in _SKIPPED:
            continue
        elif current is None or kind not in _KNOWN:
            raise TrinityError(
                "BAD_DATA", f"The slot gives a message {kind!r} that is not understood; its plugin must be pgoutput."
            )
        elif kind == b"C":
            current.end = _COMMIT.unpack_from(message, 1)[2]
            yield current
            current = None
        elif kind == b"T":
            current.changes += [RelationChange(relations[oid], "t", lsn) for oid in _truncated_relations(message)]
        else:
            current.changes.append(_change(message, relations[_OID.unpack_from(message, 1)[0]], lsn))


_OID: Final = struct.Struct(">I")
_COUNT: Final = struct.Struct(">H")
_BEGIN: Final = struct.Struct(">qqI")
_COMMIT: Final = struct.Struct(">bqqq")
_TYPE: Final = struct.Struct(">Ii")
_KNOWN: Final = frozenset((b"C", b"I", b"U", b"D", b"T"))
_SKIPPED: Final = frozenset((b"Y", b"O", b"M"))
"""Names of types, origins of transactions, and messages of applications."""
_NULL, _TOAST, _TEXT = b"nut"


def _relation(message: bytes) -> tuple[int, Relation]:
    """Return the OID of a relation, and the relation."""
    schema, at = _name(message, 5)
    name, at = _name(message, at)
    (count,) = _COUNT.unpack_from(message, at + 1)  # after the kind of the replica identity
    at += 3
    fields = []
    for _ in range(count):
        flags = message[at]
        column, at = _name(message, at + 1)
        fields.append(Field(column, _TYPE.unpack_from(message, at)[0], bool(flags & 1)))
        at += _TYPE.size
    # pg_catalog is sent as an empty name
    return _OID.unpack_from(message, 1)[0], Relation(schema or "pg_catalog", name, tuple(fields))


def _name(message: bytes, at: int) -> tuple[str, int]:
    """Return a text that ends with NUL, and the offset after it."""
    end = message.index(0, at)
    return message[at:end].decode(), end + 1


def _truncated_relations(message: bytes) -> tuple[int, ...]:
    """Return the OIDs of the relations that a TRUNCATE empties."""
    (count,) = _OID.unpack_from(message, 1)
    return struct.unpack_from(f">{count}I", message, 6)


def _change(message: bytes, relation: Relation, lsn: int) -> RelationChange:
    """Return the change in an insert, update or delete message."""
    part, at = message[5:6], 6
    before: list[Value] | None = None
    whole = False
    if part in (b"K", b"O"):
        whole = part == b"O"
        before, at = _row(message, at)
        part, at = message[at : at + 1], at + 1
    if part != b"N":
        return RelationChange(relation, "d", lsn, before, None, whole)
    after, _ = _row(message, at)
    if before is not None and UNCHANGED in after:
        known = (whole or field.identity for field in relation.fields)  # the old key is logged for a long unchanged one
        after = [old if new is UNCHANGED and k else new for old, new, k in zip(before, after, known, strict=True)]
    return RelationChange(relation, "c" if message[:1] == b"I" else "u", lsn, before, after, whole)


def _row(message: bytes, at: int) -> tuple[list[Value], int]:
    """Return a row, and the offset after it."""
    (count,) = _COUNT.unpack_from(message, at)
    at += 2
    row: list[Value] = []
    for _ in range(count):
        kind = message[at]
        at += 1
        if kind == _TEXT:
            end = at + 4 + _OID.unpack_from(message, at)[0]
            row.append(message[at + 4 : end].decode())
            at = end
        elif kind in (_NULL, _TOAST):
            row.append(None if kind == _NULL else UNCHANGED)
        else:
            raise TrinityError("BAD_DATA", f"The slot gives a value of kind {chr(kind)!r}, which was not asked for.")
    return row, at
