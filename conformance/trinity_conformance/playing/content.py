"""The content of a trace: canonical JSON, with an id from it."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

_FORMAT: Final = 1
_C = TypeVar("_C", bound="Content")


class Content(ABC):
    """A history or a case, which has an id by its content."""

    @property
    def id(self) -> str:
        """Twelve hexadecimal digits of the content."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:12]

    def to_json(self) -> str:
        """Return canonical JSON: sorted keys, no spaces."""
        data = {"format": _FORMAT, **self._fields()}
        return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    @abstractmethod
    def _fields(self) -> Mapping[str, Any]:
        """Return the fields of the JSON, without the format."""


def read_content(text: str, make: Callable[[Mapping[str, Any]], _C]) -> _C:
    """Return what :meth:`Content.to_json` wrote.

    Raises:
        ValueError: no trace, or one of another format.
    """
    try:
        data = json.loads(text)
        if data["format"] != _FORMAT:
            raise ValueError(f"trace format {data['format']!r}; this program reads {_FORMAT}")
        return make(data)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a conformance trace: {error!r}") from error
