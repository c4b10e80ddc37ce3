"""The errors of data files that are missing or damaged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa

from trinity.errors import TrinityError
from trinity.spi import DataFile
from trinity.storage.errors import system_trouble
from trinity.storage.store import ObjectStore

__all__ = ["check_not_missing", "missing_file", "reporting_unreadable_file"]


@contextmanager
def reporting_unreadable_file(path: str) -> Iterator[None]:
    """Raise BAD_DATA for a data file that is missing or damaged, or else what its store or the system lacks."""
    try:
        yield
    except FileNotFoundError as error:
        raise missing_file(path) from error
    except (OSError, MemoryError, pa.ArrowException) as error:
        damaged = TrinityError("BAD_DATA", f"'{path}' cannot be read ({error}).")
        raise system_trouble(error, path) or damaged from error


def check_not_missing(files: Iterable[DataFile]) -> None:
    """Ask for each file before a plan is made that opens them. Raises BAD_DATA naming the file that is missing."""
    for file in files:
        if not ObjectStore(file.path).exists(""):
            raise missing_file(file.path)


def missing_file(path: str) -> TrinityError:
    """Return the error of a data file that is missing."""
    return TrinityError(
        "BAD_DATA",
        f"A data file is missing: {path}. Restore it from a copy, or read an older version of the table "
        "that does not need it.",
    )
