"""Data files that another engine added unchanged by ``add_files``: what they lack is only in the metadata."""

from __future__ import annotations

from collections.abc import Iterable

from pyiceberg.schema import Schema
from pyiceberg.table import Table, TableProperties
from pyiceberg.transforms import IdentityTransform

from trinity.errors import TrinityError
from trinity.spi import DataFile
from trinity.storage import columns_in, is_sink_file, parquet_schema
from trinity_iceberg.index import bad_data
from trinity_iceberg.recorded import DEFINITION
from trinity_iceberg.storage_schema import storage_schema

__all__ = ["brings_files", "check_partition_values"]


def brings_files(table: Table) -> bool:
    """Return whether another engine may have added files unchanged to a Trinity table."""
    return DEFINITION in table.properties and TableProperties.DEFAULT_NAME_MAPPING in table.properties


def check_partition_values(table: Table, schema: Schema, files: Iterable[DataFile]) -> None:
    """Refuse files that lack a partition column: the files of a Trinity table are read as they are.

    Raises:
        TrinityError: NOT_SUPPORTED naming file, column and remedy; BAD_DATA for a file that cannot be read.
    """
    if not brings_files(table):
        return
    fields = [f for spec in table.specs().values() for f in spec.fields if isinstance(f.transform, IdentityTransform)]
    columns = {name for f in fields if (name := schema.find_column_name(f.source_id)) is not None}
    for file in files if columns else ():
        if lacking := sorted(columns & file.partition.keys() - _present(file, schema)):
            name = ".".join(table.name())
            raise TrinityError(
                "NOT_SUPPORTED",
                f"File '{file.path}', which another engine added to table '{name}', lacks column '{lacking[0]}': its "
                "values are in the table's metadata alone, where Trinity does not read them. Have the files written "
                f"anew there: CALL <catalog>.system.rewrite_data_files(table => '{name}', options => "
                "map('rewrite-all', 'true')).",
            )


def _present(file: DataFile, schema: Schema) -> set[str]:
    """Return the columns of a file, from its manifest if that has them, else from the file."""
    if is_sink_file(file.name):
        return set(file.partition)
    if file.column_sizes:
        return {path.partition(".")[0] for path in file.column_sizes}
    with bad_data(file.path):
        storage = storage_schema(schema)
        found = columns_in(parquet_schema(file.path), storage)
        return {field.name for field, name in zip(storage, found, strict=True) if name is not None}
