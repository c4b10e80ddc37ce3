"""Tables that are put back to an earlier state, as by a backup: their folder, and their entry in a catalog."""

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
        folder: the folder with the copies of its files.
        named: the entry of the Iceberg catalog: the present metadata file, and the previous one.
    """

    table: Table
    folder: Path
    named: tuple[Any, ...]

    @classmethod
    def of(cls, table: Table, folder: Path) -> Backup:
        """Copy a table in its present state."""
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
        """Restore the table to the copied state.

        Args:
            in_place: True to keep the files that are in the copy, and to delete only the others.
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
    """Replace the folder of a table by another one."""
    shutil.rmtree(table.location)
    copy.rename(table.location)


def rewound(table: Table, copy: Path) -> None:
    """Delete the files of a table's folder that its copy lacks, and keep the others, as a file system's rollback."""
    place = Path(table.location)
    for file in [f for f in place.rglob("*") if f.is_file() and not (copy / f.relative_to(place)).exists()]:
        file.unlink()


def _catalog(table: Table) -> Path | None:
    """Return the database file of an Iceberg table's catalog; None for other formats, or without a catalog."""
    found = sorted(Path(table.location).parents[1].glob("*.db")) if table.name.catalog == "iceberg" else []
    return found[0] if found else None
