"""Scans: a table's files as Spark DataFrames in storage form.

Bucketed scans, and scans that find columns by field id, use Spark's internal ``DataSource`` over py4j. No other file
does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from trinity.engine.reading.data_files import NOTHING_HIDDEN
from trinity.engine.reading.spark.deleted_rows import without_deleted
from trinity.engine.reading.spark.row_arrival import POSITION_BITS, with_order_restored, with_stamps
from trinity.hidden import ARRIVAL, FILE, FILE_NUMBER, POSITION, SINCE
from trinity.merge.spec import MergeSpec
from trinity.spark.granted import file_access
from trinity.spark.remote import analysed, is_remote, refuse_remote
from trinity.spark.types import arrow_frame
from trinity.spark_names import AnalysisException, ArrayType, DataFrame, DataType, F, MapType, StructField, StructType
from trinity.spi import (
    NATIVE_FILE,
    NATIVE_ROW,
    DataFile,
    NativeScan,
    SplitSource,
    arrival_order,
    stored_name,
    stored_schema,
)
from trinity.storage.file_schema import FIELD_ID, READ_BY_ID
from trinity.storage.parquet_files import missing_file
from trinity.storage.spark_files import READ_OPTIONS, read_files, spark_schema
from trinity.syntax.quoting import quoted, text_literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NO_SIDECAR_ROW: Final = f"CAST(NULL AS BIGINT) AS {SINCE}"


def plain_scan(
    spark: SparkSession,
    files: Sequence[DataFile],
    storage: pa.Schema,
    hidden: Mapping[str, np.ndarray] = NOTHING_HIDDEN,
) -> DataFrame:
    """Return the rows of files, without deleted and hidden ones, by column name; a column that a file lacks is NULL.

    Raises:
        TrinityError: BAD_DATA naming the file that is missing.
    """
    if not files:
        return _empty_scan(spark, storage)
    with _missing_file_named():
        rows = _file_rows(spark, files, storage)
    return _with_table_names(without_deleted(spark, rows, files, hidden), storage)


def _file_rows(spark: SparkSession, files: Sequence[DataFile], storage: pa.Schema) -> DataFrame:
    session = _reading_session(spark, storage)
    if session is not None and _is_by_id(storage):
        return _relation(spark, session, files, storage)
    paths = [f.path for f in files]
    access = file_access(spark, paths)
    return analysed(read_files(spark, paths, file_schema(storage), access.options, access.name))


def version_scan(spark: SparkSession, files: Sequence[DataFile], splits: SplitSource) -> DataFrame:
    """Return the rows of files of a version, in storage form: file by file, or by the format's own reader."""
    if splits.native is None:
        return plain_scan(spark, files, splits.storage)
    names = [quoted(f.name) for f in splits.storage]
    return native_rows(spark, files, splits.native, splits.storage).select(*names)


def native_rows(spark: SparkSession, files: Sequence[DataFile], native: NativeScan, storage: pa.Schema) -> DataFrame:
    """Return rows of some files by the format's own reader, with :data:`NATIVE_FILE` and :data:`NATIVE_ROW`."""
    if not files:
        nowhere = (f"CAST(NULL AS STRING) AS {NATIVE_FILE}", f"CAST(NULL AS BIGINT) AS {NATIVE_ROW}")
        return _empty_scan(spark, storage).selectExpr("*", *nowhere)
    refuse_remote(
        spark, "Reading a table of another engine by its format's own reader", "read it by Spark's own catalog"
    )
    with _missing_file_named():
        return _optional_within(native.rows(spark, files))


def _optional_within(rows: DataFrame) -> DataFrame:
    """Make every nested field of rows nullable: pyspark cannot convert a NULL struct that has a NOT NULL field."""
    fields = [StructField(f.name, f.dataType._as_nullable(), f.nullable, f.metadata) for f in rows.schema]
    return rows if fields == rows.schema.fields else rows.to(StructType(fields))


@contextmanager
def _missing_file_named() -> Iterator[None]:
    try:
        yield
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        raise missing_file((error.getMessageParameters() or {}).get("path", "")) from error


def _empty_scan(spark: SparkSession, storage: pa.Schema) -> DataFrame:
    """Return no rows, with the columns of the storage schema."""
    return arrow_frame(spark, storage.empty_table())


def located_scan(spark: SparkSession, files: Sequence[DataFile], storage: pa.Schema, row_id: str) -> DataFrame:
    """Return rows with a row id: STRUCT(``file`` STRING, the file's URI, ``pos`` BIGINT, the row's position in it)."""
    rows = plain_scan(spark, files, storage)
    if not files:
        return rows.selectExpr("*", f"named_struct('file', '', 'pos', 0L) AS {row_id}")
    location = "named_struct('file', _metadata.file_path, 'pos', _metadata.row_index)"
    return rows.selectExpr("*", f"{location} AS {row_id}")


def log_scan(
    spark: SparkSession,
    splits: SplitSource,
    spec: MergeSpec,
    files: Sequence[DataFile],
    sidecar: Sequence[DataFile] = (),
    *,
    runs: Sequence[DataFile] = (),
    ordered: bool = False,
    arrival: bool = True,
    stamps: bool = False,
) -> DataFrame:
    """Return row versions of log and sidecar files, with :data:`~trinity.hidden.ARRIVAL`.

    The arrival is made of the file's number among the files and the row's position in its file, and corrected by
    :func:`~trinity.engine.reading.spark.row_arrival.with_order_restored`. Rows of the sidecar come before all others;
    they alone have a :data:`~trinity.hidden.SINCE`.

    Args:
        spark: the session.
        splits: the version.
        spec: the table's merge rules.
        files: the log.
        sidecar: the files of the sidecar.
        runs: base files that are to be folded with the log; their rows come before it.
        ordered: True when the sidecar has several rows of a key, and so stores their arrival.
        arrival: False when the order of the log does not matter: every row's arrival is then 0.
        stamps: True for rewritten rows: :func:`~trinity.engine.reading.spark.row_arrival.with_stamps` is applied.
    """
    storage = splits.storage
    if splits.native is not None:
        versions = _native_log(spark, files, splits.native, storage)
    else:
        in_order = sorted(files, key=arrival_order)
        versions = plain_scan(spark, in_order, storage)
        versions = _with_arrival(spark, versions, [f.name for f in in_order] if arrival else ())
        versions = with_stamps(versions, in_order, splits) if stamps else versions
        versions = with_order_restored(versions, in_order, splits, spec) if arrival else versions
    if runs:
        earlier = plain_scan(spark, runs, storage).selectExpr("*", f"-1L AS {ARRIVAL}", _NO_SIDECAR_ROW)
        versions = versions.unionByName(earlier, allowMissingColumns=True)
    if not sidecar:
        return versions
    columns = storage.append(pa.field(SINCE, pa.int64()))
    if ordered:
        return versions.unionByName(plain_scan(spark, sidecar, columns.append(pa.field(ARRIVAL, pa.int64()))))
    kept = plain_scan(spark, sidecar, columns)
    # UNSURE is missing, and so NULL: the order of the sidecar's rows is never unknown
    return versions.unionByName(kept.selectExpr("*", f"-1L AS {ARRIVAL}"), allowMissingColumns=True)


def _native_log(spark: SparkSession, files: Sequence[DataFile], native: NativeScan, storage: pa.Schema) -> DataFrame:
    """Return row versions with arrival and no ``SINCE``, from files that are in arrival order."""
    rows = native_rows(spark, files, native, storage)
    names = pa.array(map(native.name, files), pa.string())
    ordinals = arrow_frame(spark, pa.table({NATIVE_FILE: names, FILE_NUMBER: range(len(files))}))
    arrival = f"shiftleft({FILE_NUMBER}, {POSITION_BITS}) + {NATIVE_ROW} AS {ARRIVAL}"
    joined = rows.join(F.broadcast(ordinals), NATIVE_FILE)
    return joined.selectExpr(*[quoted(f.name) for f in storage], arrival, _NO_SIDECAR_ROW)


def _with_arrival(spark: SparkSession, rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """Add a NULL ``SINCE``, and the arrival, of the file's number in ``names`` and the row's position in the file."""
    if not names:  # there is no file, and so no _metadata; or the arrival is not needed
        return rows.selectExpr("*", f"0L AS {ARRIVAL}", _NO_SIDECAR_ROW)
    if len(names) == 1:
        return rows.selectExpr("*", f"_metadata.row_index AS {ARRIVAL}", _NO_SIDECAR_ROW)
    lines = ",".join(f"({text_literal(name)},{ordinal}L)" for ordinal, name in enumerate(names))
    ordinals = spark.sql(f"SELECT col1 AS {FILE}, col2 AS {FILE_NUMBER} FROM VALUES {lines}")
    found = rows.selectExpr("*", f"_metadata.file_name AS {FILE}", f"_metadata.row_index AS {POSITION}")
    joined = found.join(F.broadcast(ordinals), FILE)
    arrival = f"shiftleft({FILE_NUMBER}, {POSITION_BITS}) + {POSITION} AS {ARRIVAL}"
    return joined.selectExpr(*[quoted(c) for c in rows.columns], arrival, _NO_SIDECAR_ROW)


def bucketed_scan(
    spark: SparkSession, files: Sequence[DataFile], storage: pa.Schema, key: Sequence[str], buckets: int
) -> DataFrame:
    """Return rows of a compacted base, but for deleted ones, so that Spark knows their buckets and sort order.

    A join on the key then needs neither exchange nor sort. Spark takes a file's bucket from its name,
    and trusts the order under ``spark.sql.legacy.bucketedTableScan.outputOrdering``.
    Over Spark Connect it knows neither.
    """
    if is_remote(spark):
        return plain_scan(spark, files, storage)
    jvm: Any = spark._jvm
    names = jvm.PythonUtils.toSeq([stored_name(storage, k) for k in key])
    spec = jvm.org.apache.spark.sql.catalyst.catalog.BucketSpec(buckets, names, names)
    with _missing_file_named():
        rows = _relation(spark, _reading_session(spark, storage), files, storage, spec)
    return _with_table_names(without_deleted(spark, rows, files), storage)


def _relation(
    spark: SparkSession, session: Any, files: Sequence[DataFile], storage: pa.Schema, buckets: Any = None
) -> DataFrame:
    """Return rows of files with the files' column names, read under the settings of a session of the JVM.

    ``buckets`` is Spark's ``BucketSpec`` of the files, or None.
    """
    jvm: Any = spark._jvm
    schema = jvm.org.apache.spark.sql.types.DataType.fromJson(file_schema(storage).json())
    option, access = jvm.scala.Option, file_access(spark, [f.path for f in files])
    source = jvm.org.apache.spark.sql.execution.datasources.DataSource(
        session,
        "parquet",
        jvm.PythonUtils.toSeq([access.name(f.path) for f in files]),
        option.apply(schema),
        jvm.PythonUtils.toSeq([]),
        option.apply(buckets),
        jvm.PythonUtils.toScalaMap({**READ_OPTIONS, **access.options}),
        option.empty(),
    )
    ours: Any = spark._jsparkSession
    return DataFrame(ours.baseRelationToDataFrame(source.resolveRelation(True, True)), spark)


_BY_ID: Final = "spark.sql.parquet.fieldId.read.enabled"
_WITHIN: Final = {
    "spark.sql.parquet.enableNestedColumnVectorizedReader": "false",  # it looks a field's type up by a former name
    "spark.sql.optimizer.nestedSchemaPruning.enabled": "true",  # else the row-based reader fails where no field is left
}
"""Settings under which Spark's reader finds fields within columns by their ids."""


def _is_by_id(storage: pa.Schema) -> bool:
    """Return True for a storage schema whose columns are found by field id."""
    return bool((storage.metadata or {}).items() & READ_BY_ID.items())


def _reading_session(spark: SparkSession, storage: pa.Schema) -> Any:
    """Return the JVM's session for a scan: a copy of the user's if the scan needs settings; None for a remote Spark."""
    if not _is_by_id(storage):
        return None if is_remote(spark) else spark._jsparkSession
    spark.conf.set(_BY_ID, "true")  # no effect on reads whose schema has no ids
    within = _WITHIN if any(pa.types.is_nested(field.type) for field in storage) else {}
    if is_remote(spark):  # its session cannot be copied
        for setting, value in within.items():
            spark.conf.set(setting, value)
        return None
    session: Any = spark._jsparkSession
    if within:
        session = session.cloneSession()
        for setting, value in within.items():
            session.conf().set(setting, value)
    return session


def file_schema(storage: pa.Schema) -> StructType:
    """Return the schema under which Spark reads files: their column names, and ids if columns are found by these."""
    schema = spark_schema(stored_schema(storage))
    if not _is_by_id(storage):
        return schema
    return StructType([_with_id(found.name, found.dataType, f) for found, f in zip(schema, storage, strict=True)])


def _with_id(name: str, kind: DataType, stored: pa.Field) -> StructField:
    number = (stored.metadata or {}).get(FIELD_ID)
    about = {"parquet.field.id": int(number)} if number is not None else None
    return StructField(name, _with_ids(kind, stored.type), True, about)


def _with_ids(found: DataType, stored: pa.DataType) -> DataType:
    if isinstance(found, StructType):
        fields = [(stored.field(index), field) for index, field in enumerate(found)]
        return StructType([_with_id(f"_trinity_field_{index}", f.dataType, s) for index, (s, f) in enumerate(fields)])
    if isinstance(found, ArrayType):
        return ArrayType(_with_ids(found.elementType, stored.value_type), True)
    if isinstance(found, MapType):
        return MapType(_with_ids(found.keyType, stored.key_type), _with_ids(found.valueType, stored.item_type), True)
    return found


def _with_table_names(rows: DataFrame, storage: pa.Schema) -> DataFrame:
    """Rename the columns of :func:`file_schema` in rows to those of the table."""
    wanted = spark_schema(storage) if _is_by_id(storage) else None
    if wanted is None and rows.columns == storage.names:
        return rows
    columns = [F.col(quoted(name)) for name in rows.columns]
    if wanted is not None:
        columns = [c.cast(f.dataType) if _is_nested(f.dataType) else c for c, f in zip(columns, wanted, strict=True)]
    return rows.select(*[c.alias(name) for c, name in zip(columns, storage.names, strict=True)])


def _is_nested(kind: DataType) -> bool:
    return isinstance(kind, StructType | ArrayType | MapType)
