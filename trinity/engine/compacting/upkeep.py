"""Upkeep of many tables by a scheduler: each gets the compaction that its health asks for, and a vacuum."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import Protocol

from trinity.calls import public
from trinity.clock import now_ms
from trinity.engine.compacting.health import Health
from trinity.engine.feed.changelog import prune
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
        table: its full name; that of a schema for what dropped tables have left there.
        strength: the compaction that was due, ``minor``, ``resolve`` or ``full``; None when none was.
        compacted: its commit; None when none was due, or it failed.
        vacuumed: what was removed; None when nothing was to be, or it failed.
        error: what went wrong; other tables were looked after all the same. TRANSACTION_CONFLICT when somebody else
            compacted the table meanwhile.
    """

    table: str
    strength: str | None = None
    compacted: CommitResult | None = None
    vacuumed: VacuumResult | None = None
    error: TrinityError | None = None


class MaintainedTable(Protocol):
    """A table, as upkeep sees it."""

    @property
    def name(self) -> TableName: ...

    def health(self) -> Health:
        """Return the state of its files."""
        ...

    def compact(self, strength: str | bool | None = None, *, full: bool = False) -> CommitResult:
        """Replace its files by fewer."""
        ...

    def vacuum(self, retain: str = "7 days") -> VacuumResult:
        """Remove files that nothing needs."""
        ...


def maintain_table(table: MaintainedTable, retain: str | None) -> Upkeep:
    """Compact a table if that is due, and vacuum versions that were replaced longer ago than ``retain``, if any."""
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
    """The catalogs, as upkeep sees them."""

    def schemas(self, within: TableName | None = None) -> list[tuple[str, str]]:
        """Return catalog and schema of each schema."""
        ...

    def __getitem__(self, name: str, /) -> Connector:
        """Return the catalog's connector."""
        ...


def sweep_dropped_tables(catalogs: CatalogSet, within: TableName | None, retain: str | None) -> list[Upkeep]:
    """Remove what dropped tables have left; return an entry for each schema that had any.

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
    """Compact by a strength; fully where the table's format, or a property of it, knows no resolve."""
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
