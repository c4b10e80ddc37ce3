"""Temporary credentials that a catalog issues for the location of one table, renewed before they expire.

A process keeps one set of credentials for a table; the issuer of these fetches newer ones. Spark's workers get the
credentials that were valid when their task was planned.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from trinity.clock import now_ms
from trinity.errors import TrinityError
from trinity.storage.bucket_options import (
    environment_options,
    learn_options,
    options_as_text,
    options_of,
    options_to_learn,
)
from trinity.storage.location import Location
from trinity.storage.s3 import S3Options
from trinity.storage.store_options import StoreOptions

_R = TypeVar("_R")
_P = TypeVar("_P")

_MARGIN_MS: Final = 15 * 60 * 1000
"""Credentials are renewed this long before they expire; short-lived ones after half of their life."""
_WITHOUT_EXPIRY_MS: Final = 5 * 60 * 1000
"""How long credentials without an expiry time are kept, before those of another load replace them."""
_AGAIN_MS: Final = 30 * 1000
"""How long after a failed renewal the next one is tried, while the present credentials still work."""
_numbers: Final = itertools.count(1)


@dataclass(frozen=True)
class Credential:
    """A credential for all locations with a prefix.

    Attributes:
        prefix: beginning of these locations, such as ``s3://bucket/table``.
        options: the credential, and where the bucket is.
        expires_ms: when it expires, milliseconds since the epoch; None when unknown.
    """

    prefix: str
    options: S3Options = field(repr=False)
    expires_ms: int | None = None


@dataclass(frozen=True)
class Granted:
    """A credential that is valid now.

    Attributes:
        number: unique among the credentials of the process.
        prefix: beginning of the locations that it is for: a table's location, or that of some of its files.
        options: the credential, and where the bucket is.
        expires_ms: see :class:`Credential`.
    """

    number: int
    prefix: str
    options: S3Options = field(repr=False)
    expires_ms: int | None


class Grants(Protocol):
    """The issuer of the credentials of a table's location."""

    def credentials(self) -> Sequence[Credential]:
        """Return newer credentials. Raises the catalog's errors."""
        ...


class _Grant:
    """The credentials of one table's location: prefix of locations -> credential."""

    def __init__(self, root: str, offered: Sequence[Credential], issuer: Grants) -> None:
        self.root = root
        self.issuer = issuer
        self.lock = threading.RLock()  # a renewal may load the table, which offers credentials
        self._take(offered)

    def _take(self, offered: Sequence[Credential]) -> None:
        now, ends = now_ms(), [c.expires_ms for c in offered if c.expires_ms is not None]
        own, found = f"{self.root}/", dict[str, Granted]()
        # the longest prefix comes last: of those that cover the whole table it is the one that counts
        for one in sorted(offered, key=lambda c: len(c.prefix)):
            prefix = own if own.startswith(one.prefix) else one.prefix
            found[prefix] = Granted(next(_numbers), prefix, one.options, one.expires_ms)
        self.credentials = found
        self.expires_ms = min(ends, default=None)
        left = None if self.expires_ms is None else max(self.expires_ms - now, 0)
        self.stale_ms = self.due_ms = now + (_WITHOUT_EXPIRY_MS if left is None else left - min(_MARGIN_MS, left // 2))

    def update_credentials(self, offered: Sequence[Credential], issuer: Grants) -> None:
        """Take the offered credentials if the present ones expire soon or come from another issuer."""
        with self.lock:
            other, self.issuer = issuer != self.issuer, issuer
            if other or now_ms() >= self.stale_ms:
                self._take(offered)

    def renew_if_due(self) -> None:
        """Renew the credentials if they expire soon. Raises the catalog's error once they have expired."""
        if self.expires_ms is None or now_ms() < self.due_ms:
            return
        with self.lock:
            if now_ms() < self.due_ms:
                return
            try:
                self._take(self.issuer.credentials())
            except TrinityError as error:
                ended = now_ms() >= self.expires_ms
                if ended and error.code != "TABLE_NOT_FOUND":
                    raise
                # the old ones still hold, or the table is being made or dropped
                self.due_ms = now_ms() + _AGAIN_MS

    def replaced(self, used: StoreOptions, text: str) -> bool:
        """Renew refused credentials; return whether they changed."""
        with self.lock:
            if (now := self.credential(text)) is not None and now.options == used:
                with suppress(TrinityError):
                    self._take(self.issuer.credentials())
            after = self.credential(text)
            return after is not None and after.options != used

    def credential(self, text: str) -> Granted | None:
        """Return the credential of a location, by the longest prefix; None without one."""
        fitting = [credential for prefix, credential in self.credentials.items() if _below(text, prefix)]
        return max(fitting, key=lambda credential: len(credential.prefix), default=None)


_grants: dict[str, _Grant] = {}
_mutex = threading.Lock()


def grant(root: Location, offered: Sequence[Credential], issuer: Grants) -> None:
    """Register credentials for the location of a table, and for files of it elsewhere.

    Args:
        root: the table's location.
        offered: the credentials.
        issuer: the issuer of the credentials; the same issuer compares equal.
    """
    with _mutex:
        known = _grants.get(str(root))
        if known is None:
            _grants[str(root)] = _Grant(str(root), offered, issuer)
    if known is not None:
        known.update_credentials(offered, issuer)


def any_granted() -> bool:
    """Return whether any catalog has issued credentials in this process."""
    return bool(_grants)


def is_granted(location: Location) -> bool:
    """Return whether a catalog has issued credentials for a location."""
    return _found(str(location)) is not None


def credential_of(location: Location) -> Granted | None:
    """Return the credential of a location, renewed if it expires soon; None if no catalog issued one."""
    if (found := _found(str(location))) is None:
        return None
    found.renew_if_due()
    return found.credential(str(location))


def options_at(location: Location) -> StoreOptions:
    """Return the options for a location: with the credential that was issued for it, else those of its bucket."""
    if (credential := credential_of(location)) is not None:
        return credential.options
    return environment_options(str(location)) or options_of(location.store)


def options_known(location: Location) -> StoreOptions:
    """Return the options by which a location was last reached, without renewing credentials."""
    found = _found(str(location))
    credential = found.credential(str(location)) if found else None
    return credential.options if credential else options_of(location.store)


def renew_refused(location: Location, refused: StoreOptions) -> bool:
    """Return whether to retry a refused request, because the location has other credentials now."""
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
    return next((one for one in reversed(known) if one.credential(text) is not None), None)


def _below(text: str, prefix: str) -> bool:
    return f"{text}/".startswith(prefix)


# -- Spark's workers --------------------------------------------------------------------------------------


def _grants_to_learn() -> str | None:
    """Return all credentials that are valid now, as text for :func:`learn_options`; None without any."""
    with _mutex:
        known = list(_grants.values())
    now = now_ms()
    valid = [c for one in known for c in one.credentials.values() if c.expires_ms is None or c.expires_ms > now]
    return options_as_text(None, {c.prefix: c.options for c in valid}) if valid else None


def to_learn(location: Location) -> str:
    """Return the options of a file's location, with credentials, as text for :func:`learn_options`."""
    found = credential_of(location)
    return options_to_learn(location.store) if found is None else options_as_text(None, {found.prefix: found.options})


def with_grants(function: Callable[[_P], _R]) -> Callable[[_P], _R]:
    """Return a task's function that first gives the worker the credentials of this process.

    They are part of the pickled function, so no text of a plan shows them.
    """
    text = _grants_to_learn()
    if text is None:
        return function

    def with_credentials(pages: _P) -> _R:
        learn_options(text)
        return function(pages)

    return with_credentials
