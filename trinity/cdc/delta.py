"""Change data feeds of Delta tables, and of Trinity's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from trinity.calls import public
from trinity.cdc.change_feeds import feed_versions
from trinity.cdc.version_columns import VersionColumns, version_columns
from trinity.hidden import DELTA_FEED
from trinity.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KINDS: Final = {"insert": "+I", "update_preimage": "-U", "update_postimage": "+U", "delete": "-D"}


@public
def delta_changes(
    changes: DataFrame,
    key: Sequence[str] | Table,
    *,
    watermark: str | None = None,
    row_kind: str | None = None,
    tombstone: str | None = None,
    preimages: bool = False,
) -> DataFrame:
    """Read rows of a change data feed as row versions, with ``_commit_version`` BIGINT as their watermark; lazy.

    The feed is Delta's (``readChangeFeed``, ``table_changes``), that of ``table.changes``, or of Spark's CHANGES.
    Old rows of updates and deleted rows are left out where the same version has a new row of their key. An update that
    changes the key becomes a ``-D`` of the old key and a ``+U`` of the new one.

    Args:
        changes: the feed, in any order.
        key: key columns, which must identify the source's rows; or the table that the rows are for, which has them.
        watermark: name of the watermark column; by default the table's, else ``_watermark``.
        row_kind: name of the row kind column; by default the table's, else ``_row_kind``.
        tombstone: name of a tombstone column, instead of a row kind column.
        preimages: True for the old row of each update before the new one, as ``-U``: for aggregates.

    Raises:
        TrinityError: COLUMN_NOT_FOUND, DUPLICATE_COLUMN_NAME, INVALID_ARGUMENTS. As the rows are written: BAD_DATA for
            an unknown ``_change_type``.
    """
    columns = None if isinstance(key, Table) else key
    return delta_versions(changes, version_columns(key, columns, "version", watermark, row_kind, tombstone, preimages))


def delta_versions(changes: DataFrame, roles: VersionColumns, sorted_within: Sequence[str] = ()) -> DataFrame:
    """Return the row versions of a feed with Delta's columns. Arguments and errors as for :func:`feed_versions`."""
    return feed_versions(changes, roles, _KINDS, "CAST(_commit_version AS BIGINT)", DELTA_FEED, sorted_within)
