"""Spark's hash of rows, which decides their buckets: Murmur3 with Spark's own tail of bytes, in numpy.

For the types that :mod:`trinity.merge.kernels.keys` compares as Spark does. See Spark's ``Murmur3_x86_32`` and
``HashExpression``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from trinity.arrays import as_numpy
from trinity.merge.kernels.keys import canonical_floats

_SEED: Final = np.uint32(42)
_C1: Final = np.uint32(0xCC9E2D51)
_C2: Final = np.uint32(0x1B873593)
_LONG_DIGITS: Final = 18
"""Largest precision of a DECIMAL that is hashed as its unscaled BIGINT, and not as bytes."""


def buckets_of(rows: pa.Table, key: Sequence[str], count: int) -> np.ndarray:
    """Return ``pmod(hash(key), count)`` of each row, as INT: as Spark hashes it, with a NULL in the key, too."""
    found = np.full(len(rows), _SEED)
    with np.errstate(over="ignore"):
        for name in key:
            column = rows.column(name).combine_chunks()
            valid: np.ndarray = as_numpy(column.is_valid())
            found = np.where(valid, _hashed(column, found), found)
    return np.mod(found.view(np.int32), np.int32(count))


def in_bucket_order(rows: pa.Table, key: Sequence[str], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (indices of rows by bucket, ascending in each; where each bucket begins among them, and the end)."""
    buckets = buckets_of(rows, key, count)
    order = np.argsort(buckets, kind="stable")
    return order, np.searchsorted(buckets[order], np.arange(count + 1))


def _hashed(column: pa.Array, seed: np.ndarray) -> np.ndarray:
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        return _of_bytes(column.cast(pa.large_binary()), seed)
    if pa.types.is_boolean(kind):
        return _of_ints(_filled(column.cast(pa.int32())), seed)
    if pa.types.is_decimal(kind):
        return _of_decimals(column, seed)
    if pa.types.is_float32(kind):
        return _of_ints(_filled(canonical_floats(column)).view(np.int32), seed)
    if pa.types.is_float64(kind):
        return _of_longs(_filled(canonical_floats(column)).view(np.int64), seed)
    if pa.types.is_time64(kind):  # Spark stores TIME in nanoseconds
        return _of_longs(_filled(column.cast(pa.time64("ns")).view(pa.int64())), seed)
    if pa.types.is_timestamp(kind):
        return _of_longs(_filled(column.view(pa.int64())), seed)
    if pa.types.is_date32(kind):
        return _of_ints(_filled(column.view(pa.int32())), seed)
    return _of_longs(_filled(column), seed) if kind == pa.int64() else _of_ints(_filled(column), seed)


def _filled(column: pa.Array) -> np.ndarray:
    return as_numpy(column.fill_null(0))


def _of_ints(values: np.ndarray, seed: np.ndarray) -> np.ndarray:
    words = values.astype(np.int32).view(np.uint32)
    return _finalize(_mix(seed, words), np.uint32(4))


def _of_longs(values: np.ndarray, seed: np.ndarray) -> np.ndarray:
    halves = values.astype("<i8").view("<u4").reshape(-1, 2)
    return _finalize(_mix(_mix(seed, halves[:, 0]), halves[:, 1]), np.uint32(8))


def _of_decimals(column: pa.Array, seed: np.ndarray) -> np.ndarray:
    words = np.frombuffer(column.buffers()[1], "<i8").reshape(-1, 2)[column.offset : column.offset + len(column)]
    if column.type.precision <= _LONG_DIGITS:
        return _of_longs(np.ascontiguousarray(words[:, 0]), seed)
    unscaled = [_bytes_of(int(low) & (2**64 - 1) | int(high) << 64) for low, high in words]
    return _of_bytes(pa.array(unscaled, pa.large_binary()), seed)


def _bytes_of(value: int) -> bytes:
    """Return the shortest two's complement, the highest byte first: Java's ``BigInteger.toByteArray``."""
    bits = (value if value >= 0 else ~value).bit_length()
    return value.to_bytes(bits // 8 + 1, "big", signed=True)


def _of_bytes(column: pa.Array, seed: np.ndarray) -> np.ndarray:
    """Hash whole words first, the lowest byte of each first; then byte by byte, each with its sign."""
    offsets = np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column) + 1]
    data = np.frombuffer(column.buffers()[2] or b"", np.uint8)
    starts, lengths, found = offsets[:-1], np.diff(offsets), seed.copy()
    for index in range(int(lengths.max(initial=0)) // 4):
        rows = np.flatnonzero(lengths >= 4 * (index + 1))
        at = starts[rows] + 4 * index
        word = sum(data[at + byte].astype(np.uint32) << np.uint32(8 * byte) for byte in range(4))
        found[rows] = _mix(found[rows], np.asarray(word, np.uint32))
    whole = lengths // 4 * 4
    for byte in range(3):
        rows = np.flatnonzero(lengths - whole > byte)
        values = data[starts[rows] + whole[rows] + byte].view(np.int8).astype(np.int32)
        found[rows] = _mix(found[rows], values.view(np.uint32))
    return _finalize(found, lengths.astype(np.uint32))


def _mix(hashes: np.ndarray, words: np.ndarray) -> np.ndarray:
    words = _rotate(words * _C1, 15) * _C2
    return _rotate(hashes ^ words, 13) * np.uint32(5) + np.uint32(0xE6546B64)


def _rotate(words: np.ndarray, bits: int) -> np.ndarray:
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))


def _finalize(hashes: np.ndarray, lengths: np.ndarray | np.uint32) -> np.ndarray:
    found = hashes ^ lengths
    found = (found ^ (found >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    found = (found ^ (found >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return found ^ (found >> np.uint32(16))
