"""A table to which events are applied, and events as the data of a source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

import trinity
from tests.support.events import Event
from trinity import CommitResult, Session

COLUMNS = pa.schema(
    [("id", pa.int32()), ("n", pa.int64()), ("m", pa.int32()), ("name", pa.string()), ("city", pa.string()),
     ("op", pa.string())]
)  # fmt: skip
DELETES = "op = 'D'"


def arrow(events: Sequence[Event]) -> pa.Table:
    rows = [(e.key, *e.sequence, *(0,) * (2 - len(e.sequence)), *e.values, "D" if e.deletes else "U") for e in events]
    return pa.Table.from_pylist([dict(zip(COLUMNS.names, row, strict=True)) for row in rows], COLUMNS)


def upsert(key: int, at: int, name: str | None, city: str | None = None) -> Event:
    return Event(key, (at,), (name, city))


def delete(key: int, at: int) -> Event:
    return Event(key, (at,), (None, None), True)


class Target:
    """A table, and the options with which events are applied to it."""

    def __init__(self, session: Session, name: str, **words: Any) -> None:
        self.words = {"keys": ["id"], "sequence_by": "n", "apply_as_deletes": DELETES, **words}
        self.table = trinity.create_changes_target(session, name, COLUMNS, **self.words)

    def apply(self, *events: Event, txn: tuple[str, int] | None = None) -> CommitResult:
        made = trinity.apply_changes(arrow(events), self.table, txn=txn, **self.words)
        assert isinstance(made, CommitResult)
        return made
