"""Writers at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

__all__ = ["at_once"]


def at_once(works: Sequence[Callable[[], object]]) -> list[Exception]:
    """Runs the works in threads that start together; returns the errors that they raised."""
    errors: list[Exception] = []
    start = threading.Barrier(len(works))

    def run(work: Callable[[], object]) -> None:
        start.wait()
        try:
            work()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors
