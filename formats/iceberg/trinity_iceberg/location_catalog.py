"""A table in a folder, opened by its location: its catalog is not used, or it has none."""

from __future__ import annotations

import contextlib

from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.io import load_file_io
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata
from pyiceberg.typedef import Identifier

from trinity.errors import TrinityError
from trinity.storage import AlreadyExists, Location, ObjectStore
from trinity_iceberg.metadata_files import HINT, METADATA, Numbered, present_file, read_metadata, take_back, to_bytes
from trinity_iceberg.options import FILE_IO


class LocationCatalog(NoopCatalog):
    """A catalog of the one table in a folder, which it has under any name.

    A table without a catalog is committed as by Iceberg's HadoopTables: the next numbered metadata file is put if
    absent.
    """

    def __init__(self, location: str) -> None:
        super().__init__("location")
        self._store = ObjectStore(location)

    def metadata_file(self) -> str | None:
        """Return the current metadata file, None when there is no table. Raises as :func:`present_file`."""
        return present_file(self._store)

    def load_table(self, identifier: str | Identifier) -> Table:
        found = self.metadata_file()
        if found is None:
            raise NoSuchTableError(f"'{self._store.root}' holds no Iceberg table")
        name = tuple(identifier.split(".")) if isinstance(identifier, str) else tuple(identifier)
        metadata = read_metadata(found)
        io = load_file_io({**FILE_IO, **metadata.properties}, found)
        return Table(name, metadata, found, io, self)

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        current = self.load_table(table.name())
        for requirement in requirements:
            requirement.validate(current.metadata)
        changed = update_table_metadata(current.metadata, updates, metadata_location=current.metadata_location)
        present = Numbered.of(Location.of(current.metadata_location).name)
        assert present is not None  # ensured by check_writable
        name = present.next(changed.properties)
        try:
            self._store.put_if_absent(f"{METADATA}/{name}", to_bytes(changed, name))
        except AlreadyExists as taken:
            raise CommitFailedException(f"metadata {name.number} was taken") from taken
        if take_back(self._store, name):
            raise CommitFailedException(f"metadata {name.number} was taken, by another spelling")
        _put_hint(self._store, name.number)
        location = self._store.path(f"{METADATA}/{name}")
        return CommitTableResponse.model_validate({"metadata": changed, "metadata-location": location})


def _put_hint(store: ObjectStore, number: int) -> None:
    """Record the newest metadata's number. Readers look for newer ones from there, so a lost hint does no harm."""
    with contextlib.suppress(FileNotFoundError, TrinityError):
        store.put(HINT, str(number).encode(), sync=False)
