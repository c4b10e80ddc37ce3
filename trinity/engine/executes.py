"""Who executes: this process alone, or Spark. One function decides it, and says so in the log.

It goes by the memory that this process may have: the machine's, or what its container is given.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from trinity.calls import current_work
from trinity.errors import TrinityError
from trinity.loggers import logger
from trinity.spi import DataFile
from trinity.target import Host

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class NotLocal:
    """Why this process cannot do something without Spark.

    Attributes:
        reason: a clause for people.
        error: raised in a session without Spark; NOT_SUPPORTED with the reason by default.
    """

    reason: str
    error: TrinityError | None = field(default=None, compare=False)


T = TypeVar("T")

_log: Final = logger("trinity.executes")
_SHARE: Final = 8
"""The part of the memory that the files of one statement may have: their rows take a few times as much."""


def execute(
    session: Host,
    what: str,
    local: Callable[[], T | NotLocal],
    by_spark: Callable[[], T],
    *,
    size: int = 0,
    arrow: bool = False,
) -> T:
    """Execute work in this process where it may be, else by Spark.

    Args:
        session: the session.
        what: the work, as the beginning of a sentence: ``"DELETE of 'parquet.default.t'"``.
        local: executes it in this process, or returns why it cannot. It must have changed nothing by then.
        by_spark: executes it by Spark.
        size: bytes of the files that it reads.
        arrow: True for calls that take or return Arrow data, as :meth:`trinity.Table.to_arrow`. They run here even if
            Spark was given or the data is large.

    Raises:
        TrinityError: NOT_SUPPORTED with the reason, for a session that executes in this process alone.
    """
    reason = left_to_spark(session, size, arrow=arrow)
    if reason is None:
        found = local()
        if not isinstance(found, NotLocal):
            _log.debug("%s: executed in this process", what)
            return found
        reason = found
    if runs_alone(session):
        raise not_supported(what, reason)
    _log.debug("%s: executed by Spark, since %s", what, reason.reason)
    current_work().executor = "spark"
    return by_spark()


def runs_alone(session: Host) -> bool:
    """Return True for a session that executes in this process alone, and never starts Spark."""
    return session.engine == "local"


def asked_spark(session: Host) -> SparkSession | None:
    """Return the Spark whose names and settings count: one that executes everything is started for it."""
    return session.spark if session.engine == "spark" else session.running_spark


def left_to_spark(session: Host, size: int = 0, *, arrow: bool = False) -> NotLocal | None:
    """Return why work is Spark's, whatever its plan is; None where this process executes what it can.

    Arguments are those of :func:`execute`.
    """
    if runs_alone(session):
        return None
    if session.engine == "spark":
        return NotLocal("the session has engine='spark'")
    if arrow:
        return None
    if session.spark_is_given:
        return NotLocal("a Spark session was given to connect()")
    if size > session.local_bytes:
        return NotLocal(f"it reads {size:,} bytes, more than local_bytes={session.local_bytes:,}")
    return None


def not_supported(what: str, reason: NotLocal) -> TrinityError:
    """Return the error for work that needs Spark, in a session that must not start it."""
    return reason.error or TrinityError(
        "NOT_SUPPORTED",
        f"{what} needs Spark: {reason.reason}. It runs with engine='local', without Spark; engine='auto' starts Spark.",
    )


def size_of(files: Iterable[DataFile]) -> int:
    """Return the bytes of some files."""
    return sum(file.size for file in files)


def default_local_bytes() -> int:
    """Return the bytes of files up to which this process executes, by its memory."""
    return _memory_bytes() // _SHARE


_LIMITS: Final = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where Linux tells the limit of a container, in the second and the first version of control groups."""


def _memory_bytes() -> int:
    """Return the memory in bytes."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for limit in _LIMITS:
        with suppress(OSError, ValueError):  # no such file; "max" for no limit
            found.append(int(Path(limit).read_text()))
    return min(found)
