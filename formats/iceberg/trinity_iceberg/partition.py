"""Partitioning: Trinity's partition fields as an Iceberg partition spec, and the partition values of files."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

import pyarrow as pa
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionSpec
from pyiceberg.partitioning import PartitionField as IcebergField
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AddPartitionSpecUpdate, SetDefaultSpecUpdate, TableUpdate
from pyiceberg.transforms import IdentityTransform, Transform, parse_transform
from pyiceberg.typedef import Record
from pyiceberg.utils.datetime import date_to_days, datetime_to_micros, time_to_micros

from trinity.errors import TrinityError
from trinity.spi import DataFile, PartitionField, TableDefinition, WriteTarget, parse_partition
from trinity_iceberg.schema import iceberg_type, partition_texts, python_value

_ICEBERG_NAMES: Final = {"years": "year", "months": "month", "days": "day", "hours": "hour"}
_SUFFIXES: Final = {**_ICEBERG_NAMES, "bucket": "bucket", "truncate": "trunc"}


def partition_spec(definition: TableDefinition, schema: Schema, earlier: Collection[str] = ()) -> PartitionSpec:
    """Return the partition spec of a new table.

    Args:
        definition: the table.
        schema: its columns in Iceberg.
        earlier: names of columns that it had before; no transform gets one, since a restore brings them back.

    Raises:
        TrinityError: NOT_SUPPORTED for a transform that Iceberg lacks for the column's type, and for two time
            transforms of one column, which Iceberg calls redundant.
    """
    columns = {f.name: f for f in schema.fields}
    timed = [f.column for f in definition.partition_fields if f.transform in _ICEBERG_NAMES]
    if repeated := [c for c in timed if timed.count(c) > 1]:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Table '{definition.full_name}' cannot be partitioned by two of years, months, days and hours of column "
            f"'{repeated[0]}'; keep the finest.",
        )
    found = []
    names = _field_names(definition.partition_fields, {*columns, *earlier})
    for number, (field, name) in enumerate(zip(definition.partition_fields, names, strict=True)):
        transform, source = _transform(field), columns[field.column]
        if not transform.can_transform(source.field_type):
            raise TrinityError(
                "NOT_SUPPORTED",
                f"Table '{definition.full_name}' cannot be partitioned by {field}: Iceberg has no such transform of "
                f"column '{field.column}' of type {definition.column(field.column).type}.",
            )
        found.append(IcebergField(source.field_id, PARTITION_FIELD_ID_START + number, transform, name))
    return PartitionSpec(*found)


def spec_updates(
    metadata: TableMetadata, definition: TableDefinition, schema: Schema
) -> tuple[PartitionSpec, tuple[TableUpdate, ...]]:
    """Return the partition spec of a table that takes the place of another one, and the updates that set it.

    Raises:
        TrinityError: NOT_SUPPORTED as :func:`partition_spec`.
    """
    wanted = partition_spec(definition, schema, {f.name for earlier in metadata.schemas for f in earlier.fields})
    for spec in metadata.partition_specs:
        if _parts(spec) == _parts(wanted) and not _names_other_columns(spec, schema):
            is_default = spec.spec_id == metadata.default_spec_id
            return spec, () if is_default else (SetDefaultSpecUpdate.model_validate({"spec-id": spec.spec_id}),)
    last = metadata.last_partition_id or PARTITION_FIELD_ID_START - 1
    fields = [IcebergField(f.source_id, last + 1 + n, f.transform, f.name) for n, f in enumerate(wanted.fields)]
    made = PartitionSpec(*fields, spec_id=max(spec.spec_id for spec in metadata.partition_specs) + 1)
    return made, (AddPartitionSpecUpdate(spec=made), SetDefaultSpecUpdate.model_validate({"spec-id": -1}))


def _parts(spec: PartitionSpec) -> list[tuple[int, str]]:
    return [(f.source_id, str(f.transform)) for f in spec.fields]


def _names_other_columns(spec: PartitionSpec, schema: Schema) -> bool:
    """Return whether a partition field has the name of a column that is not its source."""
    sources = {field.name.lower(): field.field_id for field in schema.fields}
    return any(sources.get(field.name.lower(), field.source_id) != field.source_id for field in spec.fields)


def check_partitions(table: str, definition: TableDefinition, spec: PartitionSpec, schema: Schema) -> None:
    """Refuse to write to a table that another engine has partitioned. Raises NOT_SUPPORTED."""
    present = [(schema.find_column_name(f.source_id), str(f.transform)) for f in spec.fields]
    if present != [(f.column, str(_transform(f))) for f in definition.partition_fields]:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Table '{table}' was partitioned by another engine ({spec}); Trinity reads it, and writes only tables "
            "whose partitioning it knows.",
        )


def check_names(before: TableDefinition, after: TableDefinition, specs: Iterable[PartitionSpec]) -> None:
    """Refuse a new column with the name of a partition field of any spec of the table.

    Iceberg's readers would read it as the field's source, and its Java library does not load such a table.

    Raises:
        TrinityError: NOT_SUPPORTED.
    """
    same = before.replaced == after.replaced
    taken = {(f.name.lower(), f.source_id) for spec in specs for f in spec.fields if same}
    present = {(c.name.lower(), c.field_id) for c in before.columns}
    for column in after.visible:
        name = column.name.lower()
        sources = {source for taken_name, source in taken if taken_name == name}
        if sources - {column.field_id} and (name, column.field_id) not in present:
            raise TrinityError(
                "NOT_SUPPORTED",
                f"Column '{column.name}': a partition field of table '{before.full_name}' has that name in Iceberg; "
                "choose another one.",
            )


def named_now(files: Iterable[DataFile], definition: TableDefinition, table: Table) -> list[DataFile]:
    """Return files that were written under an older definition with the names that their columns have now."""
    names = _names_now(definition, table.spec(), table.schema())
    return [f.renamed(names) for f in files]


def _names_now(definition: TableDefinition, spec: PartitionSpec, schema: Schema) -> dict[str, str]:
    """Return old name -> new name, for the columns and partition fields that were renamed since a definition."""
    now = {c.name: schema.find_column_name(c.field_id) for c in definition.visible if c.field_id is not None}
    fields = definition.partition_fields
    for name, field, present in zip(_field_names(fields, now), fields, spec.fields, strict=False):
        if not field.identity and str(_transform(field)) == str(present.transform):
            now[name] = present.name
    return {name: other for name, other in now.items() if other is not None and other != name}


def to_record(spec: PartitionSpec, schema: Schema, partition: Mapping[str, Any]) -> Record:
    """Return a file's partition values as a manifest keeps them.

    Raises:
        TrinityError: TRANSACTION_CONFLICT when the file was written under another partitioning.
    """
    names = [_key(f, schema) for f in spec.fields]
    if set(names) != set(partition):  # another engine may name its fields differently from the sinks
        fields = [parse_partition(text, schema.column_names) for text in partition_texts(spec, schema)]
        names = _field_names(fields, [f.name for f in schema.fields])
    if set(names) != set(partition):
        raise TrinityError(
            "TRANSACTION_CONFLICT",
            f"The table's partitioning was changed to {spec} while a statement wrote to it; run the statement again.",
        )
    return Record(*[_physical(partition[name]) for name in names])


def from_record(spec: PartitionSpec, schema: Schema, record: Record) -> dict[str, Any]:
    """Return a file's partition values: by column name, and for transforms by the name of the partition field."""
    found: dict[str, Any] = {}
    columns = set(schema.column_names)
    for index, field in enumerate(spec.fields):
        if schema.find_column_name(field.source_id) is None:  # the column was dropped
            continue
        if field.name in columns and not isinstance(field.transform, IdentityTransform):  # not the column's values
            continue
        source = schema.find_field(field.source_id).field_type
        try:
            found[_key(field, schema)] = python_value(field.transform.result_type(source), record[index])
        except (OverflowError, ValueError):  # another writer's date, in a year that Python does not have
            continue
    return found


def _key(field: IcebergField, schema: Schema) -> str:
    if isinstance(field.transform, IdentityTransform):
        return schema.find_column_name(field.source_id) or field.name
    return field.name


def _physical(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return datetime_to_micros(value)
    if isinstance(value, dt.date):
        return date_to_days(value)
    return time_to_micros(value) if isinstance(value, dt.time) else value


def _transform(field: PartitionField) -> Transform[Any, Any]:
    name = _ICEBERG_NAMES.get(field.transform, field.transform)
    return parse_transform(name if field.argument is None else f"{name}[{field.argument}]")


def _field_names(fields: Iterable[PartitionField], columns: Iterable[str]) -> list[str]:
    """Return names of partition fields, as Iceberg's other writers give them: ``region``, ``ts_day``, ``id_bucket``."""
    taken = {c.lower() for c in columns}
    found = []
    for field in fields:
        name = wanted = field.column if field.identity else f"{field.column}_{_SUFFIXES[field.transform]}"
        number = 1
        while not field.identity and name.lower() in taken:
            number += 1
            name = f"{wanted}_{number}"
        taken.add(name.lower())
        found.append(name)
    return found


def transformed_values(target: WriteTarget) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """Return a function from a page to its partition values, a column for each partition field of the target."""
    columns = target.storage.names
    fields = [parse_partition(text, columns) for text in target.partition_by]
    names = _field_names(fields, columns)
    functions = [_transform(f).pyarrow_transform(iceberg_type(target.storage.field(f.column).type)) for f in fields]

    def values(page: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [apply(page.column(f.column)) for f, apply in zip(fields, functions, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, names=names)

    return values
