"""Iceberg tables that other engines made: found by location, read through Iceberg's own Spark reader."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.io import load_file_io
from pyiceberg.manifest import ManifestContent, ManifestFile
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import CommitTableResponse, Table, TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata
from pyiceberg.typedef import Identifier

from trinity.errors import TrinityError
from trinity.spi import NATIVE_FILE, NATIVE_ROW, DataFile, NativeScan, TableHandle
from trinity.storage import HADOOP_S3, AlreadyExists, Location, ObjectStore, granted, path_sql, quoted
from trinity_iceberg.options import FILE_IO

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["IcebergScan", "LocationCatalog", "check_readable", "check_writable", "metadata_file"]

_METADATA: Final = "metadata"
_NUMBERED: Final = re.compile(r"v(\d+)(\.gz)?\.metadata\.json(\.gz)?")
"""Metadata of a table without a catalog: the highest number is the present one."""
_CATALOGUED: Final = re.compile(r"(\d+)-[0-9a-fA-F-]+(\.gz)?\.metadata\.json")
"""Metadata of a table in a catalog, which says which file is the present one."""
_HINT: Final = "version-hint.text"
_WRITABLE: Final = 2


def metadata_file(store: ObjectStore) -> str | None:
    """The newest metadata file of the table in a folder, its absolute path; None when there is no table."""
    names = store.names(_METADATA)
    for pattern in (_NUMBERED, _CATALOGUED):
        found = [(int(match[1]), f"{_METADATA}/{match[0]}") for match in map(pattern.fullmatch, names) if match]
        if found:
            return store.path(max(found, key=lambda f: (f[0], _modified_ns(store, f[1])))[1])
    return None


def _modified_ns(store: ObjectStore, name: str) -> int:
    found = store.stat(name)
    return found.modified_ns if found else 0


class LocationCatalog(NoopCatalog):
    """A table in a folder, as a catalog of one table, whatever name it is asked for.

    A table without a catalog is committed as Iceberg's HadoopTables do it: the next numbered metadata file is put if
    absent.

    Args:
        location: the table's folder.
    """

    def __init__(self, location: str) -> None:
        super().__init__("location")
        self._store = ObjectStore(location)

    def metadata_file(self) -> str | None:
        """The present metadata file; None when there is no table."""
        return metadata_file(self._store)

    def load_table(self, identifier: str | Identifier) -> Table:
        found = self.metadata_file()
        if found is None:
            raise NoSuchTableError(f"'{self._store.root}' holds no Iceberg table")
        name = tuple(identifier.split(".")) if isinstance(identifier, str) else tuple(identifier)
        metadata = FromInputFile.table_metadata(load_file_io(dict(FILE_IO), found).new_input(found))
        io = load_file_io({**FILE_IO, **metadata.properties}, found)
        return Table(name, metadata, found, io, self)

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        current = self.load_table(table.name())
        for requirement in requirements:
            requirement.validate(current.metadata)
        changed = update_table_metadata(current.metadata, updates, metadata_location=current.metadata_location)
        number = _number(current.metadata_location) + 1
        name = f"{_METADATA}/v{number}.metadata.json"
        try:
            self._store.put_if_absent(name, changed.model_dump_json().encode())
        except AlreadyExists as taken:
            raise CommitFailedException(f"metadata {number} was taken") from taken
        _hint(self._store, number)
        return CommitTableResponse.model_validate({"metadata": changed, "metadata-location": self._store.path(name)})


def _number(location: str) -> int:
    match = _NUMBERED.fullmatch(Location.of(location).name)
    assert match is not None  # check_writable saw to it
    return int(match[1])


def _hint(store: ObjectStore, number: int) -> None:
    """Says where the newest metadata is; readers look for newer ones from there, so a lost hint does no harm."""
    with contextlib.suppress(FileNotFoundError, TrinityError):
        store.put(f"{_METADATA}/{_HINT}", str(number).encode(), sync=False)


def check_readable(table: TableHandle, metadata: TableMetadata) -> None:
    """Refuses a table whose commits have no order. Raises NOT_SUPPORTED."""
    if metadata.format_version < 2:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Iceberg table '{table.full_name}' has format version 1, whose commits have no sequence numbers; upgrade "
            "it there: ALTER TABLE ... SET TBLPROPERTIES ('format-version' = '2').",
        )


def check_writable(table: TableHandle, loaded: Table) -> None:
    """Refuses what an append could not honour. Raises NOT_SUPPORTED."""
    if loaded.metadata.format_version > _WRITABLE:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Iceberg table '{table.full_name}' has format version {loaded.metadata.format_version}: Trinity reads it, "
            f"and writes version {_WRITABLE} only.",
        )
    by_location = isinstance(loaded.catalog, LocationCatalog)
    if by_location and not _NUMBERED.fullmatch(Location.of(loaded.metadata_location).name):
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Iceberg table '{table.full_name}' belongs to a catalog, without which nobody can commit to it; Trinity "
            "reads it. To write, connect with that catalog, and register the table under its name there.",
        )


class IcebergScan(NativeScan):
    """Reads a version through Iceberg's Spark reader: deletes, renamed columns, files without field ids.

    Args:
        table: the table.
        loaded: its metadata.
        snapshot: the version's snapshot.
        columns: names of the storage columns.
        manifests: reads those of the version that still have files.
    """

    def __init__(
        self,
        table: TableHandle,
        loaded: Table,
        snapshot: Snapshot | None,
        columns: Sequence[str],
        manifests: Callable[[], Iterable[ManifestFile]],
    ) -> None:
        self._table, self._columns = table, columns
        self._loaded, self._manifests = loaded, manifests
        self._location = loaded.metadata_location
        newest = snapshot is None or snapshot.snapshot_id == loaded.metadata.current_snapshot_id
        self._snapshot = None if newest or snapshot is None else snapshot.snapshot_id

    def rows(self, spark: SparkSession, files: Sequence[DataFile]) -> DataFrame:
        names = map(quoted, self._columns)
        return self._frame(spark).selectExpr(*names, f"{path_sql('_file')} AS {NATIVE_FILE}", f"_pos AS {NATIVE_ROW}")

    def name(self, file: DataFile) -> str:
        return file.path

    @property
    def as_written(self) -> bool:
        # version 3 has default values, a mapping other names
        if self._loaded.format_version > _WRITABLE or TableProperties.DEFAULT_NAME_MAPPING in self._loaded.properties:
            return False
        return all(m.content == ManifestContent.DATA for m in self._manifests())

    def _frame(self, spark: SparkSession) -> DataFrame:
        from pyspark.sql import DataFrame

        jvm: Any = spark._jvm
        session: Any = spark._jsparkSession
        iceberg = jvm.org.apache.iceberg
        io = _file_io(jvm, session, Location.of(self._table.location))
        table = iceberg.BaseTable(iceberg.StaticTableOperations(self._location, io), self._table.full_name)
        source = iceberg.spark.source.SparkTable
        if self._snapshot is None:
            found = source(table)
        else:
            found = source.create(table, iceberg.spark.TimeTravel.version(str(self._snapshot)))
        nothing = jvm.scala.Option.empty()
        options = jvm.org.apache.spark.sql.util.CaseInsensitiveStringMap.empty()
        relations = jvm.org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
        relation = relations.create(found, nothing, nothing, options, nothing)
        return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(session, relation), spark)


def _file_io(java: Any, session: Any, place: Location) -> Any:
    """Iceberg's way to the files of a table: Hadoop's, or by a key that the catalog has handed out S3's."""
    key = None if place.on_disk else granted(place)
    if key is None:
        hadoop = session.sessionState().newHadoopConf()
        hadoop.setIfUnset(*HADOOP_S3)
        return java.org.apache.iceberg.hadoop.HadoopFileIO(hadoop)
    options = key.options.resolved()
    told = {
        "http-client.type": "urlconnection",  # the one that needs no further client of Amazon's
        "client.region": options.region or "us-east-1",
        "s3.endpoint": options.endpoint,
        "s3.path-style-access": str(not options.virtual_hosted_style).lower(),
        "s3.access-key-id": options.access_key_id,
        "s3.secret-access-key": options.secret_access_key,
        "s3.session-token": options.session_token,
    }
    found = java.java.util.HashMap()
    for name, value in told.items():
        if value is not None:
            found.put(name, value)
    io = java.org.apache.iceberg.aws.s3.S3FileIO()
    io.initialize(found)
    return io
