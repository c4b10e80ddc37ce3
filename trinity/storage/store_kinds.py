"""The list of all kinds of object stores. A new kind is a module of its own and an entry here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from trinity.storage.azure import Azure
from trinity.storage.gcs import Gcs
from trinity.storage.s3 import S3
from trinity.storage.store_kind import StoreKind

KINDS: Final[tuple[StoreKind[Any], ...]] = (S3(), Gcs(), Azure())

PYICEBERG_PREFIXES: Final = tuple(kind.pyiceberg_prefix for kind in KINDS)
"""Prefixes of PyIceberg's own properties for object stores."""

_NUMBERED: Final = re.compile(r"(?<=^s3a)\d+$")
_SCHEMES: Final[Mapping[str, StoreKind[Any]]] = {scheme: kind for kind in KINDS for scheme in kind.schemes}


def by_scheme(scheme: str) -> StoreKind[Any] | None:
    """Return the kind with a scheme, or None; ``s3a`` with a number is S3A with a key that a catalog gave out."""
    return _SCHEMES.get(_NUMBERED.sub("", scheme))


def kind_of(store: str) -> StoreKind[Any]:
    """Return the kind of a store, by the text of the store or of a location in it."""
    return _SCHEMES[_NUMBERED.sub("", store.partition(":")[0])]
