"""What other engines made of Trinity's tables and Trinity cannot take over: refused by name, for reads and writes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyiceberg.manifest import ManifestContent, ManifestFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table, TableProperties

from trinity.errors import TrinityError
from trinity.storage import READ_BY_ID
from trinity_iceberg.schema import DEFINITION, read_schema

__all__ = ["check_own_readable", "check_own_writable"]

_FORMAT: Final = "write.format.default"
_WRITABLE: Final = 2


def check_own_readable(table: Table, schema: Schema, manifests: Iterable[ManifestFile]) -> None:
    """Refuses a version of Trinity's that the engine's own file scan would misread.

    Args:
        table: the table; of those that others made the native scan honours all this.
        schema: the version's schema.
        manifests: those of the version that still have files.

    Raises:
        TrinityError: NOT_SUPPORTED saying by what, and what helps.
    """
    if DEFINITION not in table.properties:
        return
    name = ".".join(table.name())
    for manifest in manifests:
        if manifest.content != ManifestContent.DATA:
            raise _refused(
                table,
                f"delete files of another engine ('{manifest.manifest_path}'), which Trinity does not read. Run "
                f"CALL <catalog>.system.rewrite_data_files(table => '{name}', options => "
                "map('delete-file-threshold', '1', 'remove-dangling-deletes', 'true')) there, and have its deletes "
                "copy on write ('write.delete.mode', 'write.update.mode', 'write.merge.mode')",
            )
    for field in schema.fields:
        if field.initial_default is not None:
            raise _refused(table, f"column '{field.name}' with a default value for older rows; drop it there")
    by_id = (read_schema(table.metadata, schema).metadata or {}).items() & READ_BY_ID.items()
    if by_id and TableProperties.DEFAULT_NAME_MAPPING in table.properties:
        raise _refused(table, f"files without field ids ('{TableProperties.DEFAULT_NAME_MAPPING}') and renamed columns")


def check_own_writable(table: Table, manifests: Iterable[ManifestFile]) -> None:
    """Refuses to write where the outcome could not be read. Raises NOT_SUPPORTED, as reads of the newest version do."""
    if DEFINITION not in table.properties:
        return
    check_own_readable(table, table.schema(), manifests)
    if table.metadata.format_version > _WRITABLE:
        version = table.metadata.format_version
        raise _refused(table, f"format version {version}, and Trinity writes version {_WRITABLE} only")
    if (written := table.properties.get(_FORMAT, "parquet").lower()) != "parquet":
        raise _refused(table, f"'{_FORMAT}' = '{written}', and Trinity reads Parquet only; unset it")


def _refused(table: Table, what: str) -> TrinityError:
    name = ".".join((table.catalog.name, *table.name()))
    return TrinityError("NOT_SUPPORTED", f"Iceberg table '{name}' has {what}.")
