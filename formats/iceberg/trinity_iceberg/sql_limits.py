"""Time limits for a catalog in PostgreSQL, whose server or network may hang. Connections enforce them."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sqlalchemy import Engine, event

from trinity.limits import Limit

if TYPE_CHECKING:
    import psycopg

CONNECT_S: Final = Limit(10)
"""Seconds that a new connection may take, unless the address says ``connect_timeout``."""
ANSWER_S: Final = Limit(30.0)
"""Seconds to wait for an answer."""

_V = TypeVar("_V")


def keep_limits(engine: Engine) -> None:
    """Make an engine's new connections give up after the time limits; only psycopg needs this.

    A connection that has waited in vain is closed, so that the pool never hands it out again.
    """
    if engine.dialect.driver == "psycopg":
        event.listen(engine, "do_connect", _connected)


def _connected(_dialect: Any, _record: Any, arguments: Any, options: dict[str, Any]) -> psycopg.Connection[Any]:
    import psycopg

    class Limited(psycopg.Connection[Any]):
        """A connection that waits for an answer for a limited time."""

        def wait(self, gen: Any, *arguments: Any, **options: Any) -> Any:
            try:
                return super().wait(_until(gen, time.monotonic() + ANSWER_S.value), *arguments, **options)
            except TimeoutError:
                self.close()
                raise psycopg.OperationalError(f"the server did not answer within {ANSWER_S.value:g} s") from None

    return Limited.connect(*arguments, **{"connect_timeout": CONNECT_S.value, **options})


def _until(steps: Generator[Any, Any, _V], deadline: float) -> Generator[Any, Any, _V]:
    """Run psycopg's steps, at least ten times a second. Raises TimeoutError after a deadline."""
    try:
        state = next(steps)
        while True:
            ready = yield state
            if not ready and time.monotonic() > deadline:
                raise TimeoutError
            state = steps.send(ready)
    except StopIteration as done:
        value: _V = done.value
        return value
