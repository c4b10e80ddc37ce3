"""The file index: facts about rewritten files that manifests cannot hold; and guards, which keep it from removal."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.statistics import StatisticsFile
from pyiceberg.table.update import RemoveStatisticsUpdate, SetStatisticsUpdate, TableUpdate

from trinity.errors import TrinityError
from trinity.spi import Bucket, DataFile, Tier
from trinity.storage import Location, ObjectStore
from trinity.storage.errors import system_trouble
from trinity_iceberg.carried import indexes

SIDECAR_FOLDER: Final = "_trinity"
_FILES: Final = 1 << 14
"""The most files of one index that are guarded."""


@contextmanager
def bad_data(path: str) -> Iterator[None]:
    """Map decoders' errors on a missing or damaged metadata file to BAD_DATA, naming the file."""
    try:
        yield
    except TrinityError:
        raise
    except Exception as error:
        if (trouble := system_trouble(error, path)) is not None:
            raise trouble from error
        if isinstance(error, ValueError) and "is not a valid" in str(error):  # an unknown value of an enumeration
            raise TrinityError(
                "NOT_SUPPORTED", f"Metadata file '{path}' has what Trinity does not understand ({error})."
            ) from error
        what = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read ({error})"
        raise TrinityError(
            "BAD_DATA",
            f"Metadata file '{path}' {what}; restore it from a backup, or read a version that does not need it.",
        ) from error


@dataclass(frozen=True)
class FileIndex:
    """The file index of a version.

    Attributes:
        files: path below the table's folder -> tier, bucket and commit number (K6), for files that compaction wrote.
        sidecar: the files of the sidecar.
    """

    files: Mapping[str, tuple[Tier, Bucket | None, int | None]] = field(default_factory=dict)
    sidecar: tuple[DataFile, ...] = ()

    def apply(self, file: DataFile, name: str) -> DataFile:
        """Return a file of a manifest with its facts in the index; unchanged if the index does not have it."""
        if name not in self.files:
            return file
        tier, bucket, commit = self.files[name]
        return replace(file, tier=tier, bucket=bucket, commit=file.commit if commit is None else commit)

    def rewritten(
        self, store: ObjectStore, removed: Collection[str], added: Iterable[DataFile], sidecar: tuple[DataFile, ...]
    ) -> FileIndex:
        """Return the index after a compaction. ``removed`` are absolute paths."""
        gone = {store.relative(path) for path in removed}
        files = {n: entry for n, entry in self.files.items() if n not in gone}
        files |= {store.relative(f.path): (f.tier, f.bucket, f.commit) for f in added}
        return FileIndex(files, sidecar)

    def to_json(self, store: ObjectStore) -> bytes:
        """Return the index's bytes."""
        data = {
            "files": {
                n: [tier.value, [bucket.index, bucket.count, bucket.types] if bucket else None, commit]
                for n, (tier, bucket, commit) in self.files.items()
            },
            "sidecar": [f.moved(store.relative(f.path)).to_dict() for f in self.sidecar],
        }
        return json.dumps(data, separators=(",", ":")).encode()


def open_index(store: ObjectStore, name: str | None) -> FileIndex:
    """Read a file index. Raises BAD_DATA naming it."""
    if name is None:
        return FileIndex()
    with bad_data(store.path(name)):
        data = json.loads(store.get(name))
        files = {n: (Tier(t), Bucket(*b) if b else None, c) for n, (t, b, c) in data["files"].items()}
        sidecar = (DataFile.from_dict(d) for d in data["sidecar"])
        return FileIndex(files, tuple(f.moved(store.path(f.path)) for f in sidecar))


# -- guards -----------------------------------------------------------------------------------------------


def _guards(name: str, sizes: Mapping[str, int]) -> tuple[TableUpdate, ...]:
    """Return the updates that list a file index and its sidecar in the table's metadata, as statistics files.

    Else an engine that removes orphan files would remove them, unless it skips hidden folders such as ``_trinity``.
    Statistics disappear with their snapshot, so these are for snapshots that do not exist: their ids are negative.

    Args:
        name: the name of the index.
        sizes: absolute path -> size in bytes, of the index first, then of the sidecar's files.
    """
    files = [
        StatisticsFile.model_validate(
            {
                "snapshot-id": -(_group(name) * _FILES + index + 1),
                "statistics-path": Location.of(path).format_uri,
                "file-size-in-bytes": size,
                "file-footer-size-in-bytes": 0,
                "blob-metadata": [],
            }
        )
        for index, (path, size) in enumerate(islice(sizes.items(), _FILES))
    ]
    return tuple(SetStatisticsUpdate.model_validate({"statistics": file}) for file in files)


def put_index(index: FileIndex, store: ObjectStore, metadata: TableMetadata) -> tuple[str, tuple[TableUpdate, ...]]:
    """Write a file index; return its name, and the updates of guards that the commit with this name needs."""
    name, data = f"{SIDECAR_FOLDER}/index-{uuid.uuid4().hex}.json", index.to_json(store)
    store.put_if_absent(name, data, commits=False)
    stale = stale_guards(metadata, {*indexes(metadata), name})
    sidecar = {f.path: f.size for f in sorted(index.sidecar, key=lambda f: f.path)}
    return name, (*stale, *_guards(name, {store.path(name): len(data), **sidecar}))


def stale_guards(metadata: TableMetadata, needed: Collection[str]) -> tuple[RemoveStatisticsUpdate, ...]:
    """Return the updates that stop guarding the files of all indexes except those named."""
    kept = {_group(name) for name in needed}
    found = [s.snapshot_id for s in metadata.statistics if s.snapshot_id < 0]
    return tuple(
        RemoveStatisticsUpdate.model_validate({"snapshot-id": number})
        for number in found
        if (-number - 1) // _FILES not in kept
    )


def _group(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:6], "big")
