"""Scans by field id: Spark finds columns, and fields within them, whatever names files have for them.

Spark takes ids from the schema that it is given, and loses them where it prunes nested fields; it prunes nothing that
is cast. So fields within columns are named by their place in that schema, and cast to their names behind the scan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from trinity.engine.spark.remote import is_remote
from trinity.spark_names import ArrayType, DataType, F, MapType, StructField, StructType
from trinity.storage import FIELD_ID, READ_BY_ID, spark_schema, stored_schema
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["file_schema", "is_by_id", "named", "reading_session"]

_BY_ID: Final = "spark.sql.parquet.fieldId.read.enabled"
_WITHIN: Final = {
    "spark.sql.parquet.enableNestedColumnVectorizedReader": "false",  # takes a field's type by a name that it has had
    "spark.sql.optimizer.nestedSchemaPruning.enabled": "true",  # that reader fails without it where no field is left
}
"""Settings under which Spark's reader goes by the ids of fields within columns."""


def is_by_id(storage: pa.Schema) -> bool:
    """Return True for a storage schema by which files are read by id."""
    return bool((storage.metadata or {}).items() & READ_BY_ID.items())


def reading_session(spark: SparkSession, storage: pa.Schema) -> Any:
    """Return the session of Spark's whose settings hold for a scan: a copy, where they are not the user's."""
    if not is_by_id(storage):
        return None if is_remote(spark) else spark._jsparkSession
    spark.conf.set(_BY_ID, "true")  # of no effect on reads that do not ask for ids
    within = _WITHIN if any(pa.types.is_nested(field.type) for field in storage) else {}
    if is_remote(spark):  # of which nobody can make a copy
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
    """Return the schema that Spark asks of files: their names, and ids where it is to go by these."""
    schema = spark_schema(stored_schema(storage))
    if not is_by_id(storage):
        return schema
    return StructType([_with_id(found.name, found.dataType, f) for found, f in zip(schema, storage, strict=True)])


def _with_id(name: str, kind: DataType, stored: pa.Field) -> StructField:
    number = (stored.metadata or {}).get(FIELD_ID)
    about = {"parquet.field.id": int(number)} if number is not None else None
    return StructField(name, _with_ids(kind, stored.type), True, about)


def _with_ids(found: DataType, stored: pa.DataType) -> DataType:
    if isinstance(found, StructType):
        fields = [(stored.field(place), field) for place, field in enumerate(found)]
        return StructType([_with_id(f"_trinity_{place}", f.dataType, s) for place, (s, f) in enumerate(fields)])
    if isinstance(found, ArrayType):
        return ArrayType(_with_ids(found.elementType, stored.value_type), True)
    if isinstance(found, MapType):
        return MapType(_with_ids(found.keyType, stored.key_type), _with_ids(found.valueType, stored.item_type), True)
    return found


def named(rows: DataFrame, storage: pa.Schema) -> DataFrame:
    """Return rows of :func:`file_schema` under the names of the table's columns."""
    wanted = spark_schema(storage) if is_by_id(storage) else None
    if wanted is None and rows.columns == storage.names:
        return rows
    columns = [F.col(quoted(name)) for name in rows.columns]
    if wanted is not None:
        columns = [c.cast(f.dataType) if _is_nested(f.dataType) else c for c, f in zip(columns, wanted, strict=True)]
    return rows.select(*[c.alias(name) for c, name in zip(columns, storage.names, strict=True)])


def _is_nested(kind: DataType) -> bool:
    return isinstance(kind, StructType | ArrayType | MapType)
