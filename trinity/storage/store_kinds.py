"""The kinds of object stores that there are: one more is a module of its own, and an entry here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from trinity.storage.azure import Azure
from trinity.storage.gcs import Gcs
from trinity.storage.s3 import S3
from trinity.storage.store_kind import StoreKind

__all__ = ["KINDS", "PYICEBERG_PREFIXES", "by_scheme", "kind_of"]

KINDS: Final[tuple[StoreKind, ...]] = (S3(), Gcs(), Azure())

PYICEBERG_PREFIXES: Final = tuple(kind.pyiceberg_prefix for kind in KINDS)
"""The beginnings of PyIceberg's own properties for object stores."""

_NUMBERED: Final = re.compile(r"(?<=^s3a)\d+$")
_SCHEMES: Final[Mapping[str, StoreKind]] = {scheme: kind for kind in KINDS for scheme in kind.schemes}


def by_scheme(scheme: str) -> StoreKind | None:
    """The kind whose locations have a scheme; ``s3a`` with a number is S3A by a key that a catalog has handed out."""
    return _SCHEMES.get(_NUMBERED.sub("", scheme))


def kind_of(store: str) -> StoreKind:
    """The kind of a store, by its text or by that of something in it."""
    return _SCHEMES[_NUMBERED.sub("", store.partition(":")[0])]
