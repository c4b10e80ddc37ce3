"""Upkeep of many tables by a scheduler: each gets the compaction that its health report advises, and a vacuum."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import Protocol

from trinity.calls import public
from trinity.clock import now_ms
from trinity.engine.compacting.health import Health
from trinity.engine.feed.usable_changes import prune
from trinity.errors import TrinityError
from trinity.merge.compaction_strength import Strength
from trinity.merge.properties import duration_ms
from trinity.names import TableName
from trinity.spi import CommitResult, Connector, VacuumResult
from trinity.storage.foreign import not_ours
from trinity.target import Target


@public
@dataclass(frozen=True)
class Upkeep:
    """Work of ``session.maintain()`` on one table.

    Attributes:
        table: full name of the table; of a schema for the files that dropped tables have left there.
        strength: the compaction that was due, ``minor``, ``resolve`` or ``full``; None when none was.
        compacted: the commit of the compaction; None when none was due, or it failed.
        vacuumed: the files that were removed; None when no vacuum was asked for, or it failed.
        error: the error of this table, if any; other tables are maintained in spite of it. TRANSACTION_CONFLICT when
            another writer compacted the table meanwhile.
    """

    table: str
    strength: str | None = None
    compacted: CommitResult | None = None
    vacuumed: VacuumResult | None = None
    error: TrinityError | None = None


class MaintainedTable(Protocol):
    """The part of a table that upkeep uses."""

    @property
    def name(self) -> TableName: ...

    def health(self) -> Health:
        """Return the state of the table's files."""
        ...

    def compact(self, strength: str | bool | None = None, *, full: bool = False) -> CommitResult:
        """Replace the table's files by fewer."""
        ...

    def vacuum(self, retain: str = "7 days") -> VacuumResult:
        """Remove files that nothing needs."""
        ...


def maintain_table(table: MaintainedTable, retain: str | None) -> Upkeep:
    """Compact a table if that is due, and vacuum versions replaced longer ago than ``retain``; None: vacuum nothing."""
    name = str(table.name)
    strength: str | None = None
    compacted: CommitResult | None = None
    try:
        strength = table.health().strength
        if strength:
            strength, compacted = _compact(table, strength)
        vacuumed = table.vacuum(retain) if retain is not None else None
    except TrinityError as error:
        return Upkeep(name, strength, compacted, error=error)
    return Upkeep(name, strength, compacted, vacuumed)


class CatalogSet(Protocol):
    """The part of a set of catalogs that upkeep uses."""

    def schemas(self, within: TableName | None = None) -> list[tuple[str, str]]:
        """Return (catalog, schema) of each schema."""
        ...

    def __getitem__(self, name: str, /) -> Connector:
        """Return the catalog's connector."""
        ...


def sweep_dropped_tables(catalogs: CatalogSet, within: TableName | None, retain: str | None) -> list[Upkeep]:
    """Remove the files that dropped tables have left; return an entry for each schema that had such files.

    ``within`` is a schema's name; None means all schemas. Files younger than ``retain`` stay; None removes nothing.
    """
    done: list[Upkeep] = []
    if retain is not None:
        before = now_ms() - duration_ms(retain, "maintain(vacuum)")
        for catalog, schema in catalogs.schemas(within):
            try:
                gone, error = catalogs[catalog].metadata.sweep(schema, before), None
            except TrinityError as found:
                gone, error = None, found
            if gone or error:
                done.append(Upkeep(f"{catalog}.{schema}", vacuumed=gone, error=error))
    return done


def _compact(table: MaintainedTable, strength: str) -> tuple[str, CommitResult]:
    """Compact by a strength; instead of a resolve, fully where the table's format or properties allow no resolve."""
    try:
        return strength, table.compact(strength)
    except TrinityError as error:
        if strength != Strength.RESOLVE.value or error.code != "NOT_SUPPORTED":
            raise
    return Strength.FULL.value, table.compact(Strength.FULL.value)


def vacuum(table: Target, retain: str | dt.timedelta) -> VacuumResult:
    """Vacuum a table, and its changelog. Arguments and errors as for :meth:`trinity.Table.vacuum`."""
    if table.definition.external:
        raise not_ours(str(table.name), "vacuum")
    before = now_ms() - duration_ms(retain, "vacuum(retain)")
    done = table.connector.metadata.vacuum(table.handle, before)
    gone = prune(table, table.connector.metadata.history(table.handle), before)
    return replace(done, files=done.files + len(gone), bytes=done.bytes + sum(entry.size for entry in gone))
