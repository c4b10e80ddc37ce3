"""Thrift's compact protocol, in which Parquet encodes its metadata: decoding and encoding of structs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

Struct = dict[int, tuple[int, Any]]
"""Number of a field -> (kind in the protocol, value). The value of a list is (kind of its elements, elements)."""

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
_BYTES: Final = {BYTE: 1, DOUBLE: 8}


def field(struct: Struct, number: int, default: Any = None) -> Any:
    """Return the value of a field."""
    return struct[number][1] if number in struct else default


def read_struct(data: bytes) -> Struct:
    """Return the struct at the beginning of the bytes."""
    return _Reader(data).struct()


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        found = shift = 0
        while True:
            byte = self.byte()
            found |= (byte & 127) << shift
            if byte < 128:
                return found
            shift += 7

    def integer(self) -> int:
        found = self.varint()
        return (found >> 1) ^ -(found & 1)

    def bytes(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]

    def struct(self) -> Struct:
        found: Struct = {}
        number = 0
        while header := self.byte():
            number = number + (header >> 4) if header >> 4 else self.integer()
            kind = header & 15
            found[number] = (kind, kind == TRUE) if kind in (TRUE, FALSE) else (kind, self.value(kind))
        return found

    def value(self, kind: int) -> Any:
        if kind in (I16, I32, I64):
            return self.integer()
        if kind == BINARY:
            return self.bytes(self.varint())
        if kind == STRUCT:
            return self.struct()
        if kind in (LIST, SET):
            header = self.byte()
            count = header >> 4 if header >> 4 < 15 else self.varint()
            return header & 15, [self.value(header & 15) for _ in range(count)]
        if kind in (TRUE, FALSE):  # a boolean in a list is a byte
            return self.byte() == TRUE
        if kind == MAP:
            count = self.varint()
            kinds = self.byte() if count else 0
            return kinds, [(self.value(kinds >> 4), self.value(kinds & 15)) for _ in range(count)]
        return self.bytes(_BYTES[kind])


def written(struct: Struct) -> bytes:
    """Return the bytes of a struct, which must not contain maps."""
    out = bytearray()
    _write_struct(out, struct)
    return bytes(out)


def _write_struct(out: bytearray, struct: Struct) -> None:
    before = 0
    for number, (kind, value) in sorted(struct.items()):
        kind = (TRUE if value else FALSE) if kind in (TRUE, FALSE) else kind
        step = number - before
        if 0 < step < 16:
            out.append(step << 4 | kind)
        else:
            out.append(kind)
            _write_varint(out, number << 1)
        before = number
        if kind not in (TRUE, FALSE):
            _write(out, kind, value)
    out.append(0)


def _write(out: bytearray, kind: int, value: Any) -> None:
    if kind in (I16, I32, I64):
        _write_varint(out, value << 1 if value >= 0 else (-value << 1) - 1)
    elif kind == BINARY:
        _write_varint(out, len(value))
        out += value
    elif kind == STRUCT:
        _write_struct(out, value)
    elif kind in (LIST, SET):
        inner, elements = value
        if len(elements) < 15:
            out.append(len(elements) << 4 | inner)
        else:
            out.append(15 << 4 | inner)
            _write_varint(out, len(elements))
        for element in elements:
            _write(out, inner, element)
    elif kind in (TRUE, FALSE):
        out.append(TRUE if value else FALSE)
    else:
        out += value


def _write_varint(out: bytearray, value: int) -> None:
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


_TAIL: Final = 64 * 1024
"""Bytes at the end of a file, in which most footers are."""


def raw_footer(file: Any) -> Struct:
    """Return the footer of an opened file. Raises the store's errors."""
    size = file.size()
    tail = file.read_at(min(_TAIL, size), max(0, size - _TAIL))
    length = int.from_bytes(tail[-8:-4], "little")
    return read_struct(tail[-8 - length : -8] if length + 8 <= len(tail) else file.read_at(length, size - 8 - length))


def chunks_of(footer: Struct, group: int) -> Sequence[Struct]:
    """Return the column chunks of a row group."""
    found: Sequence[Struct] = field(field(footer, 4)[1][group], 1)[1]
    return found
