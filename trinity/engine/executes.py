"""The choice of the executor of work: this process alone, or Spark. :func:`execute` decides it, and logs its choice.

The choice depends on the session's engine, and on the bytes of files that this process may read: a share of the memory
of the machine, or of its container.
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
    """The reason why this process cannot execute something without Spark.

    Attributes:
        reason: a clause for people.
        error: the error to raise in a session without Spark; by default NOT_SUPPORTED with the reason.
    """

    reason: str
    error: TrinityError | None = field(default=None, compare=False)


T = TypeVar("T")

_log: Final = logger("trinity.executes")
_SHARE: Final = 8
"""The memory divided by this is the most bytes of files for one statement: rows take a few times as much."""


@dataclass(frozen=True)
class ThisProcess:
    """The limits of this process, which :func:`execute` passes to work that may run in it.

    Attributes:
        alone: True when Spark never takes over: work that this process cannot execute is refused.
        most_bytes: most bytes of files that work may read here; None for any number.
    """

    alone: bool = False
    most_bytes: int | None = None

    def why_not_read(self, files: Iterable[DataFile]) -> NotLocal | None:
        """Return why the files are too large to be read in this process; None where they are not."""
        size = sum(file.size for file in files)
        if self.most_bytes is None or size <= self.most_bytes:
            return None
        return NotLocal(f"it reads {size:,} bytes, more than local_bytes={self.most_bytes:,}")


def execute(
    session: Host,
    what: str,
    local: Callable[[ThisProcess], T | NotLocal],
    by_spark: Callable[[], T],
    *,
    arrow: bool = False,
) -> T:
    """Execute work in this process if possible, else by Spark.

    Args:
        session: the session.
        what: the work, as the beginning of a sentence: ``"DELETE of 'parquet.default.t'"``.
        local: executes the work in this process, or returns why it cannot, having changed nothing. Once it
            knows which files it reads, it asks :meth:`ThisProcess.why_not_read`.
        by_spark: executes the work by Spark.
        arrow: True for calls that take or return Arrow data, as :meth:`trinity.Table.to_arrow`. They run here even if
            Spark was given or the data is large.

    Raises:
        TrinityError: NOT_SUPPORTED with the reason, for a session that executes in this process alone.
    """
    process = who_executes(session, arrow=arrow)
    found = process if isinstance(process, NotLocal) else local(process)
    if not isinstance(found, NotLocal):
        _log.debug("%s: executed in this process", what)
        return found
    if runs_alone(session):
        raise _not_supported(what, found)
    _log.debug("%s: executed by Spark, since %s", what, found.reason)
    current_work().executor = "spark"
    return by_spark()


def who_executes(session: Host, *, arrow: bool = False) -> ThisProcess | NotLocal:
    """Return the limits of this process, or why all work is left to Spark. ``arrow`` is as for :func:`execute`."""
    if runs_alone(session):
        return ThisProcess(alone=True)
    if session.engine == "spark":
        return NotLocal("the session has engine='spark'")
    if arrow:
        return ThisProcess()
    if session.spark_is_given:
        return NotLocal("a Spark session was given to connect()")
    return ThisProcess(most_bytes=session.local_bytes)


def runs_alone(session: Host) -> bool:
    """Return True for a session that executes in this process alone, and never starts Spark."""
    return session.engine == "local"


def works_in_process(session: Host, *, arrow: bool = False) -> bool:
    """Return True when work runs in this process, without Spark or by a Spark within it.

    ``arrow`` is as for :func:`execute`.
    """
    if isinstance(who_executes(session, arrow=arrow), ThisProcess):
        return True
    from trinity.spark.remote import runs_in_process

    return runs_in_process(session.spark)


def refuse_alone(session: Host, what: str, why_not: Callable[[], NotLocal | None]) -> None:
    """Refuse work before it begins, in a session without Spark that cannot execute it.

    ``what`` is as for :func:`execute`. ``why_not`` returns why this process cannot execute the work, or None.

    Raises:
        TrinityError: NOT_SUPPORTED with the reason.
    """
    if runs_alone(session) and (reason := why_not()) is not None:
        raise _not_supported(what, reason)


def asked_spark(session: Host) -> SparkSession | None:
    """Return the Spark whose names and settings count, or None. With engine='spark' it is started if need be."""
    return session.spark if session.engine == "spark" else session.running_spark


def _not_supported(what: str, reason: NotLocal) -> TrinityError:
    return reason.error or TrinityError(
        "NOT_SUPPORTED",
        f"{what} needs Spark: {reason.reason}. It runs with engine='local', without Spark; engine='auto' starts Spark.",
    )


def default_local_bytes() -> int:
    """Return the most bytes of files for which this process executes a statement, by its memory."""
    return _memory_bytes() // _SHARE


_LIMITS: Final = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Files in which Linux tells the memory limit of a container, in versions 2 and 1 of control groups."""


def _memory_bytes() -> int:
    """Return the bytes of memory that this process may use."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for limit in _LIMITS:
        with suppress(OSError, ValueError):  # no such file; "max" for no limit
            found.append(int(Path(limit).read_text()))
    return min(found)
