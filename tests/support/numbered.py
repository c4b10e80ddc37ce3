"""Iceberg tables without a catalog, as Iceberg's own HadoopTables commit to them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io import load_file_io
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata
from pyiceberg.typedef import Identifier

ENDINGS: Final = (".metadata.json", ".gz.metadata.json", ".metadata.json.gz")
"""The spellings of a number, in the order in which HadoopTables tries them."""


class Numbered(NoopCatalog):
    """A table in a folder, whose metadata files are numbered by commit.

    Args:
        folder: the table's folder.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__("numbered")
        self.folder = folder / "metadata"

    @property
    def hint(self) -> Path:
        return self.folder / "version-hint.text"

    def file(self, number: int) -> Path | None:
        """Return the metadata file of a commit; of several spellings the one that HadoopTables prefers."""
        found = (self.folder / f"v{number}{ending}" for ending in ENDINGS)
        return next((path for path in found if path.exists()), None)

    def newest(self) -> int:
        number = int(self.hint.read_text())
        while self.file(number + 1):
            number += 1
        return number

    def load_table(self, identifier: str | Identifier = ("ns", "t")) -> Table:
        path = self.file(self.newest())
        assert path is not None
        metadata = read(path)
        return Table(("ns", "t"), metadata, str(path), load_file_io({}, str(path)), self)

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        number = self.newest() + 1
        metadata = update_table_metadata(table.metadata, updates, metadata_location=table.metadata_location)
        codec = metadata.properties.get("write.metadata.compression-codec", "none")
        path = self.write(number, metadata, ENDINGS[codec.lower() == "gzip"])
        self.hint.write_text(str(number))
        return CommitTableResponse.model_validate({"metadata": metadata, "metadata-location": str(path)})

    def write(self, number: int, metadata: TableMetadata, ending: str, digits: int = 1) -> Path:
        """Write the metadata file of a commit in a spelling."""
        path = self.folder / f"v{number:0{digits}d}{ending}"
        data = metadata.model_dump_json(exclude_none=True).encode()
        path.write_bytes(gzip.compress(data) if ".gz" in ending else data)
        return path

    def append(self, *keys: int) -> None:
        """Append rows, as another engine does."""
        self.load_table().append(batch(*keys))

    def ids(self) -> list[int]:
        """Return the ids of all rows, as another engine reads them."""
        return sorted(self.load_table().scan().to_arrow()["id"].to_pylist())


def batch(*keys: int) -> pa.Table:
    """Return a row for each of these keys."""
    return pa.table({"id": pa.array(keys, pa.int64()), "v": pa.array([f"v{key}" for key in keys], pa.string())})


def read(path: Path) -> TableMetadata:
    """Return the metadata that a file holds."""
    data = path.read_bytes()
    return TableMetadataUtil.parse_raw((gzip.decompress(data) if ".gz" in path.name else data).decode())


def new_table(folder: Path, codec: str = "none") -> Numbered:
    """Make a table without a catalog, with one row and two commits."""
    catalog = SqlCatalog("maker", uri=f"sqlite:///{folder.parent}/maker.db", warehouse=f"file://{folder.parent}")
    catalog.create_namespace_if_not_exists("ns")
    properties = {"format-version": "2", "write.metadata.compression-codec": codec, "trinity.primary-key": "id"}
    made = catalog.create_table("ns.t", batch().schema, location=f"file://{folder}", properties=properties)
    found = Numbered(folder)
    found.write(1, made.metadata, ENDINGS[codec == "gzip"])
    Path(made.metadata_location.removeprefix("file://")).unlink()
    found.hint.write_text("1")
    found.append(1)
    return found
