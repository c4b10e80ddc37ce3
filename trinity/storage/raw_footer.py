"""The footer of a Parquet file as Thrift has it, with the places of pages and indexes, which pyarrow does not tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from trinity.storage.thrift_compact import Struct, read_struct
from trinity.storage.thrift_compact import field as of

__all__ = ["chunks_of", "raw_footer"]

_TAIL: Final = 64 * 1024
"""Bytes at the end of a file, in which most footers are."""


def raw_footer(file: Any) -> Struct:
    """Return the footer of an opened file. Raises what the store raises."""
    size = file.size()
    tail = file.read_at(min(_TAIL, size), max(0, size - _TAIL))
    length = int.from_bytes(tail[-8:-4], "little")
    return read_struct(tail[-8 - length : -8] if length + 8 <= len(tail) else file.read_at(length, size - 8 - length))


def chunks_of(footer: Struct, group: int) -> Sequence[Struct]:
    """Return the column chunks of a row group."""
    found: Sequence[Struct] = of(of(footer, 4)[1][group], 1)[1]
    return found
