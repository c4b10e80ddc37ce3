"""Row kinds of Flink's changelogs. Source: Flink's class RowKind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trinity.calls import public
from trinity.cdc.values import failing
from trinity.cdc.version_columns import VersionColumns
from trinity.errors import TrinityError, nearest
from trinity.spark.settings import pinned
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KINDS: Final = (("+I", "INSERT"), ("-U", "UPDATE_BEFORE"), ("+U", "UPDATE_AFTER"), ("-D", "DELETE"))
"""A row kind's short text and its name, in the order of its byte."""


@public
def flink_rows(
    changes: DataFrame, kind: str = "op", *, row_kind: str | None = None, tombstone: str | None = None
) -> DataFrame:
    """Read rows of a Flink changelog as row versions; lazy.

    Every row stays in its place, with the watermark among its own columns. So the changelog must be in order: of a
    ``-U`` and a ``+U`` of equal watermarks the later one counts.

    Args:
        changes: the changelog.
        kind: the column with the row kind: its text (``+I``, ``-U``, ``+U``, ``-D``), its name (``INSERT``,
            ``UPDATE_BEFORE``, ``UPDATE_AFTER``, ``DELETE``), or its byte, 0 to 3.
        row_kind: name of the row kind column; by default ``kind``.
        tombstone: name of a tombstone column instead, TRUE for ``-U`` and ``-D``.

    Raises:
        TrinityError: COLUMN_NOT_FOUND, DUPLICATE_COLUMN_NAME, INVALID_ARGUMENTS. As the rows are written: BAD_DATA for
            an unknown row kind.
    """
    if row_kind is not None and tombstone is not None:
        raise TrinityError("INVALID_ARGUMENTS", "Give row_kind or tombstone, not both.")
    columns = [name for name in changes.columns if name.lower() != kind.lower()]
    if len(columns) == len(changes.columns):
        raise TrinityError("COLUMN_NOT_FOUND", f"The changes have no column '{kind}'.{nearest(kind, columns)}")
    roles = VersionColumns((), None, (row_kind or kind) if tombstone is None else None, tombstone)
    roles.check(columns)
    given = f"upper(CAST({quoted(kind)} AS STRING))"
    whens = " ".join(
        f"WHEN {given} IN ('{n}', '{short}', '{name}') THEN '{short}'" for n, (short, name) in enumerate(_KINDS)
    )
    reason = f"'The changes have a row kind that is not known: ', coalesce({given}, 'NULL')"
    found = f"CASE {whens} ELSE {failing('BAD_DATA', reason, 'STRING')} END"
    with pinned(changes.sparkSession):
        return changes.selectExpr(*map(quoted, columns), *roles.marks("NULL", found))
