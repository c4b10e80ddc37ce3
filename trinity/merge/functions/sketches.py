"""Approximate counts and bitmaps, serialized as other tools read them.

Sketches are those of Apache DataSketches. Spark has unions of them, which write other bytes than the library for
Python. Bitmaps have Roaring's portable format. Spark has nothing for them, so their union runs in Python, an Arrow
batch of keys at a time.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.arrays import as_arrow
from trinity.errors import ErrorCode, TrinityError
from trinity.merge.functions.base import AggregateFunction, Field, aggregated
from trinity.merge.kernels.bitmap_unions import BITMAP_UNIONS, bitmap_class, united_bitmaps
from trinity.merge.kernels.rows import ColumnRows, Folded, lists, picked
from trinity.spi import DataType


class _Serialized(AggregateFunction):
    commutes = True

    def problem(self, kind: DataType, options: Mapping[str, str]) -> str | None:
        return None if kind.name == "binary" else "needs a binary column"

    def bad_value(self, values: pa.Array, options: Mapping[str, str]) -> tuple[ErrorCode, str] | None:
        decode = self.decoder()
        for value in values.to_pylist():
            try:
                decode(value)
            except Exception as error:  # the library may raise anything on bytes of another kind
                return "INVALID_ARGUMENTS", f"{len(value)} bytes that do not decode: {error}"
        return None

    @abstractmethod
    def decoder(self) -> Callable[[bytes], object]:
        """Return the function that decodes one value, or raises an error.

        Raises:
            TrinityError: CONFIGURATION_INVALID when the library for it is not installed.
        """

    @staticmethod
    def counts(field: Field) -> str:
        """Return Spark SQL: true for the rows that add a value."""
        return f"{field.when} AND NOT {field.retract} AND {field.value} IS NOT NULL"


class _Sketch(_Serialized):
    union: ClassVar[str]

    def not_in_arrow(self, kind: DataType, options: Mapping[str, str]) -> str | None:
        return "has a union whose bytes Spark's library alone writes"

    def aggregate(self, field: Field) -> str:
        # a union of no rows would be an empty sketch, and the column has to be NULL
        number = aggregated("count(1)", self.counts(field))
        union = aggregated(self.union.format(field.value), self.counts(field))
        return f"CASE WHEN {number} > 0 THEN {union} END"


class HllSketch(_Sketch):
    """Union of HLL sketches: an approximate number of distinct values."""

    name = "hll_sketch"
    union = "hll_union_agg({}, true)"

    def decoder(self) -> Callable[[bytes], object]:
        decode: Callable[[bytes], object] = _library("datasketches").hll_sketch.deserialize
        return decode


class ThetaSketch(_Sketch):
    """Union of theta sketches: an approximate number of distinct values."""

    name = "theta_sketch"
    union = "theta_union_agg({})"

    def decoder(self) -> Callable[[bytes], object]:
        decode: Callable[[bytes], object] = _library("datasketches").compact_theta_sketch.deserialize
        return decode


class _Bitmap(_Serialized):
    def said_in(self, dialect: str, field: Field) -> bool:
        return False  # the union is a function of Trinity's own, which only its sessions have

    def aggregate(self, field: Field) -> str:
        return aggregated(f"collect_list({field.value})", self.counts(field))

    def result(self, field: Field, state: str) -> str:
        return (
            f"CASE WHEN size({state}) > 1 THEN {BITMAP_UNIONS[self.name]}({state}) ELSE try_element_at({state}, 1) END"
        )

    def not_in_arrow(self, kind: DataType, options: Mapping[str, str]) -> str | None:
        return None if find_spec("pyroaring") else "needs pip install 'trinity-merge[sketches]'"

    def folded(self, rows: ColumnRows) -> Folded:
        among = rows.with_value & ~rows.retract
        found = rows.order.sorted(among)
        keys = rows.order.keys[found]
        number = np.bincount(keys, minlength=rows.order.count)
        united = united_bitmaps(self.name, lists(keys, rows.values.take(as_arrow(found)), number > 1))
        alone = picked(rows.values, rows.order.last(among))
        return Folded(pc.if_else(as_arrow(number > 1), united, alone))

    def decoder(self) -> Callable[[bytes], object]:
        _library("pyroaring")
        decode: Callable[[bytes], object] = bitmap_class(self.name).deserialize
        return decode


class RoaringBitmap32(_Bitmap):
    """Union of 32-bit Roaring bitmaps."""

    name = "rbm32"


class RoaringBitmap64(_Bitmap):
    """Union of 64-bit Roaring bitmaps."""

    name = "rbm64"


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise TrinityError(
            "CONFIGURATION_INVALID",
            f"Sketches and bitmaps need the package {name}; pip install 'trinity-merge[sketches]'.",
        ) from error
