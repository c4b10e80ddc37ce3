"""Z85, Delta's text for bytes: five characters for every four bytes."""

from __future__ import annotations

from typing import Final

__all__ = ["from_z85", "to_z85"]

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_VALUES: Final = {digit: value for value, digit in enumerate(_DIGITS)}


def to_z85(data: bytes) -> str:
    """Return the text of bytes, whose number is a multiple of four."""
    numbers = (int.from_bytes(data[at : at + 4], "big") for at in range(0, len(data), 4))
    return "".join(_DIGITS[number // 85**power % 85] for number in numbers for power in (4, 3, 2, 1, 0))


def from_z85(text: str) -> bytes:
    """Return the bytes of a text.

    Raises:
        ValueError: the text is not Z85.
    """
    if len(text) % 5 or not _VALUES.keys() >= set(text):
        raise ValueError("it is no text of Z85")
    found = bytearray()
    for at in range(0, len(text), 5):
        number = sum(
            _VALUES[digit] * 85**power for digit, power in zip(text[at : at + 5], (4, 3, 2, 1, 0), strict=True)
        )
        if number >> 32:
            raise ValueError("it is no text of Z85")
        found += number.to_bytes(4, "big")
    return bytes(found)
