"""Deletion vectors: the deleted rows of a data file as a bitmap. Many lie in one file, or one in the log (R1)."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa

from trinity.arrays import as_arrow
from trinity.errors import TrinityError
from trinity.spi import DataFile, Deletes, DeleteSink, RewriteTableHandle, SinkId
from trinity.storage import DeletesFragment, Location, ObjectStore
from trinity.storage.position_deletes import (
    in_frame,
    positions_in,
    positions_in_file,
    unreadable_deletes,
    vector_of,
    with_earlier,
)

_DIGITS: Final = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_OF_BASE85: Final = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
"""The digits of :mod:`base64`, which counts as Z85 does."""


def to_z85(data: bytes) -> str:
    """Return bytes, whose number is a multiple of four, as Z85: five characters for four bytes."""
    return base64.b85encode(data).translate(bytes.maketrans(_OF_BASE85, _DIGITS)).decode()


def from_z85(text: str) -> bytes:
    """Return the bytes of a text of Z85.

    Raises:
        ValueError: the text is not Z85.
    """
    digits = text.encode()
    if len(digits) % 5 or digits.translate(None, _DIGITS):
        raise ValueError("it is no text of Z85")
    return base64.b85decode(digits.translate(bytes.maketrans(_DIGITS, _OF_BASE85)))


_VERSION: Final = b"\x01"
"""The first byte of a file of deletion vectors."""
_PREFIX: Final = "deletion_vector_"
_SUFFIX: Final = ".bin"
_ID_LENGTH: Final = 20
"""Characters of a UUID in Z85."""
_INLINE: Final = "i"
_RELATIVE: Final = "u"
_ABSOLUTE: Final = "p"


@dataclass(frozen=True)
class DeletionVector(Deletes):
    """The deletion vector of a data file.

    Attributes:
        kind: ``storageType`` in Delta's log: ``u`` by an id, ``p`` by a path, ``i`` in the log itself.
        path_or_inline: ``pathOrInlineDv`` in Delta's log; a path is an escaped URI.
        size: bytes of the bitmap.
        offset: byte at which it begins in its file; None for one in the log.
        file: absolute path of its file; None for one in the log.
    """

    kind: str
    path_or_inline: str
    size: int
    offset: int | None = None
    file: str | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        return () if self.file is None else (self.file,)

    def positions(self) -> pa.Int64Array:
        if self.file is not None:
            return as_arrow(positions_in_file(self.file, self.offset or 0, self.size))
        try:
            return as_arrow(positions_in(from_z85(self.path_or_inline)[: self.size]))
        except (ValueError, KeyError) as error:
            raise unreadable_deletes("_delta_log", error) from error

    def to_action(self) -> dict[str, Any]:
        """Return the ``deletionVector`` of an action of Delta's log."""
        known = {"storageType": self.kind, "pathOrInlineDv": self.path_or_inline, "offset": self.offset}
        body = {**known, "sizeInBytes": self.size, "cardinality": self.rows}
        return {key: value for key, value in body.items() if value is not None}


def deletion_vector(store: ObjectStore, vector: Mapping[str, Any]) -> DeletionVector:
    """Return the deletion vector that an action of Delta's log names.

    Raises:
        TrinityError: BAD_DATA for a kind that Delta's protocol does not have.
    """
    kind, path_or_inline = str(vector["storageType"]), str(vector["pathOrInlineDv"])
    found = DeletionVector(vector["cardinality"], kind, path_or_inline, vector["sizeInBytes"], vector.get("offset"))
    if kind == _INLINE:
        return found
    if kind == _ABSOLUTE:
        return replace(found, file=str(Location.of(unquote(path_or_inline))))
    if kind != _RELATIVE or len(path_or_inline) < _ID_LENGTH:
        raise TrinityError(
            "BAD_DATA",
            f"Delta's log of '{store.root}' has a deletion vector of an unknown kind: '{kind}', '{path_or_inline}'.",
        )
    folder, code = path_or_inline[:-_ID_LENGTH], path_or_inline[-_ID_LENGTH:]
    name = _name(uuid.UUID(bytes=from_z85(code)))
    return replace(found, file=store.path(f"{folder}/{name}" if folder else name))


def is_vector_file(path: str) -> bool:
    """Return whether a path names a file of deletion vectors."""
    name = path.rpartition("/")[2]
    return name.startswith(_PREFIX) and name.endswith(_SUFFIX)


def _name(number: uuid.UUID) -> str:
    return f"{_PREFIX}{number}{_SUFFIX}"


class DeletionVectorSink(DeleteSink):
    """A sink that writes one file with a deletion vector for each data file to the table's folder, as Delta does."""

    def __init__(self, rewrite: RewriteTableHandle, sink: SinkId) -> None:
        self._sync = rewrite.target.sync
        self._store = ObjectStore(rewrite.table.location)
        self._id = uuid.uuid4()
        self._data = bytearray(_VERSION)
        self._made: list[tuple[str, dict[str, Any], int]] = []

    def delete_rows(self, file: DataFile, positions: pa.Int64Array) -> None:
        """Add the deletion vector of a data file: of the given rows, and of those deleted before."""
        deleted, offset = with_earlier(file, positions), len(self._data)
        bits = vector_of(deleted)
        framed = in_frame(bits)
        self._data += framed
        vector = DeletionVector(len(deleted), _RELATIVE, to_z85(self._id.bytes), len(bits), offset)
        self._made.append((file.path, vector.to_action(), len(framed)))

    def finish(self) -> list[bytes]:
        """Write the file, synced if the target asks for it, and return the vectors."""
        if self._made:
            self._store.put(_name(self._id), bytes(self._data), sync=self._sync)
        return [json.dumps({"of": of, "vector": vector, "size": size}).encode() for of, vector, size in self._made]

    def abort(self) -> None:
        """Remove the file."""
        try:
            self._store.delete([_name(self._id)])
        except TrinityError:
            return


def vectors_of_fragments(rewrite: RewriteTableHandle, fragments: Sequence[bytes]) -> dict[str, DeletesFragment]:
    """Return absolute path of a data file -> its deletion vector, from the fragments of :class:`DeletionVectorSink`.

    If several sinks wrote vectors of one data file, a vector with the rows of all is written.
    """
    store, found = ObjectStore(rewrite.table.location), dict[str, list[DeletesFragment]]()
    for data in map(json.loads, fragments):
        made = DeletesFragment(data["of"], deletion_vector(store, data["vector"]), data["size"])
        found.setdefault(made.of, []).append(made)
    alone = {of: made[0] for of, made in found.items() if len(made) == 1}
    if len(alone) == len(found):
        return alone
    sink = DeletionVectorSink(rewrite, SinkId())
    for of in found.keys() - alone.keys():
        sink.delete_rows(DataFile(of, 0, 0), pa.concat_arrays([made.deletes.positions() for made in found[of]]))
    return {**alone, **vectors_of_fragments(rewrite, sink.finish())}
