"""The options by which each bucket is reached, in one place.

A process has one set of options for a bucket, given by the sessions that use it; without a session the environment
applies. A bucket is identified by the text of its store, such as ``s3://bucket``.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from trinity.errors import TrinityError
from trinity.storage.store_kinds import kind_of
from trinity.storage.store_options import StoreOptions

_OF_STORE: Final = 2
"""Number of slashes in the text of a store; a location in it has more."""

WORKER_OPTIONS: Final = "TRINITY_STORAGE_OPTIONS"
"""Environment variable by which Spark's workers get the options of a session."""

_known: dict[str, StoreOptions] = {}
_users: dict[str, int] = {}
_mutex = threading.Lock()


def options_of(store: str) -> StoreOptions:
    """Return the options of a bucket; if no session gave any, those of the environment."""
    with _mutex:
        known = _known.get(store)
    if known is None and (text := os.environ.get(WORKER_OPTIONS)):
        known = _read(text).get(store)
    return known or kind_of(store).options()


def environment_options(location: str) -> StoreOptions | None:
    """Return the options that a worker got for the longest prefix of a location; None if it got none for a prefix."""
    if not (text := os.environ.get(WORKER_OPTIONS)):
        return None
    known = _read(text)
    own = [name for name in known if name.count("/") > _OF_STORE and f"{location}/".startswith(name)]
    return known[max(own, key=len)] if own else None


def options_as_text(before: str | None, buckets: Mapping[str, StoreOptions]) -> str:
    """Return a value of :data:`WORKER_OPTIONS`: an earlier value, with the options of further buckets.

    Options from the driver's environment are included, since a worker may have another environment.

    Args:
        before: the earlier value, if there is one.
        buckets: text of a bucket's store, or prefix of locations -> options.
    """
    added = {store: options.resolved().model_dump(mode="json") for store, options in buckets.items()}
    found = {**(json.loads(before) if before else {}), **added}
    return json.dumps(found, sort_keys=True)


def options_to_learn(store: str) -> str:
    """Return the options of one bucket, with credentials, as text for :func:`learn_options`."""
    return options_as_text(None, {store: options_of(store)})


def learn_options(text: str) -> None:
    """Set the driver's options for a bucket in one of Spark's workers; other buckets keep theirs.

    Args:
        text: made on the driver by :func:`~trinity.storage.grants.to_learn`.
    """
    before = os.environ.get(WORKER_OPTIONS)
    if before != text:
        os.environ[WORKER_OPTIONS] = json.dumps({**json.loads(before or "{}"), **json.loads(text)}, sort_keys=True)


@lru_cache(maxsize=1)
def _read(text: str) -> dict[str, StoreOptions]:
    return {store: kind_of(store).options.of(options) for store, options in json.loads(text).items()}


def claim_bucket(store: str, options: StoreOptions) -> None:
    """Set the options of a bucket for a session that uses it; newer credentials replace older ones.

    Raises:
        TrinityError: CONFIGURATION_INVALID if an open session has the bucket of that name at another endpoint.
    """
    with _mutex:
        before = _known.get(store)
        if before is not None and _users.get(store) and before.service != options.service:
            kind = kind_of(store)
            raise TrinityError(
                "CONFIGURATION_INVALID",
                f"{kind.container.capitalize()} '{kind.bucket(store)}' is at {before.service} for another session of "
                f"this process, and would be at {options.service}; a process knows one {kind.container} of a name. "
                "Close that session first.",
            )
        _known[store] = options
        _users[store] = _users.get(store, 0) + 1


def release_bucket(store: str) -> None:
    """Note that a session no longer uses the bucket. Its options stay, for work that is still running."""
    with _mutex:
        _users[store] = max(0, _users.get(store, 0) - 1)


def buckets_in_use() -> Mapping[str, StoreOptions]:
    """Return the buckets of open sessions, and their options."""
    with _mutex:
        return {store: options for store, options in _known.items() if _users.get(store)}
