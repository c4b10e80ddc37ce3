"""The loggers of Trinity: their names, and what each of them logs."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from trinity.secrets import redacted

LOGGERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "trinity": "The parent of all others. INFO: a line for each commit.",
        "trinity.executes": "DEBUG: whether this process or Spark executes a statement, and why.",
        "trinity.reading": "INFO: a read that goes another way than planned, and why.",
        "trinity.compacting": "What a table's properties ask for after a commit. INFO: another writer was faster. "
        "WARNING: it failed, and the commit stands.",
        "trinity.streaming": "Streams into tables, and the compactions beside them. INFO: a line for each micro-batch. "
        "WARNING: a compaction failed, and the stream goes on.",
        "trinity.datasource": "Spark's `format('trinity')`. WARNING: Spark will not find this process.",
        "trinity.spark": "INFO: a JAR was fetched, and from where.",
        "trinity.storage": "WARNING: work after a commit failed, and the commit stands; a list of changes is damaged; "
        "the rows of a damaged file are not counted.",
        "trinity.parquet": "WARNING: a checkpoint cannot be read; other files of the log are read instead.",
        "trinity.delta": "WARNING: the same; Delta failed after a commit; other writers may overwrite commits.",
        "trinity.iceberg": "WARNING: what readers of other engines cannot do with a version.",
    }
)
"""Name of a logger -> what it logs, and at which level."""


class _Redacting(logging.Filter):
    """A filter that removes secrets from log records."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = redacted(record.getMessage()), ()
        return True


_redacting: Final = _Redacting()


def logger(name: str) -> logging.Logger:
    """Return a logger whose records show no secrets.

    Args:
        name: one of :data:`LOGGERS`; a third-party adapter has a name of its own.
    """
    found = logging.getLogger(name)
    found.addFilter(_redacting)
    return found
