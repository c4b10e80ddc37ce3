"""Each commit is logged once: a log line, and a span and metrics of OpenTelemetry where that is installed."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass

from trinity.calls import current_work
from trinity.loggers import logger
from trinity.spi import CommitResult, TableHandle, TransactionId
from trinity.storage.errors import after_commit
from trinity.storage.telemetry import record

__all__ = ["CommitLine", "log_commit"]

_log = logger("trinity")


@dataclass(frozen=True)
class CommitLine:
    """What is logged of a commit.

    Attributes:
        table: full name of the table.
        version: the new version.
        operation: as ``history()`` shows it.
        rows, files, bytes: what was written, as of :class:`~trinity.spi.CommitResult`.
        seconds: time since the call began that made the commit.
        attempts: attempts at the commit: more than one where other writers were faster.
        txn: ``application:version``; empty without.
        executor: ``local`` for this process, ``spark`` where Spark took part.
    """

    table: str
    version: int
    operation: str
    rows: int
    files: int
    bytes: int
    seconds: float
    attempts: int
    txn: str
    executor: str

    def __str__(self) -> str:
        facts = {**asdict(self), "seconds": f"{self.seconds:.3f}", "txn": self.txn or "-"}
        return " ".join(f"{name}={value}" for name, value in facts.items())


def log_commit(table: TableHandle, operation: str, done: CommitResult, txn: TransactionId | None = None) -> None:
    """Log a commit that has taken effect. A failure to do so is logged, too, and the commit stands."""
    work = current_work()
    line = CommitLine(
        table.full_name,
        done.version,
        operation,
        *(done.rows, done.files, done.bytes),
        time.perf_counter() - work.began,
        max(work.attempts, 1),
        f"{txn[0]}:{txn[1]}" if txn else "",
        work.executor,
    )
    work.attempts = 0
    _log.info("commit %s", line, extra={"commit": line})
    after_commit(f"Version {line.version} of '{line.table}' is missing in the metrics", lambda: record(asdict(line)))
