"""Change feeds of tables: rows with the kind of their change. An update has two rows, in any order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from trinity.cdc.values import failing
from trinity.cdc.version_columns import VersionColumns
from trinity.errors import TrinityError, nearest
from trinity.hidden import HIDDEN_PREFIX
from trinity.spark.settings import pinned
from trinity.syntax.quoting import quoted, text_literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TYPE = "_change_type"


def feed_versions(
    changes: DataFrame,
    roles: VersionColumns,
    kinds: Mapping[str, str],
    version: str,
    others: tuple[str, ...],
    sorted_within: Sequence[str] = (),
) -> DataFrame:
    """Return a feed's rows as row versions.

    An old row (``-U``, ``-D``) is left out where the same version has a new row of its key; else it is a ``-D``. So an
    update that changes the key deletes the old key. With preimages the old row of an update stays as ``-U``, before the
    new one. The versions of a key are sorted where their order counts: with preimages, and without a watermark.

    ``roles`` are the key and the columns that mark row versions. ``kinds`` has the row kind of each change type.
    ``version`` is Spark SQL of the version of a change, BIGINT. ``others`` are the feed's own columns, which are not
    part of the rows. ``sorted_within`` are columns: rows that agree in them are sorted, instead of those of a key, with
    a watermark too.

    Raises:
        TrinityError: COLUMN_NOT_FOUND, DUPLICATE_COLUMN_NAME.
    """
    present = {name.lower() for name in changes.columns}
    for name in others:
        if name not in present:
            message = f"The changes have no column '{name}'.{nearest(name, changes.columns)}"
            raise TrinityError("COLUMN_NOT_FOUND", message)
    columns = [c for c in changes.columns if c.lower() not in others and not c.startswith(HIDDEN_PREFIX)]
    roles.check(columns)
    whens = " ".join(f"WHEN {text_literal(kind)} THEN '{row}'" for kind, row in kinds.items())
    reason = f"'The changes have a _change_type that is not known: ', coalesce({_TYPE}, 'NULL')"
    kind = f"CASE {_TYPE} {whens} ELSE {failing('BAD_DATA', reason, 'STRING')} END"
    keys = ", ".join(f"row.{quoted(name)}" for name in roles.key)
    came = f"max(kind IN ('+I', '+U')) OVER (PARTITION BY {keys}, at)"
    row = f"struct({', '.join(map(quoted, columns))})"
    by = sorted_within or (roles.key if roles.preimages or roles.watermark is None else ())
    with pinned(changes.sparkSession):
        found = changes.selectExpr(f"{row} AS row", f"{kind} AS kind", f"{version} AS at")
        if by:
            found = found.repartition(*(found[f"row.{quoted(name)}"] for name in by))
        found = found.selectExpr("row", "kind", "at", f"{came} AS came")
        gone = "IF(kind = '-U' AND NOT came, '-D', kind)"
        if not roles.preimages:
            found = found.where("NOT came OR kind IN ('+I', '+U')")
        if by:
            found = found.sortWithinPartitions("at", found["kind"].isin("+I", "+U"))
        values = [f"row.{quoted(name)} AS {quoted(name)}" for name in columns]
        return found.selectExpr("row", "at", f"{gone} AS kind").selectExpr(*values, *roles.marks("at", "kind"))
