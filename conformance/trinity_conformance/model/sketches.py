"""Aggregate functions of sketches and bitmaps (A3), and the meaning of their bytes.

================  =======================================================================================
hll_sketch        a HyperLogLog sketch of Apache DataSketches, compact form (Paimon writes HLL_4)
theta_sketch      a theta sketch of Apache DataSketches, compact form (serial version 3), default seed
rbm32             a RoaringBitmap of 32-bit integers in the portable form of RoaringFormatSpec, as in Paimon
rbm64             a RoaringBitmap of 64-bit integers in the portable form of RoaringFormatSpec: the number of parts,
                  then the upper 32 bits and a 32-bit bitmap for each
================  =======================================================================================

The 64-bit form is the one that CRoaring, Go and Rust read, and that the deletion vectors of Delta and Iceberg contain.
Paimon's ``rbm64`` writes the bytes of Java's ``Roaring64Bitmap``, a tree whose form no other library reads and that
the specification leaves out: the names agree, the bytes do not.

Two sketches are equal when their estimates are, two bitmaps when they hold the same integers: bytes depend on the order
of unions and on run compression.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import datasketches
import pyroaring

from trinity_conformance.model.functions import Function
from trinity_conformance.model.values import Value

_LG_K: Final = 12


class _Union(Function):
    """A union of serialized sets: NULL changes nothing."""

    def add(self, acc: Any, value: Value) -> Any:
        if value is None or acc is None:
            return acc if value is None else value
        return self.union(bytes(acc), bytes(value))

    @abstractmethod
    def union(self, one: bytes, other: bytes) -> bytes:
        """Return the union of two."""


class ThetaSketch(_Union):
    """theta_sketch: the union of sketches."""

    def union(self, one: bytes, other: bytes) -> bytes:
        both = datasketches.theta_union(_LG_K)
        for part in (one, other):
            both.update(datasketches.compact_theta_sketch.deserialize(part))
        return bytes(both.get_result().serialize())


class HllSketch(_Union):
    """hll_sketch: the union of sketches."""

    def union(self, one: bytes, other: bytes) -> bytes:
        both = datasketches.hll_union(_LG_K)
        for part in (one, other):
            both.update(datasketches.hll_sketch.deserialize(part))
        return bytes(both.get_result(datasketches.tgt_hll_type.HLL_4).serialize_compact())


class Rbm32(_Union):
    """rbm32: the union of bitmaps of 32-bit numbers."""

    def union(self, one: bytes, other: bytes) -> bytes:
        return bytes((pyroaring.BitMap.deserialize(one) | pyroaring.BitMap.deserialize(other)).serialize())


class Rbm64(_Union):
    """rbm64: the union of bitmaps of 64-bit numbers."""

    def union(self, one: bytes, other: bytes) -> bytes:
        return bytes((pyroaring.BitMap64.deserialize(one) | pyroaring.BitMap64.deserialize(other)).serialize())


SKETCH_FUNCTIONS: Final[Mapping[str, Callable[[str, Mapping[str, str]], Function]]] = {
    "theta_sketch": ThetaSketch,
    "hll_sketch": HllSketch,
    "rbm32": Rbm32,
    "rbm64": Rbm64,
}
"""Name -> function of binary columns."""

SKETCH_FORMS: Final[Mapping[str, Callable[[bytes], Any]]] = {
    "theta_sketch": lambda data: round(datasketches.compact_theta_sketch.deserialize(data).get_estimate(), 3),
    "hll_sketch": lambda data: round(datasketches.hll_sketch.deserialize(data).get_estimate(), 3),
    "rbm32": lambda data: frozenset(pyroaring.BitMap.deserialize(data)),
    "rbm64": lambda data: frozenset(pyroaring.BitMap64.deserialize(data)),
}
"""Name -> the form in which two values of the function's column are compared."""


def sketch_bytes(function: str, members: Iterable[int]) -> bytes:
    """Return the serialized sketch or bitmap of some integers, for a column of that function."""
    if function == "rbm32":
        return bytes(pyroaring.BitMap(members).serialize())
    if function == "rbm64":
        return bytes(pyroaring.BitMap64(members).serialize())
    if function == "hll_sketch":
        hll = datasketches.hll_sketch(_LG_K, datasketches.tgt_hll_type.HLL_4)
        for member in members:
            hll.update(member)
        return bytes(hll.serialize_compact())
    theta = datasketches.update_theta_sketch(_LG_K)
    for member in members:
        theta.update(member)
    return bytes(theta.compact().serialize())
