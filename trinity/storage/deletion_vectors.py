"""Deletion vectors: the deleted rows of a data file as a bitmap in Roaring's portable 64-bit form.

Delta and Iceberg keep one in a file alike: its length, the bitmap behind four magic bytes, and a checksum.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

import numpy as np

from trinity.storage.location import Location
from trinity.storage.position_deletes import unreadable_deletes
from trinity.storage.store import ObjectStore

__all__ = ["FRAME", "in_frame", "places_in", "places_in_file", "vector_of"]

FRAME: Final = 8
"""Bytes around a vector in a file."""
_MAGIC: Final = struct.pack("<I", 1681511377)
"""The first bytes of a vector."""


def vector_of(places: np.ndarray) -> bytes:
    """Return the vector of some places."""
    from pyroaring import BitMap64

    bits = BitMap64(places.astype(np.uint64))
    bits.run_optimize()
    return _MAGIC + bytes(bits.serialize())


def in_frame(vector: bytes) -> bytes:
    """Return a vector as it lies in a file."""
    return len(vector).to_bytes(4, "big") + vector + zlib.crc32(vector).to_bytes(4, "big")


def places_in(vector: bytes) -> np.ndarray:
    """Return the places of a vector, ascending. Raises ValueError for bytes that are none."""
    from pyroaring import BitMap64

    if vector[: len(_MAGIC)] != _MAGIC:
        raise ValueError("it is no bitmap that is known")
    return np.asarray(BitMap64.deserialize(vector[len(_MAGIC) :]).to_array()).astype(np.int64)


def places_in_file(path: str, offset: int, size: int) -> np.ndarray:
    """Return the places of a vector in a file.

    Args:
        path: the file.
        offset: where the vector begins with its frame.
        size: its bytes, without the frame.

    Raises:
        TrinityError: BAD_DATA for a file that is missing or damaged.
    """
    try:
        with ObjectStore(path).filesystem.open_input_file(Location.of(path).for_arrow) as file:
            found = bytes(file.read_at(size + FRAME, offset))
        length, vector, check = found[:4], found[4:-4], found[-4:]
        if length != size.to_bytes(4, "big") or check != zlib.crc32(vector).to_bytes(4, "big"):
            raise ValueError("its checksum is another one")
        return places_in(vector)
    except (OSError, MemoryError, ValueError) as error:
        raise unreadable_deletes(path, error) from error
