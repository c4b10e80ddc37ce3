"""Writers at once, and one within another's call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pytest

from trinity import Table


def at_once(works: Sequence[Callable[[], object]]) -> list[Exception]:
    """Run functions in threads that start together, and return the errors that they raised."""
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


def meanwhile(monkeypatch: pytest.MonkeyPatch, table: Table, call: str, happens: Callable[[], object]) -> None:
    """Call ``happens`` once, right after a call of a method of the connector's metadata has returned."""
    metadata = table.connector.metadata
    method = getattr(metadata, call)

    def and_then(*arguments: object, **options: object) -> object:
        monkeypatch.setattr(metadata, call, method)
        found = method(*arguments, **options)
        happens()
        return found

    monkeypatch.setattr(metadata, call, and_then)
