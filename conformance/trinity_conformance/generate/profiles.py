"""Kinds of tables, by number of the history: a rota over key types, watermarks, tombstones and features.

The lists have lengths without a common divisor, so that a long run covers every pair. They begin with the most useful
kinds, so that a short run is worth its time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from trinity.spi import EVERYTHING, Capability
from trinity_conformance.playing.needs import with_types

_T = TypeVar("_T")

KEYS: Final[tuple[tuple[str, ...], ...]] = (
    ("int",),
    ("string", "int"),
    ("double", "int"),
    ("bigint", "date"),
    ("decimal(10,2)", "smallint"),
    ("binary", "int"),
    ("boolean", "bigint"),
    ("float", "string"),
    ("char(3)", "int"),
    ("timestamp", "int"),
    ("varchar(5)", "tinyint"),
    ("timestamp_ntz", "string"),
    ("decimal(38,10)", "date"),
)
"""Types of the primary key columns (K1); single small types are paired, to have dozens of keys."""

WATERMARKS: Final[tuple[tuple[str, ...], ...]] = (
    ("bigint",),
    ("timestamp", "int"),
    ("double",),
    ("string", "boolean"),
    (),
    ("decimal(10,2)",),
    ("binary",),
    ("date", "string", "tinyint"),
    ("float",),
    ("timestamp_ntz",),
    ("string",),
    ("boolean",),
    ("timestamp",),
    ("decimal(38,10)", "double"),
    ("date",),
    ("smallint", "varchar(5)"),
    ("tinyint",),
    ("int",),
    ("char(3)",),
)
"""Types of the watermark columns (K3): none, single, composite."""

TOMBSTONES: Final[tuple[tuple[str, str | None] | None, ...]] = (
    ("boolean", None),
    ("string", "D"),
    None,
    ("int", None),
    ("string", None),
    ("timestamp", None),
    ("char(3)", "D"),
    ("decimal(10,2)", None),
    ("varchar(5)", "D"),
    ("double", None),
    ("binary", None),
)
"""Type of the tombstone column and ``tombstone-string-key-value``, or None for a table without (U3, U6)."""

FEATURES: Final[tuple[str, ...]] = (
    "plain", "descending", "row-kind", "alias", "buckets", "ignore-delete", "partitioned",
)  # fmt: skip
"""Further features of the table (U8, D1, K5)."""

BUCKETS: Final[tuple[str, ...]] = ("2", "3", "4")
"""Numbers of buckets: equal to the task count of Spark's own exchanges, and others."""

PRODUCERS: Final[tuple[str, ...]] = ("none", "lookup", "input", "full-compaction", "none")
"""Values of ``changelog-producer``, which decides what the change feed shows (C6)."""


@dataclass(frozen=True)
class Profile:
    """The kind of a table.

    Attributes:
        key: types of the key columns.
        watermark: types of the watermark columns.
        tombstone: type and string value of the tombstone, or None.
        feature: one of :data:`FEATURES`.
        producer: one of :data:`PRODUCERS`.
        capabilities: those that a table may need.
    """

    key: tuple[str, ...] = KEYS[0]
    watermark: tuple[str, ...] = WATERMARKS[0]
    tombstone: tuple[str, str | None] | None = TOMBSTONES[0]
    feature: str = FEATURES[0]
    producer: str = PRODUCERS[0]
    capabilities: Collection[Capability] = EVERYTHING


def rota(number: int, capabilities: Collection[Capability] = EVERYTHING) -> Profile:
    """Return the profile of history ``number`` (from 0), with types that an adapter has."""
    return Profile(
        choice_at(number, with_types(KEYS, tuple, capabilities)),
        choice_at(number, with_types(WATERMARKS, tuple, capabilities)),
        choice_at(number, with_types(TOMBSTONES, _of_mark, capabilities)),
        choice_at(number, FEATURES),
        choice_at(number, PRODUCERS),
        capabilities,
    )


def choice_at(number: int, choices: Sequence[_T]) -> _T:
    """Return the choice that has its turn at a number."""
    return choices[number % len(choices)]


def _of_mark(tombstone: tuple[str, str | None] | None) -> tuple[str, ...]:
    return () if tombstone is None else (tombstone[0],)


_LAYOUTS: Final[tuple[tuple[bool, bool], ...]] = (
    (False, False),
    (True, False),
    (True, False),
    (False, True),
    (True, True),
)
"""(keyed, partitioned) of the tables of programs."""

_ORDERINGS: Final[tuple[tuple[tuple[str, ...], bool], ...]] = (
    (("bigint",), False),
    (("int",), False),
    ((), False),
    (("int", "string"), False),
    (("bigint",), True),
    ((), False),
    (("int",), False),
)
"""Types of the watermark, and whether it descends."""

_MARKS: Final[tuple[tuple[str, str | None] | None, ...]] = (("string", "D"), ("boolean", None), None)

_PARADIGMS: Final = ("DELETE_ROW_AND_INSERT_ROW", "CHANGE_ONLY_UPDATED_COLUMNS")


@dataclass(frozen=True)
class DmlProfile:
    """The kind of a table that programs of SQL statements are about.

    Attributes:
        keyed: False for a plain table.
        partitioned: True for partitions: a nullable column of a plain table, part of the key of a keyed one.
        watermark: types of the watermark columns.
        descending: True when the smallest is the freshest (U8).
        tombstone: type and string value of the tombstone, or None.
        paradigm: name of the row change paradigm; keyed tables take either (L5).
    """

    keyed: bool = False
    partitioned: bool = False
    watermark: tuple[str, ...] = ()
    descending: bool = False
    tombstone: tuple[str, str | None] | None = None
    paradigm: str = _PARADIGMS[0]


def dml_rota(number: int, capabilities: Collection[Capability] = EVERYTHING) -> DmlProfile:
    """Return the profile of program ``number`` (from 0), with types that an adapter has."""
    return DmlProfile(
        *choice_at(number, _LAYOUTS),
        *choice_at(number, _ORDERINGS),
        choice_at(number, with_types(_MARKS, _of_mark, capabilities)),
        choice_at(number, _PARADIGMS),
    )
