"""The capabilities that an adapter may have or lack."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Capability(str, Enum):
    """A capability that an adapter may lack. It then refuses its use with NOT_SUPPORTED, before anything is changed.

    Every adapter has schemas, keyed and plain tables, appends, compaction and vacuum, and the types int, bigint and
    string.
    """

    ROW_CHANGES = "row changes"
    """MERGE, UPDATE and SQL DELETE: ``begin_merge``, ``create_merge_sink``, ``finish_merge``."""
    TRUNCATE = "truncate"
    RESOLVE = "resolve"
    """Compaction that deletes rows by position: ``begin_resolve``, ``create_delete_sink``, ``finish_resolve`` (R1)."""
    TIME_TRAVEL = "time travel"
    """Reads of earlier versions, and the change feed between two of them (L10, C1)."""
    RENAME_TABLE = "renamed tables"
    """Another name for a table: ``rename_table``."""
    RESTORE = "restore"
    REPAIR = "repair"
    EXTERNAL_TABLES = "external tables"
    """Tables that others made: ``open_external``."""
    COMMITS_IN_STORAGE = "commits in storage"
    """A commit takes effect by an operation of ``trinity.storage``, such as a put, which the conformance suite can make
    fail. An adapter that lacks this refuses nothing."""

    PARTIAL_UPDATE = "partial-update"
    AGGREGATION = "aggregation"
    FIRST_ROW = "first-row"

    PARTITION_BY_VALUE = "partitions by value"
    PARTITION_BY_BUCKET = "partitions by bucket"
    PARTITION_BY_TRUNCATE = "partitions by truncate"
    PARTITION_BY_YEARS = "partitions by years"
    PARTITION_BY_MONTHS = "partitions by months"
    PARTITION_BY_DAYS = "partitions by days"
    PARTITION_BY_HOURS = "partitions by hours"

    ADD_COLUMN = "added columns"
    DROP_COLUMN = "dropped columns"
    RENAME_COLUMN = "renamed columns"
    MOVE_COLUMN = "moved columns"
    WIDEN_COLUMN = "widened columns"
    CONSTRAINTS = "added constraints"
    """CHECK constraints and NOT NULL, added to a table that has rows."""

    BOOLEAN = "type boolean"
    TINYINT = "type tinyint"
    SMALLINT = "type smallint"
    FLOAT = "type float"
    DOUBLE = "type double"
    DECIMAL = "type decimal"
    CHAR = "type char"
    VARCHAR = "type varchar"
    BINARY = "type binary"
    DATE = "type date"
    TIMESTAMP = "type timestamp"
    TIMESTAMP_NTZ = "type timestamp_ntz"
    TIME = "type time"
    ARRAY = "type array"
    MAP = "type map"
    STRUCT = "type struct"


EVERYTHING: Final = frozenset(Capability)
"""All capabilities."""
TRANSFORMS: Final = frozenset((
    Capability.PARTITION_BY_BUCKET,
    Capability.PARTITION_BY_TRUNCATE,
    Capability.PARTITION_BY_YEARS,
    Capability.PARTITION_BY_MONTHS,
    Capability.PARTITION_BY_DAYS,
    Capability.PARTITION_BY_HOURS,
))  # fmt: skip
"""Partitions by a transform of a column."""
