"""Changelog views of Iceberg tables. Source: iceberg.apache.org, Spark procedures, create_changelog_view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from trinity.calls import public
from trinity.cdc.change_feeds import feed_versions
from trinity.cdc.version_columns import version_columns
from trinity.hidden import ICEBERG_FEED
from trinity.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KINDS: Final = {"INSERT": "+I", "UPDATE_BEFORE": "-U", "UPDATE_AFTER": "+U", "DELETE": "-D"}


@public
def iceberg_changes(
    changes: DataFrame,
    key: Sequence[str] | Table,
    *,
    after: int,
    watermark: str | None = None,
    row_kind: str | None = None,
    tombstone: str | None = None,
    preimages: bool = False,
) -> DataFrame:
    """Read a view of ``create_changelog_view`` as row versions; lazy.

    The watermark, BIGINT, is ``after`` + 1 + ``_change_ordinal``: the ordinals of each view begin at 0, and the id of
    a snapshot says nothing of its age. Old and deleted rows are treated as by :func:`delta_changes`.

    The view is in any order, with or without ``compute_updates``, which preimages need, and ``identifier_columns``.
    ``after`` is the sequence number of the snapshot after which it begins (its ``start-snapshot-id``), 0 for a view
    from the first one on; or any number that is not below the watermarks of earlier views. Other arguments, and errors,
    are those of :func:`delta_changes`.
    """
    columns = None if isinstance(key, Table) else key
    roles = version_columns(key, columns, "version", watermark, row_kind, tombstone, preimages)
    return feed_versions(changes, roles, _KINDS, f"CAST({after + 1} + _change_ordinal AS BIGINT)", ICEBERG_FEED)
