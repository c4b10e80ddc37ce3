"""Keys that a catalog hands out for the place of one table: temporary ones, asked for again before they expire.

A process has the keys of a place once; who hands them out says how newer ones are got. Spark's workers have them as
they were when their task was planned.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from trinity.errors import TrinityError
from trinity.storage.location import Location
from trinity.storage.s3 import S3Options
from trinity.storage.store_options import StoreOptions
from trinity.storage.store_reach import learn_options, options_as_text, options_of, options_to_learn, told_options

__all__ = [
    "Credential",
    "Granted",
    "Grants",
    "any_granted",
    "grant",
    "granted",
    "grants_to_learn",
    "is_granted",
    "options_at",
    "options_known",
    "renewed",
    "to_learn",
    "with_grants",
]

_R = TypeVar("_R")
_P = TypeVar("_P")

_MARGIN_MS: Final = 15 * 60 * 1000
"""The time before their end in which keys are renewed; of keys that live short it is half of their life."""
_UNTOLD_MS: Final = 5 * 60 * 1000
"""The time for which keys whose end is not told are not replaced by those of another load."""
_AGAIN_MS: Final = 30 * 1000
"""The time after which a renewal that failed is tried again, where one goes on with the keys that there are."""
_numbers: Final = itertools.count(1)


@dataclass(frozen=True)
class Credential:
    """A key for what lies below a prefix.

    Attributes:
        prefix: the beginning of the locations that it is for, as ``s3://bucket/table``.
        options: the key, and where the bucket is.
        expires_ms: when it ends, milliseconds since the epoch; None where nobody says.
    """

    prefix: str
    options: S3Options = field(repr=False)
    expires_ms: int | None = None


@dataclass(frozen=True)
class Granted:
    """A key as it holds now.

    Attributes:
        number: another one for each key of the process.
        prefix: the beginning of the locations that it is for: a table's place, or what is said of some of its files.
        options: the key, and where the bucket is.
        expires_ms: see :class:`Credential`.
    """

    number: int
    prefix: str
    options: S3Options = field(repr=False)
    expires_ms: int | None


class Grants(Protocol):
    """The giver of the keys of a table's place."""

    def credentials(self) -> Sequence[Credential]:
        """Newer ones. Raises TrinityError."""
        ...


class _Grant:
    """The keys of one table's place: the beginning of a location -> the key of what is below it."""

    def __init__(self, root: str, offered: Sequence[Credential], by: Grants) -> None:
        self.root = root
        self.by = by
        self.lock = threading.RLock()  # a renewal may load the table, which offers keys
        self._take(offered)

    def _take(self, offered: Sequence[Credential]) -> None:
        now, ends = _now_ms(), [c.expires_ms for c in offered if c.expires_ms is not None]
        own, found = f"{self.root}/", dict[str, Granted]()
        for one in sorted(offered, key=lambda c: len(c.prefix)):  # the longest that fits counts
            prefix = own if own.startswith(one.prefix) else one.prefix
            found[prefix] = Granted(next(_numbers), prefix, one.options, one.expires_ms)
        self.keys = found
        self.expires_ms = min(ends, default=None)
        left = None if self.expires_ms is None else max(self.expires_ms - now, 0)
        self.stale_ms = self.due_ms = now + (_UNTOLD_MS if left is None else left - min(_MARGIN_MS, left // 2))

    def offer(self, offered: Sequence[Credential], by: Grants) -> None:
        """Takes newer keys where the present ones are about to end, or somebody else's; these go on otherwise."""
        with self.lock:
            other, self.by = by != self.by, by
            if other or _now_ms() >= self.stale_ms:
                self._take(offered)

    def see_to(self) -> None:
        """Renews the keys if it is time. Raises what the catalog says, once they have ended."""
        if self.expires_ms is None or _now_ms() < self.due_ms:
            return
        with self.lock:
            if _now_ms() < self.due_ms:
                return
            try:
                self._take(self.by.credentials())
            except TrinityError as error:
                ended = _now_ms() >= self.expires_ms
                if ended and error.code != "TABLE_NOT_FOUND":  # one that is being made, or dropped
                    raise
                self.due_ms = _now_ms() + _AGAIN_MS

    def replaced(self, used: StoreOptions, text: str) -> bool:
        """True when there are other keys than those that were refused."""
        with self.lock:
            if (now := self.key(text)) is not None and now.options == used:
                with suppress(TrinityError):
                    self._take(self.by.credentials())
            after = self.key(text)
            return after is not None and after.options != used

    def key(self, text: str) -> Granted | None:
        """The key of a location, by the longest prefix."""
        fitting = [key for prefix, key in self.keys.items() if _below(text, prefix)]
        return max(fitting, key=lambda key: len(key.prefix), default=None)


_grants: dict[str, _Grant] = {}
_mutex = threading.Lock()


def grant(root: Location, offered: Sequence[Credential], by: Grants) -> None:
    """Hands keys out for the place of a table, and for what its files name elsewhere.

    Args:
        root: the table's place.
        offered: the keys.
        by: who hands them out; equal for one and the same.
    """
    with _mutex:
        known = _grants.get(str(root))
        if known is None:
            _grants[str(root)] = _Grant(str(root), offered, by)
    if known is not None:
        known.offer(offered, by)


def any_granted() -> bool:
    """True once a catalog has handed out keys in this process."""
    return bool(_grants)


def is_granted(location: Location) -> bool:
    """True where a catalog has handed out keys."""
    return _found(str(location)) is not None


def granted(location: Location) -> Granted | None:
    """The key of a location as it holds now, renewed if it is time; None where nobody has handed one out."""
    if (found := _found(str(location))) is None:
        return None
    found.see_to()
    return found.key(str(location))


def options_at(location: Location) -> StoreOptions:
    """The way to a location: by the key that was handed out for it, or else as its bucket is reached."""
    if (key := granted(location)) is not None:
        return key.options
    return told_options(str(location)) or options_of(location.store)


def options_known(location: Location) -> StoreOptions:
    """The options by which a location was reached last: nobody is asked for anything."""
    found = _found(str(location))
    key = found.key(str(location)) if found else None
    return key.options if key else options_of(location.store)


def renewed(location: Location, refused: StoreOptions) -> bool:
    """True when a request that was refused is worth another try: the keys of the place are others now."""
    found = _found(str(location))
    return found is not None and found.replaced(refused, str(location))


def _found(text: str) -> _Grant | None:
    if not _grants:
        return None
    with _mutex:
        above = text
        while above:
            if (found := _grants.get(above)) is not None:
                return found
            above = above.rpartition("/")[0]
        known = list(_grants.values())
    return next((one for one in reversed(known) if one.key(text) is not None), None)


def _below(text: str, prefix: str) -> bool:
    return f"{text}/".startswith(prefix)


# -- Spark's workers --------------------------------------------------------------------------------------


def grants_to_learn() -> str | None:
    """The keys that were handed out and hold, as text for :func:`~trinity.storage.learn_options`; None without any."""
    with _mutex:
        known = list(_grants.values())
    now = _now_ms()
    keys = [key for one in known for key in one.keys.values() if key.expires_ms is None or key.expires_ms > now]
    return options_as_text(None, {key.prefix: key.options for key in keys}) if keys else None


def to_learn(location: Location) -> str:
    """The options of a file's place as text, keys among them, for :func:`~trinity.storage.learn_options`."""
    key = granted(location)
    return options_to_learn(location.store) if key is None else options_as_text(None, {key.prefix: key.options})


def with_grants(function: Callable[[_P], _R]) -> Callable[[_P], _R]:
    """The function of a task, which reaches from a worker what is reached here by keys that were handed out.

    They travel with the function, which is part of no text of a plan.
    """
    text = grants_to_learn()
    if text is None:
        return function

    def knowing(pages: _P) -> _R:
        learn_options(text)
        return function(pages)

    return knowing


def _now_ms() -> int:
    return int(time.time() * 1000)
