"""Faults of adapters that only a crash, an error or a lost answer shows: the in-memory format with stored versions."""

from __future__ import annotations

import pickle
from contextlib import suppress
from dataclasses import replace
from typing import Final

from trinity.errors import TrinityError
from trinity.memory import MemoryMetadata
from trinity.spi import CommitOperation, TableDefinition, TableHandle
from trinity.storage import AlreadyExists, CommitRaced, ObjectStore, TableVersion

_VERSIONS: Final = "_versions"


class StoredMetadata(MemoryMetadata):
    """The metadata of the in-memory format with versions that are objects: each is put if it is absent."""

    def create_table(self, definition: TableDefinition) -> TableHandle:
        made = super().create_table(definition)
        self.write_version(made, self._versions[made.location][0])
        return made

    def newest_version(self, table: TableHandle) -> int:
        self._of(table)
        return max(int(name) for name in ObjectStore(table.location).names(_VERSIONS) if name.isdecimal())

    def read_version(self, table: TableHandle, number: int) -> TableVersion:
        try:
            found: TableVersion = pickle.loads(ObjectStore(table.location).get(_name(number)))
        except (FileNotFoundError, EOFError, pickle.UnpicklingError) as error:
            raise TrinityError("BAD_DATA", f"Version {number} of '{table.full_name}' is corrupt: {error}.") from error
        return found

    def write_version(self, table: TableHandle, version: TableVersion) -> None:
        try:
            ObjectStore(table.location).put_if_absent(_name(version.number), pickle.dumps(version))
        except AlreadyExists as taken:
            raise CommitRaced(f"version {version.number} was taken") from taken


def _name(number: int) -> str:
    return f"{_VERSIONS}/{number}"


class PutsAreVersions(StoredMetadata):
    """What a put has begun is taken for a version (against L6)."""

    def newest_version(self, table: TableHandle) -> int:
        self._of(table)
        names = (name.removeprefix(".").partition(".")[0] for name in ObjectStore(table.location).names(_VERSIONS))
        return max(int(name) for name in names if name.isdecimal())


class VersionsWrittenInPlace(StoredMetadata):
    """A version is readable before it is whole (against L6)."""

    def write_version(self, table: TableHandle, version: TableVersion) -> None:
        try:
            with ObjectStore(table.location).writer(_name(version.number)) as stream:
                stream.write(pickle.dumps(version))
        except FileExistsError as taken:
            raise CommitRaced(f"version {version.number} was taken") from taken
        except OSError as error:
            raise TrinityError("FILESYSTEM_ERROR", f"Version {version.number} cannot be written: {error}.") from error


class TransactionInASecondObject(StoredMetadata):
    """A transaction is recorded by a second operation, after the rows (against L4)."""

    def write_version(self, table: TableHandle, version: TableVersion) -> None:
        known = self.read_version(table, version.number - 1).txns if version.number else {}
        super().write_version(table, replace(version, txns=known))
        if known != version.txns:
            ObjectStore(table.location).put(_name(version.number), pickle.dumps(version))


class ReplacedFilesGoFirst(StoredMetadata):
    """A compaction deletes the files that it replaces before it is committed (against L6)."""

    def write_version(self, table: TableHandle, version: TableVersion) -> None:
        if version.operation == CommitOperation.COMPACT:
            _, removed = version.difference(self.read_version(table, version.number - 1))
            ObjectStore(table.location).delete(removed)
        super().write_version(table, version)


class ErrorsAreMissingVersions(StoredMetadata):
    """A version that cannot be read now is taken for one that is not there (against L6)."""

    def load_version(self, table: TableHandle) -> TableVersion:
        try:
            return super().load_version(table)
        except TrinityError as error:
            if error.code != "FILESYSTEM_ERROR" or table.version is not None:
                raise
            return self.read_version(table, max(0, self.newest_version(table) - 1))


class KeptBeforeItIsPut(StoredMetadata):
    """A version is kept in memory, and read from there, before it is put (against L6)."""

    def __init__(self, catalog: str, folder: str) -> None:
        super().__init__(catalog, folder)
        self._kept: dict[str, TableVersion] = {}

    def newest_version(self, table: TableHandle) -> int:
        kept = self._kept.get(table.location)
        return max(super().newest_version(table), kept.number if kept else 0)

    def read_version(self, table: TableHandle, number: int) -> TableVersion:
        kept = self._kept.get(table.location)
        return kept if kept is not None and kept.number == number else super().read_version(table, number)

    def write_version(self, table: TableHandle, version: TableVersion) -> None:
        self._kept[table.location] = version
        super().write_version(table, version)


class _Unsure(StoredMetadata):
    """Metadata with a fault when it is unknown whether a version was put."""

    def write_version(self, table: TableHandle, version: TableVersion) -> None:
        try:
            super().write_version(table, version)
        except TrinityError as error:
            if error.code != "COMMIT_STATE_UNKNOWN":
                raise
            self.unsure(table, version)

    def unsure(self, table: TableHandle, version: TableVersion) -> None:
        """Do the wrong thing."""


class UnknownIsRefused(_Unsure):
    """A commit of which nobody can say anything is reported as one that failed (against L6)."""

    def unsure(self, table: TableHandle, version: TableVersion) -> None:
        raise TrinityError("FILESYSTEM_ERROR", f"Version {version.number} cannot be written.")

    def commit_version(self, table: TableHandle, version: TableVersion) -> None:
        self.write_version(table, version)


class UnknownIsSuccess(_Unsure):
    """A commit of which nobody can say anything is reported as one that succeeded (against L6)."""


class UnknownIsRepeated(_Unsure):
    """A commit of which nobody can say anything is put again, under the next number (against L4)."""

    def unsure(self, table: TableHandle, version: TableVersion) -> None:
        files = (*version.files, *(file for file in version.files if file.commit == version.number))
        super().write_version(table, replace(version, number=self.newest_version(table) + 1, files=files))


class FollowUpWorkIsTold(StoredMetadata):
    """A commit that stands is reported as one that failed, for an error of the work after it (against L6)."""

    def write_version(self, table: TableHandle, version: TableVersion) -> None:
        super().write_version(table, version)
        ObjectStore(table.location).put(f"{_VERSIONS}/newest", str(version.number).encode())

    def commit_version(self, table: TableHandle, version: TableVersion) -> None:
        self.write_version(table, version)


class ErrorsAreForgotten(StoredMetadata):
    """A commit that failed is reported as one that succeeded (against L6)."""

    def write_version(self, table: TableHandle, version: TableVersion) -> None:
        with suppress(TrinityError):
            super().write_version(table, version)

    def commit_version(self, table: TableHandle, version: TableVersion) -> None:
        self.write_version(table, version)


class ErrorsAreCorruption(StoredMetadata):
    """An error of the storage is reported as data that is corrupt (against L6)."""

    def read_version(self, table: TableHandle, number: int) -> TableVersion:
        try:
            return super().read_version(table, number)
        except TrinityError as error:
            raise TrinityError("BAD_DATA", f"Version {number} is corrupt; restore it from a copy.") from error


STORED: Final[tuple[type[StoredMetadata], ...]] = (
    PutsAreVersions, VersionsWrittenInPlace, TransactionInASecondObject, ReplacedFilesGoFirst, ErrorsAreMissingVersions,
    KeptBeforeItIsPut, UnknownIsRefused, UnknownIsSuccess, UnknownIsRepeated, FollowUpWorkIsTold, ErrorsAreForgotten,
    ErrorsAreCorruption,
)  # fmt: skip
"""The metadata with a fault each."""
