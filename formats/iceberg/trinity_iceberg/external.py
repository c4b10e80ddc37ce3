"""Iceberg tables that other engines made: in Spark, Iceberg's own reader reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.manifest import ManifestContent, ManifestFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table, TableProperties
from pyiceberg.table.name_mapping import create_mapping_from_schema
from pyiceberg.table.snapshots import Snapshot

from trinity.spi import NATIVE_FILE, NATIVE_ROW, DataFile, NativeScan, TableHandle
from trinity.storage import Location
from trinity.storage.file_schema import with_partition_values
from trinity.storage.grants import credential_of
from trinity.storage.location import path_sql
from trinity.storage.s3 import HADOOP_S3
from trinity.syntax.quoting import quoted
from trinity_iceberg.adopt import WRITABLE
from trinity_iceberg.deletes_of_others import why_not_applied
from trinity_iceberg.schema import field_with_default, read_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class IcebergScan(NativeScan):
    """A scan by Iceberg's Spark reader: it applies deletes and renamed columns, and reads files without field ids."""

    def __init__(
        self,
        table: TableHandle,
        loaded: Table,
        snapshot: Snapshot | None,
        schema: Schema,
        storage: pa.Schema,
        manifests: Callable[[], Iterable[ManifestFile]],
    ) -> None:
        self._table, self._schema, self._storage = table, schema, storage
        self._loaded, self._manifests = loaded, manifests
        self._location = loaded.metadata_location
        newest = snapshot is None or snapshot.snapshot_id == loaded.metadata.current_snapshot_id
        self._snapshot = None if newest or snapshot is None else snapshot.snapshot_id

    def rows(self, spark: SparkSession, files: Sequence[DataFile]) -> DataFrame:
        names = map(quoted, self._storage.names)
        return self._frame(spark).selectExpr(*names, f"{path_sql('_file')} AS {NATIVE_FILE}", f"_pos AS {NATIVE_ROW}")

    def name(self, file: DataFile) -> str:
        return file.path

    @property
    def not_local(self) -> str | None:
        if (path := field_with_default(self._schema)) is not None:
            return f"only Iceberg's own reader knows the default that older rows have in column '{path}'"
        mapping = self._loaded.name_mapping() if _maps_names(self._loaded) else None
        if mapping is not None and (self._storage.metadata or mapping != create_mapping_from_schema(self._schema)):
            return "only Iceberg's own reader finds renamed columns in files without field ids"
        return why_not_applied(self._loaded, self._schema, self._manifests())

    @property
    def as_written(self) -> bool:
        # with version 3 files may lack columns that have defaults, and with a name mapping they may have other names
        if self._loaded.format_version > WRITABLE or _maps_names(self._loaded):
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


def external_storage(table: Table, schema: Schema) -> pa.Schema:
    """Return the storage schema for reading files. With a name mapping, files may lack their partition columns."""
    storage = read_schema(table.metadata, schema)
    return with_partition_values(storage, schema.column_names) if _maps_names(table) else storage


def _maps_names(table: Table) -> bool:
    return TableProperties.DEFAULT_NAME_MAPPING in table.properties


def _file_io(java: Any, session: Any, location: Location) -> Any:
    """Return Iceberg's file access for a table: through Hadoop, or to S3 with a key that the catalog handed out."""
    credential = None if location.on_disk else credential_of(location)
    if credential is None:
        hadoop = session.sessionState().newHadoopConf()
        hadoop.setIfUnset(*HADOOP_S3)
        return java.org.apache.iceberg.hadoop.HadoopFileIO(hadoop)
    options = credential.options.resolved()
    settings = {
        "http-client.type": "urlconnection",  # the client that needs no further library of Amazon
        "client.region": options.region or "us-east-1",
        "s3.endpoint": options.endpoint,
        "s3.path-style-access": str(not options.virtual_hosted_style).lower(),
        "s3.access-key-id": options.access_key_id,
        "s3.secret-access-key": options.secret_access_key,
        "s3.session-token": options.session_token,
    }
    found = java.java.util.HashMap()
    for name, value in settings.items():
        if value is not None:
            found.put(name, value)
    io = java.org.apache.iceberg.aws.s3.S3FileIO()
    io.initialize(found)
    return io
