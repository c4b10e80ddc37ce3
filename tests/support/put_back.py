"""Tables that are put back to an earlier state, as by a backup: their folder, and what a catalog says of them."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trinity import Table

_ROW = "FROM iceberg_tables WHERE table_name = ?"


@dataclass(frozen=True)
class Backup:
    """A copy of a table.

    Attributes:
        table: the table.
        folder: where its files are copied to.
        named: what the Iceberg catalog of the warehouse says of it: the present metadata file, and the one before.
    """

    table: Table
    folder: Path
    named: tuple[Any, ...]

    @classmethod
    def of(cls, table: Table, folder: Path) -> Backup:
        """Copy a table as it is now."""
        shutil.copytree(table.location, folder)
        named: tuple[Any, ...] = ()
        if (catalog := _catalog(table)) is not None:
            with closing(sqlite3.connect(catalog)) as names:
                found = names.execute(
                    f"SELECT metadata_location, previous_metadata_location {_ROW}", [table.name.table]
                )
                named = found.fetchone()
        return cls(table, folder, named)

    def put_back(self, *, in_place: bool = False) -> None:
        """Make the table what it was.

        Args:
            in_place: True to let the files be that are in the copy, and to delete the others.
        """
        if in_place:
            rewound(self.table, self.folder)
        else:
            shutil.rmtree(self.table.location)
            shutil.copytree(self.folder, self.table.location)
        if (catalog := _catalog(self.table)) is not None:
            with closing(sqlite3.connect(catalog)) as names, names:
                names.execute(
                    "UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ? "
                    "WHERE table_name = ?",
                    [*self.named, self.table.name.table],
                )


def swapped(table: Table, copy: Path) -> None:
    """Put another folder in the place of the table's."""
    shutil.rmtree(table.location)
    copy.rename(table.location)


def rewound(table: Table, copy: Path) -> None:
    """Roll the table's folder back as a file system does: what came since is gone, what was there is the same file."""
    place = Path(table.location)
    for file in [f for f in place.rglob("*") if f.is_file() and not (copy / f.relative_to(place)).exists()]:
        file.unlink()


def _catalog(table: Table) -> Path | None:
    """The database of an Iceberg table's catalog; None for a table of another format, or without one."""
    found = sorted(Path(table.location).parents[1].glob("*.db")) if table.name.catalog == "iceberg" else []
    return found[0] if found else None
